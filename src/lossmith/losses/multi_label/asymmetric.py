"""The asymmetric loss, for many classes of which few are present."""

from typing import Unpack

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Rows
from lossmith.kernels.reference import Term, terms_of_one
from lossmith.losses.contract.options import Options
from lossmith.losses.focal import focal
from lossmith.losses.multi_label.presence import PresenceLoss, sum_over_classes
from lossmith.numerics.elementary import as_scalar
from lossmith.numerics.known_slope import with_slope
from lossmith.numerics.probability import Probability

__all__ = ["AsymmetricLoss"]


def asymmetric(logits: Tensor, target: Tensor, *, gamma_pos: float, gamma_neg: float, clip: float) -> Tensor:
    """Return the sum of focal losses, whose probabilities of absent classes are less by ``clip``, and 0 where they were below.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a number in [0, 1] for every class ``(N, C, ...)``.
        gamma_pos: Exponent for classes that are present, >= 0.
        gamma_neg: Exponent for classes that are absent, >= 0.
        clip: What probabilities of absent classes are less by, in [0, 1).

    Returns:
        Losses ``(N, ...)``.
    """
    return sum_over_classes(lambda z: present(z, gamma_pos), lambda z: present_less(z, gamma_neg, clip), logits, target)


def present(z: Tensor, gamma: float) -> Tensor:
    """Return the focal loss of classes that are present.

    Args:
        z: Logits.
        gamma: Exponent, >= 0.

    Returns:
        Losses of the same shape.
    """
    return terms_of_one((Term(1.0, lambda p: focal(p, gamma)),), Probability.from_log_odds(z))


def present_less(z: Tensor, gamma: float, clip: float) -> Tensor:
    """Return ``-m**gamma log(1 - m)`` of ``m = max(sigmoid(z) - clip, 0)``.

    Args:
        z: Logits.
        gamma: Exponent, >= 0.
        clip: In [0, 1).

    Returns:
        Losses of the same shape.
    """
    if clip == 0:
        return present(-z, gamma)
    # sigmoid(z) - sigmoid(z0) = sigmoid(z) (1 - sigmoid(z0)) (1 - exp(z0 - z)): the difference is one of logits, which is exact.
    start = torch.log(as_scalar(clip, z)) - torch.log1p(-as_scalar(clip, z))
    is_below = z <= start  # which what is not a number is not
    lead = torch.where(is_below, 1.0, z - start)
    inside = torch.where(is_below, 0.0, z)
    p, rest = torch.sigmoid(inside), torch.sigmoid(-inside)
    less = p * (1 - clip) * -torch.expm1(-lead)
    is_small = less < _SMALL
    cost = torch.where(is_small, -torch.log1p(-torch.where(is_small, less, 0.0)), -torch.log(rest + clip))
    power = less ** as_scalar(gamma, less)
    # Autograd would take 1 - p from p, and lose it where that is close to 1.
    slope = p * rest * power * (gamma * cost / less + 1 / (rest + clip))
    return with_slope(z, torch.where(is_below, 0.0, power * cost), torch.where(is_below, 0.0, slope))


_SMALL = 0.5


class AsymmetricLoss(PresenceLoss):
    """Asymmetric loss, ``-(1 - p)**gamma_pos log p`` for what is present and ``-m**gamma_neg log(1 - m)`` for what is absent.

    ``p = sigmoid(z)`` and ``m = max(p - clip, 0)``: of many classes most are absent, and those that are clearly so count nothing.
    For targets of which several classes can be true at once. A floating-point target holds a number in [0, 1] for each class;
    class indices mean that one is present. The gradient is that of the formula; published code can leave out that of the
    exponents' factors. ``multi-label(focal)`` when clip = 0 and both exponents are equal, ``sigmoid`` when all three are 0.

    >>> import torch
    >>> AsymmetricLoss()(torch.tensor([[0.0, 2.0, -4.0]]), torch.tensor([[1.0, 1.0, 0.0]]))
    tensor(0.3617)

    Args:
        gamma_pos: How much less well predicted classes count that are present, >= 0; 1 by default.
        gamma_neg: The same of classes that are absent, >= 0; 4 by default.
        clip: What the probability of an absent class is less by, in [0, 1); 0.05 by default.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Ridnik et al. 2021, "Asymmetric loss for multi-label classification", equations 4 to 7.
    """

    name = "asl"
    limits = {
        "gamma_pos": Limits(0.0, usual=(0.0, 2.0)),
        "gamma_neg": Limits(0.0, usual=(0.0, 5.0)),
        "clip": Limits(0.0, 1.0, high_open=True, usual=(0.0, 0.2)),
    }
    gamma_pos: float
    gamma_neg: float
    clip: float

    def __init__(self, gamma_pos: float = 1.0, gamma_neg: float = 4.0, clip: float = 0.05, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.gamma_pos = gamma_pos
        self.gamma_neg = gamma_neg
        self.clip = clip

    def formula(self) -> Formula:
        """Return the sum over the classes."""
        return Rows(asymmetric, {"gamma_pos": self.gamma_pos, "gamma_neg": self.gamma_neg, "clip": self.clip})

    def of_classes(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the focal loss of each class, if it is present and if it is absent."""
        return present(logits, self.gamma_pos), present_less(logits, self.gamma_neg, self.clip)
