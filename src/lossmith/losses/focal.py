"""The focal loss."""

from functools import partial
from typing import Unpack

from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Term
from lossmith.losses.contract.options import Options
from lossmith.losses.contract.target_probability import TargetProbabilityLoss
from lossmith.numerics.probability import Probability

__all__ = ["FocalLoss"]


def focal(p: Probability, gamma: float) -> tuple[Tensor, Tensor]:
    """Return ``-(1 - p)**gamma log p`` and its pull ``(1 - p)**gamma (1 - gamma p log p / (1 - p))``.

    Args:
        p: The probability.
        gamma: Exponent, >= 0.

    Returns:
        The value and its pull.
    """
    modulation = p.rest_power(gamma)
    return modulation * p.surprise, modulation * p.focal_growth(gamma)


class FocalLoss(TargetProbabilityLoss):
    """Focal loss, ``-alpha (1 - p)**gamma log p``, for rare classes and easy majorities; not for noisy labels.

    Examples that are predicted well count less, the more so the larger gamma >= 0. ``alpha`` > 0 scales the whole loss; a
    factor for each class is ``weight``. Cross-entropy when gamma = 0 and alpha is not given.

    >>> import torch
    >>> FocalLoss(gamma=2.0)(torch.zeros(2), torch.tensor(0))
    tensor(0.1733)

    Args:
        gamma: How much less well predicted examples count, >= 0; at 0 all count alike.
        alpha: Factor for the whole loss, > 0; none by default.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Lin et al. 2017; equation 2 of Battash, Hazan and Wolf, who use gamma = 2 and alpha = 0.25.
    """

    name = "focal"
    limits = {"gamma": Limits(0.0, usual=(0.0, 5.0)), "alpha": Limits(0.0, low_open=True, optional=True)}
    gamma: float
    alpha: float | None

    def __init__(self, gamma: float = 2.0, alpha: float | None = None, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.gamma = gamma
        self.alpha = alpha

    def terms(self) -> tuple[Term, ...]:
        """Return the curve, scaled by alpha."""
        return (Term(1.0 if self.alpha is None else self.alpha, partial(focal, gamma=self.gamma)),)
