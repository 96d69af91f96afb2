"""The Bregman divergence of the tempered logarithm."""

import math

import torch
from torch import Tensor

from lossmith.numerics.elementary import box_cox

__all__ = ["tempered_divergence", "tempered_divergence_from_one"]


def tempered_divergence(target: Tensor, log_probs: Tensor, t: float) -> Tensor:
    """Return ``y (log_t y - log_t p) - (y**(2-t) - p**(2-t)) / (2-t)`` for each pair of y >= 0 and p.

    It is >= 0, and 0 for p = y. Half the square of the difference at t = 0, ``y log(y/p) - y + p`` at t = 1, and
    ``y/p - log(y/p) - 1`` at t = 2. For t >= 2 it is infinite at y = 0.

    Args:
        target: Numbers y >= 0.
        log_probs: ``log p``, of the same shape.
        t: Temperature, >= 0.

    Returns:
        Divergences of the same shape.

    >>> tempered_divergence(torch.tensor([0.0, 1.0]), torch.tensor([0.5, 0.5]).log(), 0.0)
    tensor([0.1250, 0.1250])
    """
    positive = target > 0
    log_target = torch.where(positive, target, 1.0).log()
    # The unused branch must not reach where its derivative is infinite.
    log_ratio = torch.where(positive, log_probs - log_target, 0.0)
    value = torch.exp((2 - t) * log_target) * tempered_divergence_from_one(log_ratio, t)
    at_zero = torch.exp((2 - t) * log_probs) / (2 - t) if t < 2 else torch.inf
    return torch.where(positive, value, at_zero)


def tempered_divergence_from_one(log_ratio: Tensor, t: float) -> Tensor:
    """Return the divergence of 1 and r, ``(r**(2-t) - 1) / (2-t) - (r**(1-t) - 1) / (1-t)``, given ``log r``.

    Both terms are ``log r`` to first order. Where that is small, what remains is summed as a series.

    Args:
        log_ratio: ``log r``.
        t: Temperature, >= 0.

    Returns:
        Divergences of the same shape.

    >>> tempered_divergence_from_one(torch.tensor([-1e-6]), 0.5)
    tensor([5.0000e-13])
    """
    value = box_cox(log_ratio, 2 - t) - box_cox(log_ratio, 1 - t)
    if t >= 2:
        value = torch.where(torch.isnan(value) & (log_ratio < 0), torch.inf, value)  # the difference of two infinities
    is_small = log_ratio.abs() < 0.25 / (1 + t)
    return torch.where(is_small, _series(torch.where(is_small, log_ratio, 0.0), t), value)


def _series(log_ratio: Tensor, t: float) -> Tensor:
    """Sum ``((2-t)**(n-1) - (1-t)**(n-1)) x**n / n!`` from n = 2 until terms are below rounding for ``|x| < 0.25 / (1+t)``."""
    last = 14 if log_ratio.dtype == torch.float64 else 8
    total = torch.zeros_like(log_ratio)
    for n in range(last, 1, -1):
        # Products, because a compiled power of a number that a schedule changes takes none below 0, as 1 - t may be.
        coefficient = (math.prod([2 - t] * (n - 1)) - math.prod([1 - t] * (n - 1))) / math.factorial(n)
        total = (total + coefficient) * log_ratio
    return total * log_ratio
