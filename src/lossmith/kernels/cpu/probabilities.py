"""Losses that compare the probabilities of classes: with the largest one, or with one another."""

from typing import NamedTuple

import torch
from torch import Tensor

from lossmith.kernels.cpu.classes import ClassProbabilities
from lossmith.kernels.cpu.evaluation import Evaluation, Kernel, in_blocks
from lossmith.kernels.cpu.target import rounded, target_softmax
from lossmith.numerics.softmax import zero_unless_diverged

__all__ = ["complement_entropy", "maximum_probability"]


def maximum_probability(target: Tensor) -> Kernel:
    """Return the kernel for class indices, or for a factor per class."""
    if target.is_floating_point():
        return lambda logits, factors, _: in_blocks(_every_lead, logits, factors)
    return lambda logits, target, _: _target_lead(logits, target)


def _target_lead(logits: Tensor, target: Tensor) -> Evaluation:
    """With the lead ``D = p_m - p_y`` of the largest class m and ``L = -log p_y``, the loss is ``D L`` and its gradient

    ``p_j D (1 - L)`` away from m and y, ``p_m (D + L (1 - D))`` at m, and ``-(D (1 - p_y) + L p_y (1 + D))`` at y. Nothing
    cancels when ``1 - D`` is taken as ``2 p_y`` and the sum of the rest. Where y is the largest class all of it is 0.
    """
    index = target.unsqueeze(1)
    softmax = target_softmax(logits, index)
    rival = softmax.direction.argmax(1, keepdim=True)
    rival_prob = softmax.direction.gather(1, rival).clamp(min=0.0)
    behind = (logits.gather(1, index) - logits.gather(1, rival)).clamp(max=0.0)
    lead = -rival_prob * torch.expm1(behind)
    cost = torch.where(behind >= 0, 0.0, rounded(softmax.target.surprise, logits))
    prob, rest = rounded(softmax.target.p, logits), rounded(softmax.target.rest, logits)
    bystanders = softmax.direction.scatter_(1, rival, 0.0).scatter_(1, index, 0.0)
    lag = 2 * prob + bystanders.sum(1, keepdim=True)
    gradient = bystanders.mul_(lead - lead * cost).scatter_(1, rival, rival_prob * (lead + cost * lag))
    gradient = gradient.scatter_(1, index, -(lead * rest + cost * prob * (1 + lead)))
    return Evaluation((lead * cost).squeeze(1), gradient)


def _every_lead(logits: Tensor, factors: Tensor, _: Tensor | None) -> Evaluation:
    """For a factor per class ``a_c`` the loss is the sum of ``a_c D_c L_c``, which pulls at class j by

    ``p_j sum_c(a_c D_c (1 - L_c)) - a_j (p_j L_j + D_j)``, and at m by ``p_m sum_c a_c (D_c + L_c (1 - D_c))`` over all other c.
    """
    top, classes = logits.argmax(1, keepdim=True), ClassProbabilities(logits)
    prob, cost = classes.p.gather(1, top), classes.surprise
    lead = -prob * torch.expm1(logits - logits.gather(1, top))
    losses = (factors * lead * cost).sum(1, keepdim=True)
    lag = classes.p + classes.p.scatter(1, top, 0.0).sum(1, keepdim=True)  # 1 - D, without a difference
    at_top = prob * (factors * torch.addcmul(lead, cost, lag)).scatter(1, top, 0.0).sum(1, keepdim=True)
    shared = (factors * lead).sum(1, keepdim=True) - losses
    gradient = classes.p * shared - factors * torch.addcmul(lead, classes.p, cost)
    return Evaluation(losses.squeeze(1), gradient.scatter_(1, top, at_top))


def complement_entropy(target: Tensor) -> Kernel:
    """Return the kernel for class indices, or for a factor per class."""
    evaluate = _complement_of_each if target.is_floating_point() else _complement_of_target
    return lambda logits, target, _: in_blocks(evaluate, logits, target)


def _complement_of_target(logits: Tensor, target: Tensor, _: Tensor | None) -> Evaluation:
    losses, gradient = _complement_of(logits, target.unsqueeze(1))
    return Evaluation(losses.squeeze(1), gradient)


def _complement_of(logits: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss for one class of each row as the target, ``(N, 1, ...)``, and its gradient ``r (log r - loss)``.

    Without the target, r is the softmax of what is left; the gradient is 0 at the target.
    """
    # The lowest finite number rather than -inf, so that a row with nothing left does not become NaN.
    left = ClassProbabilities(logits.scatter(1, index, torch.finfo(logits.dtype).min))
    log_shares = left.log.scatter_(1, index, 0.0)
    shares = left.p.scatter_(1, index, 0.0)
    losses = (shares * log_shares).sum(1, keepdim=True) + zero_unless_diverged(logits.gather(1, index))
    return losses, log_shares.sub_(losses).mul_(shares)


def _complement_of_each(logits: Tensor, factors: Tensor, _: Tensor | None) -> Evaluation:
    """For a factor per class ``a_c``, the sum of ``a_c E_c``, where ``E_c`` is the loss with class c as the target.

    ``E_c`` pulls at class j by ``p_j / q_c (log p_j - log q_c - E_c)``, where ``q_c = 1 - p_c``. For the sum over all c but j, a
    sum of ``w_c = a_c / q_c`` and one of ``w_c (log q_c + E_c)`` are enough. The most probable class is cut out by itself: all
    others leave ``q_c >= 1/2``, so nothing is divided by a small number.
    """
    top = logits.argmax(1, keepdim=True)
    of_top, pull_of_top = _complement_of(logits, top)
    left = _left_without_each(logits, top)
    losses = (factors * left.entropies.scatter_(1, top, of_top)).sum(1)
    weights = (factors * left.inverse).scatter_(1, top, 0.0)
    shifts = weights * left.log_rest.add_(left.entropies)
    pulls = left.classes.log * (weights.sum(1, keepdim=True) - weights) - (shifts.sum(1, keepdim=True) - shifts)
    return Evaluation(losses, pulls.mul_(left.classes.p).addcmul_(pull_of_top, factors.gather(1, top)))


class _Left(NamedTuple):
    """What is left without each class but the most probable one, whose entries mean nothing."""

    classes: ClassProbabilities
    log_rest: Tensor
    """``log(1 - p)``."""
    inverse: Tensor
    """``1 / (1 - p)``."""
    entropies: Tensor
    """``(sum over j != c of p_j log p_j) / (1 - p_c) - log(1 - p_c)``."""


def _left_without_each(logits: Tensor, top: Tensor) -> _Left:
    classes = ClassProbabilities(logits)
    negative_entropies = classes.p * classes.log
    total = negative_entropies.sum(1, keepdim=True)
    others = classes.p.scatter(1, top, 0.0)
    log_rest, inverse = torch.log1p(-others), 1 / (1 - others)
    return _Left(classes, log_rest, inverse, (total - negative_entropies) * inverse - log_rest)
