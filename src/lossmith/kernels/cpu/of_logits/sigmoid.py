"""Sigmoid cross-entropy."""

import math
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from lossmith.kernels.cpu.evaluation import Evaluation, Kernel, in_blocks
from lossmith.numerics.elementary import softplus
from lossmith.numerics.softmax import unless_diverged, zero_unless_diverged

__all__ = ["sigmoid_cross_entropy"]

# In rows as long as this, logarithms are taken of products of four.
_LONG = 64
# Up to so many elements, a look at all logits takes less time than one at the target's: 5 of 35 microseconds at (128, 10).
_FEW = 1 << 15
# Products of four exponentials of such logits have a place in single precision.
_MODERATE = 22.0

_Turn = Callable[[Tensor, Tensor], Tensor]


def sigmoid_cross_entropy(target: Tensor) -> Kernel:
    """Return the kernel for class indices, or for numbers in [0, 1] for every class."""
    if target.is_floating_point():
        return lambda logits, present, _: in_blocks(_presence, logits, present)

    def kernel(logits: Tensor, target: Tensor, share: float) -> Evaluation:
        return in_blocks(lambda *rows: _target(share, *rows), logits, target)

    return kernel


def _presence(logits: Tensor, present: Tensor, _: Tensor | None) -> Evaluation:
    """The loss is the sum of ``t softplus(-z) + (1 - t) softplus(z)``, its gradient ``(1 - t) sigmoid(z) - t sigmoid(-z)``."""
    absent = 1 - present
    # softplus(z) = log(1 + exp(-|z|)) + max(z, 0): the logarithm is the same on both sides.
    above, below = logits.clamp_min(0.0), logits.neg().clamp_min_(0.0)
    outside = (absent * above).addcmul_(present, below).sum(1)
    small = above.add_(below).neg_().exp_()
    losses = outside.add_(small.log1p_().sum(1))
    if not losses.sum().item() < math.inf:  # some logit is infinite, or not a number
        nothing = zero_unless_diverged(logits)
        losses, absent = losses.add_(nothing.sum(1)), absent.add_(nothing)
    return Evaluation(losses, absent.mul_(torch.sigmoid(logits)).addcmul_(present, torch.sigmoid(-logits), value=-1))


def _target(share: float, logits: Tensor, target: Tensor, place: Tensor | None) -> Evaluation:
    """The sum of ``log(1 + exp(-z))`` at the target and ``log(1 + exp(z))`` elsewhere; sigmoids are its gradient."""
    present = target.unsqueeze(1)
    if (found := _odds_and_losses(logits, present)) is not None:
        odds, losses = found
        return Evaluation(losses, _turn_(_times_probability(share, odds, place), present), has_share=True)
    turned = _turn_(unless_diverged(logits), present)
    slopes = torch.sigmoid(turned).mul_(share)
    return Evaluation(softplus(turned).sum(1), _turn_(slopes, present), has_share=True)


def _odds_and_losses(logits: Tensor, present: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return ``exp(z)``, at the target ``exp(-z)``, and the losses of rows; None where their precision has no place for them."""
    if 0 < logits.numel() <= _FEW and _are_moderate(logits):
        odds = _FASTEST[logits.dtype](logits, present, _turn_)
        return odds, _sum_of_log1p(odds)
    for exponential, least in _EXPONENTIALS[logits.dtype] if logits.numel() else ():
        odds = exponential(logits, present, _turn_unless_infinite_)
        losses = _sum_of_log1p(odds)
        low, high = torch.aminmax(losses)
        if low.item() >= least * logits.shape[1] and high.item() < math.inf:  # which is false for what is not a number, too
            return odds, losses
    return None


def _are_moderate(logits: Tensor) -> bool:
    """Return whether all logits are finite, and so close to 0 that nothing else has to be looked at."""
    low, high = torch.aminmax(logits)
    return low.item() >= -_MODERATE and high.item() <= _MODERATE


def _turn_(x: Tensor, present: Tensor) -> Tensor:
    """Change the sign at one class of each row, in place."""
    return x.scatter_(1, present, -1.0, reduce="multiply")


def _turn_unless_infinite_(x: Tensor, present: Tensor) -> Tensor:
    """Do the same, and make infinite ones NaN: ``exp(-inf)`` would hide that the target's logit is infinite."""
    return x.scatter_add_(1, present, x.gather(1, present).mul_(-2.0))


def _times_probability(factor: float, odds: Tensor, place: Tensor | None) -> Tensor:
    """Return ``factor * odds / (1 + odds)`` for odds >= 0."""
    zero = torch.scalar_tensor(0.0, dtype=odds.dtype, device="cpu")
    return torch.addcdiv(zero, odds, odds + 1, value=factor, out=odds if place is None else place)


def _exponential(x: Tensor, present: Tensor, turn_: _Turn) -> Tensor:
    return turn_(x.clone(), present).exp_()


def _power_of_2(x: Tensor, present: Tensor, turn_: _Turn) -> Tensor:
    return turn_(x * _log2_e(), present).exp2_()


@cache
def _log2_e() -> Tensor:
    """Return a tensor, because a number would be made into one at every call; torch's defaults at import do not matter."""
    return torch.tensor(math.log2(math.e), dtype=torch.float32, device="cpu")


# How to compute exponentials, of -x where a class is present, and the least sum of a row, as a multiple of its length, for which
# that is exact. The fastest in torch, 2**(x log2(e)), has the rounding of the product, 24 * 2**-24 for x = -24: too much if
# nothing is larger.
_EXPONENTIALS = {
    torch.float32: ((_power_of_2, math.exp(-24)), (_exponential, 0.0)),
    torch.float64: ((_exponential, 0.0),),
}
_FASTEST = {dtype: ways[0][0] for dtype, ways in _EXPONENTIALS.items()}


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
