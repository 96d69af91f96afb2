"""The sigmoid and its integral."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from lossmith.numerics.softmax import values_are_at_hand

__all__ = ["softplus", "summed_softplus_and_sigmoid"]

# exp(x) = 2**(x log2(e)), the fastest of torch's exponentials, has the rounding of the product: below 2**-20 for |x| up to here.
_LARGEST_FOR_EXP2 = 16.0


def softplus(x: Tensor) -> Tensor:
    """Return ``log(1 + exp(x))``; beyond 40 it is ``x`` in double precision, too."""
    return F.softplus(x, threshold=40.0)


def summed_softplus_and_sigmoid(x: Tensor, omitted: Tensor, place: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the sum of ``log(1 + exp(x))`` along dimension 1 and ``1 / (1 + exp(-x))``, but for one entry of each row.

    ``place`` is where the latter may be written.

    >>> x, omitted = torch.tensor([[0.0, 9.0, -50.0]]), torch.tensor([[1]])
    >>> summed_softplus_and_sigmoid(x, omitted)
    (tensor([[0.6931]]), tensor([[5.0000e-01, 0.0000e+00, 1.9287e-22]]))
    """
    low, high = _bounds(x)
    folds = _possible_folds(high, x.dtype)
    if folds is None:
        return softplus(x).scatter(1, omitted, 0.0).sum(1, keepdim=True), torch.sigmoid(x).scatter(1, omitted, 0.0)
    is_small = low > -_LARGEST_FOR_EXP2 and high < _LARGEST_FOR_EXP2 and x.dtype == torch.float32
    odds = (x * math.log2(math.e)).exp2_() if is_small else x.exp()
    odds.scatter_(1, omitted, 0.0)
    factors = 1 + odds
    logarithms = _sum_of_log1p(odds, factors, folds)
    return logarithms, torch.div(odds, factors, out=factors if place is None else place)


def _bounds(x: Tensor) -> tuple[float, float]:
    """Return the smallest and the largest number, or infinities where they are not known."""
    if not values_are_at_hand(x) or not x.numel():
        return -math.inf, math.inf
    low, high = torch.aminmax(x)
    return low.item(), high.item()


def _possible_folds(largest: float, dtype: torch.dtype) -> int | None:
    """Return how often factors ``1 + exp(x)`` can be multiplied in pairs before they overflow, or None if they do at once."""
    room = math.log(torch.finfo(dtype).max) / (max(largest, 0.0) + math.log(2))
    return min(int(math.log2(room)), 3) if room >= 1 else None  # NaN compares False


def _sum_of_log1p(x: Tensor, factors: Tensor, folds: int) -> Tensor:
    """Return the sum of ``log(1 + x)`` along dimension 1 for x >= 0 and ``factors = 1 + x``, with few logarithms.

    ``(1 + a)(1 + b) = 1 + (a + b (1 + a))``: every fold halves their number, and nothing cancels.
    """
    total: Tensor | float = 0.0
    for fold in range(folds):
        half = x.shape[1] // 2
        first, second = x[:, :half], x[:, half : 2 * half]
        if x.shape[1] % 2:
            total = total + torch.log1p(x[:, -1:])
        x = torch.addcmul(first, second, factors[:, :half]) if fold == 0 else first.add_(second.addcmul_(second, first))
    return torch.log1p(x).sum(1, keepdim=True) + total
