"""The sigmoid and its integral."""

import math
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from lossmith.numerics.softmax import values_are_at_hand

__all__ = ["losses_and_slopes", "softplus"]

# In rows as long as this, logarithms are taken of products of four.
_LONG = 64

_log_sigmoid_backward = torch.ops.aten.log_sigmoid_backward.grad_input


def softplus(x: Tensor) -> Tensor:
    """Return ``log(1 + exp(x))``; beyond 40 it is ``x`` in double precision, too."""
    return F.softplus(x, threshold=40.0)


def losses_and_slopes(x: Tensor, present: Tensor, share: float = 1.0, place: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the sum along dimension 1 of ``log(1 + exp(-x))`` at one class of each row and ``log(1 + exp(x))`` at all others.

    Its gradient, times ``share``, comes second; ``place`` is where it may be written.

    >>> losses_and_slopes(torch.tensor([[0.0, 9.0, -50.0]]), torch.tensor([[1]]))
    (tensor([0.6933]), tensor([[ 5.0000e-01, -1.2339e-04,  1.9287e-22]]))
    """
    if values_are_at_hand(x) and x.numel():
        for exponential, least in _EXPONENTIALS[x.dtype]:
            odds = exponential(x, present)
            total = _sum_of_log1p(odds)
            low, high = torch.aminmax(total)
            if low.item() >= least * x.shape[1] and high.item() < math.inf:  # nor are they no numbers
                return total, _turn_(_times_probability(share, odds, odds if place is None else place), present)
    turned = x.scatter(1, present, -x.gather(1, present))
    slopes = torch.sigmoid(turned) * share
    return softplus(turned).sum(1), slopes.scatter(1, present, -slopes.gather(1, present))


def _turn_(x: Tensor, present: Tensor) -> Tensor:
    """Change the sign at one class of each row, in place."""
    return x.scatter_(1, present, -1.0, reduce="multiply")


def _times_probability(factor: float, odds: Tensor, place: Tensor) -> Tensor:
    """Return ``factor * odds / (1 + odds)`` for odds >= 0.

    For torch that is a slope of the sigmoid's logarithm, and one operation.
    """
    slope = torch.scalar_tensor(factor, dtype=odds.dtype, device=odds.device)
    product: Tensor = _log_sigmoid_backward(slope, odds, odds, grad_input=place)
    return product


def _exponential(x: Tensor, present: Tensor) -> Tensor:
    return _turn_(x.clone(), present).exp_()


def _power_of_2(x: Tensor, present: Tensor) -> Tensor:
    return _turn_(x * _log2_e(), present).exp2_()


@cache
def _log2_e() -> Tensor:
    """Return a tensor, as a number would be made one at every call; whatever the defaults are when the library is imported."""
    return torch.tensor(math.log2(math.e), dtype=torch.float32, device="cpu")


# How to compute exponentials, of -x where a class is present, and the least sum of a row, as a multiple of its length, for which
# that is exact. The fastest in torch, 2**(x log2(e)), has the rounding of the product, 24 * 2**-24 for x = -24: too much if
# nothing is larger.
_EXPONENTIALS = {
    torch.float32: ((_power_of_2, math.exp(-24)), (_exponential, 0.0)),
    torch.float64: ((_exponential, 0.0),),
}


def _sum_of_log1p(x: Tensor) -> Tensor:
    """Return the sum of ``log(1 + x)`` along dimension 1 for x >= 0, of many with few logarithms.

    ``(1 + a)(1 + b) = 1 + (a + b + a b)``: every fold halves their number, and nothing cancels.
    """
    if x.shape[1] < _LONG:
        return torch.log1p(x).sum(1)
    left = x.shape[1] % 4
    folded = _folded(_folded(x.narrow(1, 0, x.shape[1] - left) if left else x))
    total = folded.log1p_().sum(1)
    return total.add_(torch.log1p(x[:, -left:]).sum(1)) if left else total


def _folded(x: Tensor) -> Tensor:
    first, second = x.chunk(2, 1)
    return torch.addcmul(second, first, second).add_(first)
