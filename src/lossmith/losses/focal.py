"""The focal loss."""

from typing import Unpack

import torch
from torch import Tensor

from lossmith.losses.contract import Options
from lossmith.losses.limits import Limits
from lossmith.losses.target_probability import TargetProbabilityLoss

__all__ = ["FocalLoss"]


class FocalLoss(TargetProbabilityLoss):
    r"""Focal loss, :math:`-\alpha (1 - p_y)^\gamma \log p_y`, for rare classes and easy majorities; not for noisy labels.

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

    def value_and_slope(self, log_p: Tensor) -> tuple[Tensor, Tensor]:
        """Return the value and ``(1 - p)**gamma (gamma p log p / (1 - p) - 1)``, whose quotient tends to -1 at p = 1."""
        rest = -torch.expm1(log_p)
        modulation = rest**self.gamma if self.alpha is None else self.alpha * rest**self.gamma
        quotient = torch.where(rest > 0, log_p / torch.where(rest > 0, rest, 1.0), -1.0)
        return -modulation * log_p, modulation * (self.gamma * torch.exp(log_p) * quotient - 1)
