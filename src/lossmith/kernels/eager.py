"""What engines for processors have in common: which calls they take, and a gradient that was found together with the loss."""

import math
from typing import Any

import torch
from torch import Tensor

from lossmith.torch_compat import (
    are_transforms_active,
    is_graph_kept,
    is_in_forward_mode,
    is_one_of_many_gradients,
    is_traced,
)

__all__ = ["differentiable_gradient", "is_differentiated", "is_known", "is_plain_call", "scaled", "share_of_rows"]


def is_plain_call(logits: Tensor, target: Tensor) -> bool:
    """Return whether this is a plain call in eager mode on a CPU, from which at most a gradient is wanted.

    Args:
        logits: The logits.
        target: The target.

    Returns:
        Whether kernels for processors may run.
    """
    return (
        logits.is_cpu
        and not target.requires_grad
        and not is_traced()
        and not are_transforms_active()
        and not is_in_forward_mode()
    )


def is_known(denominator: float | Tensor | None) -> bool:
    """Return whether a denominator is a number at hand, and not one to be differentiated or on another device.

    Args:
        denominator: What a sum is divided by.

    Returns:
        Whether it may be read.
    """
    return not isinstance(denominator, Tensor) or (denominator.is_cpu and not denominator.requires_grad)


def share_of_rows(logits: Tensor, denominator: float | Tensor | None) -> float:
    """Return what each row counts in a mean.

    Args:
        logits: ``(N, C)``.
        denominator: What the sum is divided by, instead of N.

    Returns:
        The factor of each row.
    """
    if denominator is None:
        return 1 / logits.shape[0]
    number = float(denominator)
    return 1 / number if number else math.inf  # as torch divides


def is_differentiated() -> bool:
    """Return whether a gradient of the gradient will be wanted."""
    return torch.is_grad_enabled() or is_in_forward_mode()


def differentiable_gradient(ctx: Any, grad: Tensor) -> Tensor:
    """Return the gradient by the formula, which can be differentiated again.

    Args:
        ctx: What an operation kept: ``formula``, and logits and target as the first of its tensors.
        grad: The gradient of each loss.

    Returns:
        The gradient of the logits.
    """
    logits, target = ctx.saved_tensors[:2]
    with torch.enable_grad():
        found = ctx.formula.losses(logits, target)
        gradient: Tensor = torch.autograd.grad(found, logits, grad, create_graph=True)[0]
    return gradient


def scaled(kept: Tensor, factor: Tensor) -> Tensor:
    """Return what was kept times a factor: in its own place if the graph ends with this gradient.

    Args:
        kept: What an operation kept.
        factor: The incoming gradient.

    Returns:
        Their product.
    """
    if is_graph_kept() or is_one_of_many_gradients(factor) or is_traced():
        return kept * factor
    if factor.numel() == 1 and factor.item() == 1:
        return kept
    return kept.mul_(factor)
