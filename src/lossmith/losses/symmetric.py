"""Symmetric cross-entropy."""

from typing import Unpack

from torch import Tensor

from lossmith.losses.contract import Options
from lossmith.losses.limits import Limits
from lossmith.losses.target_probability import TargetProbabilityLoss
from lossmith.numerics.probability import Probability
from lossmith.numerics.temporaries import add_scaled, affine

__all__ = ["SymmetricCrossEntropyLoss"]


class SymmetricCrossEntropyLoss(TargetProbabilityLoss):
    """Symmetric cross-entropy, ``-alpha log p - beta log_zero (1 - p)``: cross-entropy in both directions.

    The reverse cross-entropy is ``-sum_c p_c log t_c`` for the one-hot target t, with ``log_zero`` < 0 in the place of the
    logarithm of 0. Fits fast through the first part and resists noise through the second; alpha, beta >= 0.
    Cross-entropy when alpha = 1 and beta = 0.

    >>> import torch
    >>> SymmetricCrossEntropyLoss(alpha=0.0)(torch.zeros(4), torch.tensor(0))
    tensor(3.)

    Reference: Wang et al. 2019; symCE of Staats, Thamm and Rosenow, "Noise-robust loss functions", appendix table 3.
    """

    name = "sce"
    limits = {"alpha": Limits(0.0), "beta": Limits(0.0), "log_zero": Limits(high=0.0, high_open=True)}
    alpha: float
    beta: float
    log_zero: float

    def __init__(self, alpha: float = 0.1, beta: float = 1.0, log_zero: float = -4.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.alpha = alpha
        self.beta = beta
        self.log_zero = log_zero

    def value_and_pull(self, target: Probability) -> tuple[Tensor, Tensor]:
        """Return ``-alpha log p - beta A (1 - p)`` and ``alpha - beta A p``."""
        reverse = self.beta * self.log_zero
        return add_scaled(self.alpha * target.surprise, target.rest, -reverse), affine(target.p, -reverse, self.alpha)
