"""Losses of tempered probabilities p with their gradients in closed form.

With ``pull = p**t2 dloss/dp`` and the escort distribution ``E = p**t2 / sum(p**t2)``, the gradient with respect to the logits
is ``pull - E sum(pull)``. Class indices with t2 in [1, 5] have fast kernels of their own.
"""

import torch
from torch import Tensor

from lossmith.kernels.cpu.evaluation import Evaluation, Kernel, in_blocks
from lossmith.kernels.cpu.integer_tail import fast_normalize
from lossmith.numerics.bregman import tempered_divergence, tempered_divergence_from_one
from lossmith.numerics.elementary import box_cox
from lossmith.numerics.tempered import TemperedProbs, escort_pullback, power, probs_and_logs, tempered_probs

__all__ = ["bi_tempered", "tsallis"]

# The largest of ten million probabilities is at least 1e-7, and higher powers of that have no place in single precision.
LARGEST_FAST_T2 = 5


def bi_tempered(target: Tensor, *, t1: float, t2: float) -> Kernel:
    """Return the kernel for class indices, or for a target distribution."""

    def divergence(logits: Tensor, target: Tensor, _: Tensor | None) -> Evaluation:
        probs = _probs(logits, t2)
        losses = tempered_divergence(target, probs.log_probs, t1).sum(1)
        return Evaluation(losses, escort_pullback(_divergence_pull(probs, target, t1, t2), probs.log_probs, t2))

    if target.is_floating_point():
        return lambda logits, target, _: in_blocks(divergence, logits, target)
    if t1 > 1 or not 1 <= t2 <= LARGEST_FAST_T2:
        return lambda logits, target, _: in_blocks(
            lambda rows, labels, place: divergence(rows, _one_hot(rows, labels), place), logits, target
        )
    return lambda logits, target, _: in_blocks(lambda *rows: _target_divergence(t1, t2, *rows), logits, target)


def tsallis(target: Tensor, *, t1: float, t2: float) -> Kernel:
    """Return the kernel for class indices, or for a factor per class y."""

    def every_class(logits: Tensor, target: Tensor, _: Tensor | None) -> Evaluation:
        log_probs = _probs(logits, t2).log_probs
        losses = torch.where(target == 0, 0.0, -target * box_cox(log_probs, 1 - t1)).sum(1)
        # Where t1 > t2 a power may be infinite, and what costs nothing pulls at nothing even then.
        pull = torch.where(target == 0, 0.0, -target * power(log_probs, t2 - t1))
        return Evaluation(losses, escort_pullback(pull, log_probs, t2))

    if target.is_floating_point():
        return lambda logits, target, _: in_blocks(every_class, logits, target)
    if not 1 <= t2 <= LARGEST_FAST_T2:
        return lambda logits, target, _: in_blocks(
            lambda rows, labels, place: every_class(rows, _one_hot(rows, labels), place), logits, target
        )
    return lambda logits, target, _: in_blocks(lambda *rows: _target_tsallis(t1, t2, *rows), logits, target)


def _probs(logits: Tensor, t: float) -> TemperedProbs:
    return tempered_probs(logits, t) if t < 1 else probs_and_logs(fast_normalize(logits, t), logits.dtype)


def _one_hot(logits: Tensor, target: Tensor) -> Tensor:
    return torch.zeros_like(logits).scatter_(1, target.unsqueeze(1), 1.0)


def _divergence_pull(probs: TemperedProbs, target: Tensor, t1: float, t2: float) -> Tensor:
    """Return ``p**(t2-t1) (p - y)``."""
    p, log_probs = probs
    top = log_probs.argmax(1, keepdim=True)
    # Where one class has most of the mass, p - y = (1 - y) - (1 - p), and 1 - p is the sum of the others.
    rest = p.scatter(1, top, 0.0).sum(1, keepdim=True)
    error = p - target
    top_error = torch.where(rest < 0.5, 1 - target.gather(1, top) - rest, error.gather(1, top))
    pull = power(log_probs, t2 - t1) * error.scatter(1, top, top_error)
    if t1 <= t2:
        return pull
    # The first factor may be too large for any format, and p too small.
    return torch.where(target == 0, power(log_probs, 1 + t2 - t1), pull)


def _target_divergence(t1: float, t2: float, logits: Tensor, target: Tensor, _: Tensor | None) -> Evaluation:
    """The pull is ``p**(1+t2-t1)``, less ``p**(t2-t1)`` at the target.

    ``dloss/dp`` is taken less its value at the largest class: a constant changes nothing, and that entry cannot cancel.
    """
    index = target.unsqueeze(1)
    seen = _SeenFromTarget(logits, index, t2)
    slopes = seen.solution.power(1 - t1)
    shares = (seen.other_probs * slopes).sum(1, keepdim=True)
    losses = tempered_divergence_from_one(seen.log_prob, t1) + shares / (2 - t1)
    top_slope = slopes.amax(1, keepdim=True)
    target_pull = -power(seen.log_prob, t2 - t1) * seen.rest - seen.target_weight * top_slope
    target_pull = torch.where(seen.is_top, 0.0, target_pull)
    slopes = slopes - torch.where(seen.is_top, -power(seen.log_prob, -t1) * seen.rest, top_slope)
    pull = (seen.other_weights * slopes).sum(1, keepdim=True) + target_pull
    mean = pull / (seen.other_weight + seen.target_weight)
    gradient = slopes.sub_(mean).mul_(seen.other_weights)
    return Evaluation(losses.squeeze(1), gradient.scatter_(1, index, target_pull - seen.target_weight * mean))


def _target_tsallis(t1: float, t2: float, logits: Tensor, target: Tensor, _: Tensor | None) -> Evaluation:
    """The gradient is ``p_y**(t2-t1) (E - onehot)``."""
    index = target.unsqueeze(1)
    seen = _SeenFromTarget(logits, index, t2)
    pull = power(seen.log_prob, t2 - t1) / (seen.other_weight + seen.target_weight)
    gradient = seen.other_weights.mul_(pull).scatter_(1, index, -pull * seen.other_weight)
    return Evaluation(-box_cox(seen.log_prob, 1 - t1).squeeze(1), gradient)


class _SeenFromTarget:
    """Tempered probabilities and escort weights ``p**t2``, those of the target apart from the others."""

    def __init__(self, logits: Tensor, index: Tensor, t2: float) -> None:
        self.solution = fast_normalize(logits, t2)
        gap = self.solution.gap.gather(1, index)
        self.is_top = gap == 0
        self.other_weights = self.solution.escort_weights().scatter_(1, index, 0.0)
        self.other_weight = self.other_weights.sum(1, keepdim=True)
        self.other_probs = self.solution.probs.scatter_(1, index, 0.0)
        self.rest = self.other_probs.sum(1, keepdim=True)
        self.log_prob = torch.where(self.rest < 0.5, torch.log1p(-self.rest), self.solution.log_probs(gap))
        self.target_weight = power(self.log_prob, t2)
