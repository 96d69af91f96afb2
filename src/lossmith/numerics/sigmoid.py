"""The sigmoid and its integral."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from lossmith.numerics.softmax import values_are_at_hand

__all__ = ["softplus", "summed_softplus_and_sigmoid"]

# exp(x) = 2**(x log2(e)), the fastest of torch's exponentials, has the rounding of the product: 24 * 2**-24 for x = -24. Rows in
# which nothing is larger, whose sums are below this times their length, take the slow one.
_LEAST_FOR_EXP2 = math.exp(-24)
# In rows as long as this, logarithms are taken of products.
_LONG = 64
_FOLDS = 3


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
    if values_are_at_hand(x) and x.numel():
        for exponential in (_exp_by_2, torch.exp) if x.dtype == torch.float32 else (torch.exp,):
            odds = exponential(x).scatter_(1, omitted, 0.0)
            factors = 1 + odds
            total = _sum_of_log1p(odds, factors)
            low, high = (bound.item() for bound in torch.aminmax(total))
            is_exact = low > _LEAST_FOR_EXP2 * x.shape[1] or exponential is torch.exp
            if is_exact and high < math.inf:  # neither too large for exponentials or their products, nor no numbers
                return total, torch.div(odds, factors, out=factors if place is None else place)
    return softplus(x).scatter(1, omitted, 0.0).sum(1, keepdim=True), torch.sigmoid(x).scatter(1, omitted, 0.0)


def _exp_by_2(x: Tensor) -> Tensor:
    return (x * math.log2(math.e)).exp2_()


def _sum_of_log1p(x: Tensor, factors: Tensor) -> Tensor:
    """Return the sum of ``log(1 + x)`` along dimension 1 for x >= 0 and ``factors = 1 + x``, of many with few logarithms.

    ``(1 + a)(1 + b) = 1 + (a + b (1 + a))``: every fold halves their number, and nothing cancels.
    """
    total: Tensor | float = 0.0
    for fold in range(_FOLDS if x.shape[1] >= _LONG else 0):
        half = x.shape[1] // 2
        first, second = x[:, :half], x[:, half : 2 * half]
        if x.shape[1] % 2:
            total = total + torch.log1p(x[:, -1:])
        x = torch.addcmul(first, second, factors[:, :half]) if fold == 0 else first.add_(second.addcmul_(second, first))
    return torch.log1p(x).sum(1, keepdim=True) + total
