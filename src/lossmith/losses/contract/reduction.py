"""What surrounds the losses of examples: smoothed targets, weights along the classes, the reduction, and its precision."""

import math

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.losses.contract.options import Reduction
from lossmith.losses.contract.targets import check_range
from lossmith.torch_compat import is_autocast_enabled

__all__ = ["along_classes", "checked_denominator", "output_dtype", "reduce", "smooth", "sum_of_shares"]

_POSITIVE = Limits(0.0, low_open=True)


def checked_denominator(denominator: object, reduction: Reduction, owner: str) -> float | Tensor:
    """Return what a sum of losses is to be divided by, or raise an error that names what came.

    Args:
        denominator: A number > 0, or a tensor of one number, whose value may be anything.
        reduction: What becomes of the losses.
        owner: Whom the error names.

    Returns:
        The number or the tensor.

    Raises:
        TypeError: If it is no number.
        ValueError: If it is out of range, or losses are not summed.
    """
    if reduction == "none":
        raise ValueError(f"{owner}: denominator must be left out where reduction is 'none', as there is no sum to divide.")
    if isinstance(denominator, (int, float)) and torch.compiler.is_compiling():
        return denominator  # an input of the graph, which serves every value
    if not isinstance(denominator, Tensor):
        return _POSITIVE.check("denominator", denominator, owner=owner) or math.nan
    if denominator.dim() or denominator.dtype is torch.bool or denominator.is_complex():
        got = f"{denominator.dtype} of shape {tuple(denominator.shape)}"
        raise ValueError(f"{owner}: denominator must be a number, or a tensor of one without dimensions, got {got}.")
    return denominator


def reduce(losses: Tensor, share: Tensor | None, reduction: Reduction, denominator: float | Tensor | None) -> Tensor:
    """Return the losses, their sum, or their mean by each example's share of it; None stands for equal shares.

    Args:
        losses: The losses of the examples.
        share: How much each example counts in the mean.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        denominator: What the sum is divided by, instead of the sum of the shares for a mean and of 1 for a sum.

    Returns:
        One number, or a loss for each example.
    """
    if reduction == "none":
        return losses
    if denominator is not None:
        return losses.sum() / denominator
    if reduction == "sum":
        return losses.sum()
    return losses.mean() if share is None else losses.sum() / share.sum()


def sum_of_shares(
    owner: str, target: Tensor, weight: Tensor | None, ignore_index: int, sample_weight: Tensor | None = None
) -> Tensor:
    """Return what a mean over a target divides by.

    Args:
        owner: Whom an error names.
        target: Class indices ``(N, ...)``, or class probabilities ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.
        weight: A factor for each class, or None.
        ignore_index: Target of examples that do not count.
        sample_weight: A factor for each example, or None.

    Returns:
        A tensor of one number, without gradient: an integer where examples are counted, else the sum of their weights.

    Raises:
        ValueError: If the weights of the examples have another shape than they.
        IndexError: If a class index is out of range, where there are class weights.
    """
    shares = _shares(owner, target, weight, ignore_index).detach()
    if sample_weight is None:
        return shares.sum()
    if sample_weight.shape != shares.shape:
        raise ValueError(f"{owner}: sample_weight must have shape {tuple(shares.shape)}, got {tuple(sample_weight.shape)}.")
    return (shares * sample_weight.detach()).sum()


def _shares(owner: str, target: Tensor, weight: Tensor | None, ignore_index: int) -> Tensor:
    """Return how much each example counts."""
    if target.is_floating_point():
        return torch.ones_like(target.select(min(1, target.dim() - 1), 0), dtype=torch.int64)
    valid = target != ignore_index
    if weight is None:
        return valid.long()
    check_range(owner, target, weight.numel(), ignore_index)
    wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
    return torch.where(valid, wide[torch.where(valid, target, 0).long()], 0.0)


def smooth(probabilities: Tensor, smoothing: float) -> Tensor:
    """Return probabilities of which a share is spread over all classes."""
    if smoothing == 0:
        return probabilities
    return probabilities * (1 - smoothing) + smoothing / probabilities.shape[1]


def along_classes(weight: Tensor | None, logits: Tensor) -> Tensor | None:
    """Return one factor per class in a shape that broadcasts to ``(N, C, ...)``."""
    return None if weight is None else weight.to(logits.dtype).view(-1, *[1] * (logits.dim() - 2))


def output_dtype(logits: Tensor, target: Tensor) -> torch.dtype:
    """Return what torch's cross-entropy returns: single precision where autocast is on, else what the inputs promote to."""
    dtype = torch.promote_types(logits.dtype, target.dtype) if target.is_floating_point() else logits.dtype
    kind = logits.device.type
    return torch.promote_types(dtype, torch.float32) if is_autocast_enabled(kind) else dtype
