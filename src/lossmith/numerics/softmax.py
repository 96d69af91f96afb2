"""Softmax probabilities that keep every digit where one class has nearly all of the mass.

``1 - p`` and ``log p`` of the dominating class are lost to rounding when computed from ``p`` itself. They are exact when
computed from the sum of the *other* classes' probabilities, and so is the gradient of whatever is built on them.
"""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["ClassSoftmax", "TargetSoftmax", "class_softmax", "overwrite", "target_softmax"]


class TargetSoftmax(NamedTuple):
    """The softmax as seen from one class of each row, for logits ``(N, C, ...)``."""

    log_prob: Tensor
    """log p of the target, ``(N, 1, ...)``."""
    rest: Tensor
    """1 - p of the target, ``(N, 1, ...)``."""
    other_probs: Tensor
    """The probabilities with 0 at the target, ``(N, C, ...)``."""


class ClassSoftmax(NamedTuple):
    """The softmax of every class, for logits ``(N, C, ...)``."""

    log_probs: Tensor
    probs: Tensor
    top: Tensor
    """Index of the most probable class, ``(N, 1, ...)``."""


def overwrite(tensor: Tensor, index: Tensor, value: Tensor | float) -> Tensor:
    """Write ``value`` at one class of each row of a temporary, in place where no gradient is recorded."""
    if torch.is_grad_enabled():
        return tensor.scatter(1, index, value)
    return tensor.scatter_(1, index, value)


def target_softmax(logits: Tensor, index: Tensor) -> TargetSoftmax:
    """Return the softmax as seen from the class ``index`` ``(N, 1, ...)`` of each row."""
    if _values_are_at_hand(logits):
        probs = torch.softmax(logits, 1)
        prob = probs.gather(1, index)
        # log p = -log(1 + (1 - p) / p) is exact unless p left the range of normal numbers.
        if prob.numel() and prob.amin() > torch.finfo(prob.dtype).tiny * 2.0**20:
            other_probs = overwrite(probs, index, 0.0)
            rest = other_probs.sum(1, keepdim=True)
            return TargetSoftmax(-torch.log1p(rest / prob), rest, other_probs)
    return _target_softmax_of_any_logits(logits, index)


def _values_are_at_hand(logits: Tensor) -> bool:
    """Whether a decision that depends on values costs nothing: not on accelerators, in graphs, or in recorded gradients."""
    return logits.device.type == "cpu" and not torch.compiler.is_compiling() and not torch.is_grad_enabled()


def _target_softmax_of_any_logits(logits: Tensor, index: Tensor) -> TargetSoftmax:
    gap = logits - logits.amax(1, keepdim=True).detach()
    target_gap = gap.gather(1, index)
    others = overwrite(gap.exp(), index, 0.0)
    other_sum = others.sum(1, keepdim=True)
    # The sum of all exponentials less 1. Where the target is the largest, target_gap is 0 and this is the others' sum
    # to the last digit; elsewhere the others contain a 1, and log p <= target_gap is far from 0 whenever this cancels.
    excess = other_sum + torch.expm1(target_gap)
    total = 1 + excess
    return TargetSoftmax(target_gap - torch.log1p(excess), other_sum / total, others / total)


def class_softmax(logits: Tensor) -> ClassSoftmax:
    """Return probabilities and log-probabilities of all classes, exact also for a class that has nearly all of the mass."""
    log_probs = torch.log_softmax(logits, 1)
    probs = log_probs.exp()
    top = probs.argmax(1, keepdim=True)
    top_prob = probs.gather(1, top)
    rest = probs.scatter(1, top, 0.0).sum(1, keepdim=True)
    return ClassSoftmax(overwrite(log_probs, top, -torch.log1p(rest / top_prob)), probs, top)
