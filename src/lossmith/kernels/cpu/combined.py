"""Sums of formulas and moved logits, as kernels made of other kernels."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lossmith.kernels.cpu.evaluation import Evaluation, Kernel, in_blocks
from lossmith.kernels.formula import Shifted

__all__ = ["kernel_of_biased", "kernel_of_shifted", "kernel_of_sum"]


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
