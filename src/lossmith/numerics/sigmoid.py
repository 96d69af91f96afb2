"""The sigmoid and its integral."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from lossmith.numerics.softmax import values_are_at_hand

__all__ = ["softplus", "softplus_and_sigmoid"]


def softplus(x: Tensor) -> Tensor:
    """Return ``log(1 + exp(x))``; beyond 40 it is ``x`` in double precision, too."""
    return F.softplus(x, threshold=40.0)


def softplus_and_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``log(1 + exp(x))`` and its derivative ``1 / (1 + exp(-x))``, each to full relative accuracy.

    >>> softplus_and_sigmoid(torch.tensor([0.0, -50.0]))
    (tensor([6.9315e-01, 1.9287e-22]), tensor([5.0000e-01, 1.9287e-22]))
    """
    # Both from one exponential, unless that overflows.
    if values_are_at_hand(x) and x.numel() and x.amax() < math.log(torch.finfo(x.dtype).max) / 2:
        odds = x.exp()
        return torch.log1p(odds), odds.div_(odds + 1)
    return softplus(x), torch.sigmoid(x)
