"""Losses that look at the size of the logits: penalties on it, logits of one length, and squared errors."""

import math

import torch
from torch import Tensor

from lossmith.kernels.cpu.classes import sum_of_surprises
from lossmith.kernels.cpu.evaluation import FEW_PASSES, Evaluation, Kernel, in_blocks
from lossmith.kernels.cpu.of_logits.norms import Directions, sum_of_squares
from lossmith.kernels.cpu.target import rounded, target_softmax

__all__ = ["logit_norm", "logit_penalty", "squared_error", "squared_log_partition"]

_LOG2_E = math.log2(math.e)
# The exponentials of vectors that are shorter than this, their sums and their quotients are numbers in single precision.
_SHORT = 36.0


def logit_penalty(target: Tensor, *, beta: float) -> Kernel:
    """Return the kernel for class indices, or for a factor per class."""
    if target.is_floating_point():
        return lambda logits, factors, _: in_blocks(lambda *rows: _every_penalty(beta, *rows), logits, factors)
    return lambda logits, target, _: _target_penalty(beta, logits, target)


def _target_penalty(beta: float, logits: Tensor, target: Tensor) -> Evaluation:
    """The gradient is ``p - onehot + 2 beta z``."""
    softmax = target_softmax(logits, target.unsqueeze(1))
    losses = torch.add(softmax.target.surprise.squeeze(1), sum_of_squares(logits, 1), alpha=beta)
    return Evaluation(rounded(losses, logits), softmax.direction.add_(logits, alpha=2 * beta))


def _every_penalty(beta: float, logits: Tensor, factors: Tensor, place: Tensor | None) -> Evaluation:
    """For factors that add up to A, the gradient is ``A p - a + 2 beta A z``."""
    value, descent = sum_of_surprises(logits, factors, place)
    weight = beta * factors.sum(1, keepdim=True)
    losses = value + weight * sum_of_squares(logits, 1).unsqueeze(1)
    return Evaluation(losses.squeeze(1), descent.addcmul_(logits, weight, value=-2), -1.0)


def logit_norm(target: Tensor, *, tau: float) -> Kernel:
    """Return the kernel for class indices, or for a factor per class."""
    length = 1 / tau
    if target.is_floating_point():
        return lambda logits, factors, _: in_blocks(lambda *rows: _every_norm(length, *rows), logits, factors)

    def kernel(logits: Tensor, target: Tensor, share: float) -> Evaluation:
        evaluate = _norm_by_powers if logits.dim() == 2 and length < _SHORT else _norm_by_softmax
        return in_blocks(lambda rows, labels, _: evaluate(length, share, rows, labels), logits, target, FEW_PASSES)

    return kernel


def _norm_by_powers(length: float, share: float, logits: Tensor, target: Tensor) -> Evaluation:
    """No exponential of ``v = z / (tau ||z||)`` is out of range, so none needs to be divided by the largest.

    ``e**v`` is ``2**(v log2(e))``, the fastest exponential of torch, whose factor costs nothing here.
    """
    index, directions = target.unsqueeze(1), Directions(logits, length * _LOG2_E)
    if not directions.are_moderate:
        return _norm_by_softmax(length, share, logits, target)
    powers = directions.scaled.exp2_()
    own, total = powers.gather(1, index), powers.sum(1, keepdim=True)
    inverse = total / own
    if inverse.amin().item() > 2:
        losses, rest = inverse.log_(), total - own
    else:  # what one class leaves to the others is lost in the sum of all
        rest = powers.scatter_(1, index, 0.0).sum(1, keepdim=True)
        losses, total = torch.log1p(rest / own), own + rest
    lengths = torch.scalar_tensor(length * share, dtype=logits.dtype, device="cpu") / total
    gradient = directions.pull_back(powers.scatter_(1, index, -rest), lengths)
    return Evaluation(losses.squeeze(1), gradient, has_share=True)


def _norm_by_softmax(length: float, share: float, logits: Tensor, target: Tensor) -> Evaluation:
    """The gradient with respect to v is pulled back to that with respect to the direction of z."""
    directions = Directions(logits, length)
    softmax = target_softmax(directions.scaled, target.unsqueeze(1))
    del directions.scaled  # makes room for the next buffer
    gradient = directions.pull_back(softmax.direction, length * share)
    return Evaluation(rounded(softmax.target.surprise, logits).squeeze(1), gradient, has_share=True)


def _every_norm(length: float, logits: Tensor, factors: Tensor, _: Tensor | None) -> Evaluation:
    """The same for a factor per class."""
    directions = Directions(logits, length)
    value, descent = sum_of_surprises(directions.scaled, factors)
    del directions.scaled
    return Evaluation(value.squeeze(1), directions.pull_back(descent, length), -1.0)


def squared_error(target: Tensor, *, kappa: float, value: float, scale: float) -> Kernel:
    """Return the kernel for class indices, or for a factor per class."""
    if target.is_floating_point():
        return lambda logits, factors, _: in_blocks(lambda *rows: _every_square(kappa, value, scale, *rows), logits, factors)
    return lambda logits, target, _: _target_square(kappa, value, scale, logits, target)


def _target_square(kappa: float, value: float, scale: float, logits: Tensor, target: Tensor) -> Evaluation:
    """The gradient is ``2 scale / K`` times ``z``, and ``kappa (z_y - value)`` at the target."""
    index, scale = target.unsqueeze(1), scale / logits.shape[1]
    error = logits.gather(1, index) - value
    others = logits.scatter(1, index, 0.0)
    losses = scale * (kappa * error.square().squeeze(1) + sum_of_squares(others, 1))
    return Evaluation(losses, others.scatter_(1, index, kappa * error), 2 * scale)


def _every_square(kappa: float, value: float, scale: float, logits: Tensor, factors: Tensor, _: Tensor | None) -> Evaluation:
    """For a factor per class ``a_c``: the sum of ``kappa a_c (z_c - value)**2 + (sum(a) - a_c) z_c**2``."""
    scale = scale / logits.shape[1]
    error, others = logits - value, factors.sum(1, keepdim=True) - factors
    right, wrong = (kappa * factors).mul_(error), others.mul_(logits)
    losses = scale * (right * error).addcmul_(wrong, logits).sum(1)
    return Evaluation(losses, right.add_(wrong), 2 * scale)


def squared_log_partition(target: Tensor) -> Kernel:
    """Return the kernel for class indices, or for a factor per class."""
    has_factors = target.is_floating_point()

    def kernel(logits: Tensor, target: Tensor, _: float) -> Evaluation:
        """The gradient of ``(log sum_c exp z_c)**2`` is the softmax times twice the logarithm."""
        log_sum = torch.logsumexp(logits, 1, keepdim=True)
        times = target.sum(1, keepdim=True) if has_factors else 1.0
        return Evaluation((times * log_sum.square()).squeeze(1), (logits - log_sum).exp_(), 2 * times * log_sum)

    return kernel
