"""The sigmoid and its integral."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from lossmith.numerics.softmax import values_are_at_hand

__all__ = ["softplus", "summed_softplus_and_sigmoid"]


def softplus(x: Tensor) -> Tensor:
    """Return ``log(1 + exp(x))``; beyond 40 it is ``x`` in double precision, too."""
    return F.softplus(x, threshold=40.0)


def summed_softplus_and_sigmoid(x: Tensor, omitted: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum of ``log(1 + exp(x))`` along dimension 1 but for one entry, and ``1 / (1 + exp(-x))`` of all.

    >>> x, omitted = torch.tensor([[0.0, 9.0, -50.0]]), torch.tensor([[1]])
    >>> summed_softplus_and_sigmoid(x, omitted)
    (tensor([[0.6931]]), tensor([[5.0000e-01, 9.9988e-01, 1.9287e-22]]))
    """
    folds = _possible_folds(x)
    if folds is None:
        return softplus(x).scatter(1, omitted, 0.0).sum(1, keepdim=True), torch.sigmoid(x)
    odds = x.exp()
    slope = odds + 1
    torch.div(odds, slope, out=slope)
    return _sum_of_log1p_(odds.scatter_(1, omitted, 0.0), folds), slope


def _possible_folds(x: Tensor) -> int | None:
    """Return how often factors ``1 + exp(x)`` can be multiplied in pairs before they overflow, or None if they do at once."""
    if not values_are_at_hand(x) or x.numel() == 0:
        return None
    largest = max(x.amax().item(), 0.0) + math.log(2)
    room = math.log(torch.finfo(x.dtype).max) / largest
    return min(int(math.log2(room)), 3) if room >= 1 else None  # NaN compares False


def _sum_of_log1p_(x: Tensor, folds: int) -> Tensor:
    """Return the sum of ``log(1 + x)`` along dimension 1 for x >= 0, with few logarithms; ``x`` is used up.

    ``(1 + a)(1 + b) = 1 + (a + b + ab)``: every fold halves their number, and nothing cancels.
    """
    total = torch.zeros_like(x[:, :1])
    for _ in range(folds):
        half = x.shape[1] // 2
        first, second = x[:, :half], x[:, half : 2 * half]
        if x.shape[1] % 2:
            total += torch.log1p(x[:, -1:])
        x = first.add_(second.addcmul_(second, first))
    return total + torch.log1p(x).sum(1, keepdim=True)
