"""Which temperature suits the smooth top-k loss."""

import math

import torch
from torch import Tensor

from lossmith.losses.top_k import SmoothTopKLoss

__all__ = ["gradient_share", "sensible_tau"]


def sensible_tau(k: int, num_classes: int, *, spread: float = 1.0, share: float = 0.9) -> float:
    """Return the smallest tau for which the gradient of a fresh network's smooth top-k loss reaches most of the classes.

    A smaller tau makes training stall, a much larger one makes the loss forget about k: start with this one, and go up tenfold
    if the training error does not fall. ``spread`` is the standard deviation of the fresh network's scores over the classes,
    and ``share`` the part of the classes that the gradient has to reach, see :func:`gradient_share`.

    Args:
        k: How many guesses the loss allows.
        num_classes: How many classes there are, more than k.
        spread: The standard deviation of the scores, > 0.
        share: The part of the classes that the gradient has to reach, in (0, 1).

    Returns:
        The temperature.

    Raises:
        ValueError: If a number is out of its range.

    >>> round(sensible_tau(k=5, num_classes=100), 3)
    0.04

    Reference: appendix D.1 and figure 2b of Berrada, Zisserman and Kumar 2018.
    """
    if not 0 < share < 1:
        raise ValueError(f"sensible_tau: share must be in (0, 1), got {share}.")
    if not (spread > 0 and math.isfinite(spread)):
        raise ValueError(f"sensible_tau: spread must be > 0, got {spread}.")
    scores = typical_scores(num_classes)
    loss = SmoothTopKLoss(k)
    low, high = math.log(1e-6), math.log(1e3)
    while high - low > 1e-3:
        middle = (low + high) / 2
        loss.tau = math.exp(middle)
        low, high = (low, middle) if gradient_share(loss, scores) >= share else (middle, high)
    return spread * math.exp(high)


def gradient_share(loss: SmoothTopKLoss, scores: Tensor) -> float:
    """Return the mean share of the entries of the gradient that are not negligible in single precision.

    ``scores`` are ``(N, C)``; the targets do not matter. An entry is negligible if it is below the rounding error of the largest.

    Args:
        loss: A smooth top-k loss with its k and tau.
        scores: What a network puts out, ``(N, C)``.

    Returns:
        The share, between 0 and 1.
    """
    rows = scores.detach().to(torch.float32).requires_grad_()
    target = torch.zeros(rows.shape[0], dtype=torch.long, device=rows.device)
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(loss(rows, target), rows)
    size = gradient.abs()
    return float((size > size.amax(1, keepdim=True) * torch.finfo(torch.float32).eps).float().mean())


def typical_scores(num_classes: int) -> Tensor:
    """Return scores spread over the classes as those of a fresh network are on average: quantiles of the normal distribution."""
    levels = (torch.arange(num_classes, dtype=torch.float64) + 0.5) / num_classes
    scores: Tensor = torch.special.ndtri(levels)
    return scores.to(torch.float32).unsqueeze(0)
