"""Sums of formulas and moved logits, as kernels made of other kernels, and sums that share a softmax."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lossmith.kernels.cpu.evaluation import Evaluation, Kernel, in_blocks
from lossmith.kernels.cpu.target import sum_of_terms, target_and_others
from lossmith.kernels.formula import Shifted
from lossmith.kernels.reference import Term

__all__ = ["kernel_of_biased", "kernel_of_shifted", "kernel_of_sum", "kernel_with_partition"]


def kernel_of_sum(parts: Sequence[tuple[float, Kernel]]) -> Kernel:
    """Return the kernel for a weighted sum of what other kernels give."""

    def evaluate(logits: Tensor, target: Tensor, _: Tensor | None) -> Evaluation:
        (factor, kernel), *others = parts
        found = kernel(logits, target, 1.0)
        losses, direction = factor * found.losses, found.direction.mul_(factor * found.factor)
        for factor, kernel in others:
            found = kernel(logits, target, 1.0)
            losses.add_(found.losses, alpha=factor)
            if isinstance(found.factor, Tensor):
                direction.addcmul_(found.direction, found.factor, value=factor)
            else:
                direction.add_(found.direction, alpha=factor * found.factor)
        return Evaluation(losses, direction)

    return lambda logits, target, _: in_blocks(evaluate, logits, target)


def kernel_of_biased(kernel: Kernel, epsilon: float) -> Kernel:
    """Return the kernel for logits with a bias at the target, which is a constant to the gradient."""

    def evaluate(logits: Tensor, target: Tensor, share: float) -> Evaluation:
        index = target.unsqueeze(1)
        bias = torch.full_like(index, epsilon, dtype=logits.dtype)
        return kernel(logits.scatter_add(1, index, bias), target, share)

    return evaluate


def kernel_of_shifted(kernel: Kernel, formula: Shifted) -> Kernel:
    """Return the kernel for logits with something added at every class, which is a constant to the gradient."""
    return lambda logits, target, share: kernel(formula.shifted(logits), target, share)


def kernel_with_partition(terms: tuple[Term, ...], beta: float, otherwise: Kernel) -> Kernel:
    """Return the kernel for terms of the target's probability and beta times the squared logarithm of the partition sum.

    That logarithm is the target's logit less ``log p``, so that one softmax tells all, where p is moderate. With the slope
    ``s = 2 beta log Z`` the gradient is ``(pull + s) p_j``, and at the target ``s p - pull (1 - p)``.
    """

    def evaluate(logits: Tensor, target: Tensor, share: float) -> Evaluation:
        index = target.unsqueeze(1)
        own, others = target_and_others(logits, index)
        if own.least == 0:
            return otherwise(logits, target, share)
        value, pull = sum_of_terms(terms, own)
        log_partition = logits.gather(1, index).add_(own.surprise)
        slope = 2 * beta * log_partition
        entry = (slope * own.p).sub_(pull * own.rest)
        losses = value.addcmul(log_partition, log_partition, value=beta)
        return Evaluation(losses.squeeze(1), others.mul_(slope + pull).scatter_(1, index, entry))

    return evaluate
