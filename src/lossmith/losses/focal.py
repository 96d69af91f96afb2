"""The focal loss."""

from typing import Unpack

import torch
from torch import Tensor

from lossmith.losses.contract import Options
from lossmith.losses.limits import Limits
from lossmith.losses.target_probability import TargetProbabilityLoss
from lossmith.numerics.probability import Probability
from lossmith.numerics.scalars import as_input
from lossmith.numerics.temporaries import add_product, multiply

__all__ = ["FocalLoss"]


class FocalLoss(TargetProbabilityLoss):
    """Focal loss, ``-alpha (1 - p)**gamma log p``, for rare classes and easy majorities; not for noisy labels.

    Examples that are predicted well count less, the more so the larger gamma >= 0. ``alpha`` > 0 scales the whole loss; a
    factor for each class is ``weight``. Cross-entropy when gamma = 0 and alpha is not given.

    >>> import torch
    >>> FocalLoss(gamma=2.0)(torch.zeros(2), torch.tensor(0))
    tensor(0.1733)

    Reference: Lin et al. 2017; equation 2 of Battash, Hazan and Wolf, who use gamma = 2 and alpha = 0.25.
    """

    name = "focal"
    limits = {"gamma": Limits(0.0), "alpha": Limits(0.0, low_open=True, optional=True)}
    gamma: float
    alpha: float | None

    def __init__(self, gamma: float = 2.0, alpha: float | None = None, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.gamma = gamma
        self.alpha = alpha

    def value_and_pull(self, target: Probability) -> tuple[Tensor, Tensor]:
        """Return the value and ``(1 - p)**gamma (1 - gamma p log p / (1 - p))``."""
        rest = target.rest
        if torch.is_grad_enabled():  # a root has no finite slope at 0, to which 1 - p may have been rounded
            rest = rest.clamp_min(torch.finfo(rest.dtype).tiny)
        modulation = rest ** as_input(self.gamma, rest)
        modulation = modulation if self.alpha is None else self.alpha * modulation
        growth = multiply(multiply(target.surprise_over_rest, target.p), self.gamma)
        return modulation * target.surprise, add_product(modulation, modulation, growth)
