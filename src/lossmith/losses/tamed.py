"""Tamed cross-entropy."""

from typing import Unpack

import torch
from torch import Tensor

from lossmith.losses.contract import Options
from lossmith.losses.limits import Limits
from lossmith.losses.target_probability import TargetProbabilityLoss
from lossmith.numerics.box_cox import box_cox_and_power
from lossmith.numerics.probability import Probability

__all__ = ["TamedCrossEntropyLoss"]


class TamedCrossEntropyLoss(TargetProbabilityLoss):
    """Tamed cross-entropy, ``((1 - log p)**(1 - alpha) - 1) / (1 - alpha)``.

    Like cross-entropy on well predicted examples, but the pull of improbable targets fades slowly: a mild remedy for a few
    wrong labels. alpha >= 0; cross-entropy when alpha = 0, ``log(1 - log p)`` when alpha = 1.

    >>> import torch
    >>> TamedCrossEntropyLoss(alpha=0.5)(torch.zeros(2), torch.tensor(0))
    tensor(0.6024)

    Reference: Martinez and Stiefelhagen 2018; equation 4 of Battash, Hazan and Wolf, with the bracket put right so that the
    loss is 0 at p = 1.
    """

    name = "tamed-ce"
    limits = {"alpha": Limits(0.0)}
    alpha: float

    def __init__(self, alpha: float = 0.5, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.alpha = alpha

    def value_and_pull(self, target: Probability) -> tuple[Tensor, Tensor]:
        """Return the value and ``(1 - log p)**-alpha``."""
        log_tamed = torch.log1p(target.surprise)
        return box_cox_and_power(log_tamed, 1 - self.alpha)[0], torch.exp(-self.alpha * log_tamed)
