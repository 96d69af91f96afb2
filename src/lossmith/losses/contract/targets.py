"""What a loss may be called with, and one clear line of error for anything else."""

from typing import NamedTuple, Self

import torch
from torch import Tensor

__all__ = ["ClassIndices", "are_all_classes", "are_usual", "check_range", "check_shapes", "one_hot"]

_PRECISIONS = (torch.float32, torch.float64)


def check_shapes(owner: str, logits: Tensor, target: Tensor, sample_weight: Tensor | None, weight: Tensor | None) -> None:
    """Raise an error that names the argument, what was expected and what came.

    Args:
        owner: Whom the error names.
        logits: What was given as logits.
        target: What was given as target.
        sample_weight: What was given as weights of the examples, or None.
        weight: The class weights, or None.

    Raises:
        TypeError: If one is not a tensor, or has a type that it cannot have.
        ValueError: If the shapes do not fit one another.
    """
    for name, value in (("logits", logits), ("target", target), ("sample_weight", sample_weight)):
        if not isinstance(value, Tensor) and not (name == "sample_weight" and value is None):
            raise TypeError(f"{owner}: {name} must be a tensor, got {type(value).__name__}.")
    if not logits.is_floating_point():
        raise TypeError(f"{owner}: logits must be floating point, got {logits.dtype}.")
    num_classes = logits.shape[min(1, logits.dim() - 1)] if logits.dim() else 0
    if num_classes == 0:
        raise ValueError(f"{owner}: logits must be (C), (N, C) or (N, C, d1, ...) with C >= 1, got shape {tuple(logits.shape)}.")
    if target.dtype is torch.bool or target.is_complex():
        hint = "; .float() makes probabilities of it" if target.dtype is torch.bool else ""
        raise TypeError(f"{owner}: target must be integer class indices or class probabilities, got {target.dtype}{hint}.")
    indices_shape = logits.shape[:1] + logits.shape[2:] if logits.dim() > 1 else torch.Size()
    expected = logits.shape if target.is_floating_point() else indices_shape
    if target.shape != expected:
        kind = "probabilities" if target.is_floating_point() else f"class indices ({target.dtype})"
        is_multi_hot = target.shape == logits.shape
        hint = "; if it has a number for every class, .float() makes probabilities of it" if is_multi_hot else ""
        raise ValueError(
            f"{owner}: target of {kind} must have shape {tuple(expected)} for logits of shape {tuple(logits.shape)},"
            f" got {tuple(target.shape)}{hint}."
        )
    if sample_weight is not None and sample_weight.shape != indices_shape:
        raise ValueError(f"{owner}: sample_weight must have shape {tuple(indices_shape)}, got {tuple(sample_weight.shape)}.")
    if weight is not None and weight.numel() != num_classes:
        raise ValueError(f"{owner}: weight must hold {num_classes} numbers, one per class of logits, got {weight.numel()}.")


def are_usual(logits: object, target: object) -> bool:
    """Return whether these are logits ``(N, C)`` and a target of either kind that need no conversion, the usual case.

    Args:
        logits: What was given as logits.
        target: What was given as target.

    Returns:
        True if nothing has to be converted, checked further or reshaped.
    """
    if type(logits) is not Tensor or type(target) is not Tensor:
        return False
    dtype, shape, of_target = logits.dtype, logits.shape, target.shape
    if dtype not in _PRECISIONS or len(shape) != 2 or 0 in shape:
        return False
    if target.dtype is torch.int64:
        return len(of_target) == 1 and of_target[0] == shape[0]
    return target.dtype is dtype and of_target == shape


class ClassIndices(NamedTuple):
    """Class indices that may be used as they are, and which of them count."""

    target: Tensor
    """Valid indices; 0 where the example is ignored."""
    valid: Tensor | None
    """False where the example is ignored; None when none is."""

    @classmethod
    def read(cls, owner: str, target: Tensor, num_classes: int, ignore_index: int) -> Self:
        """Check the range of class indices and set ignored ones aside.

        Args:
            owner: Whom the error names.
            target: Class indices ``(N, ...)``, of any integer type.
            num_classes: How many classes there are.
            ignore_index: Target of examples that do not count.

        Returns:
            Indices that may be used, and which of them count.

        Raises:
            IndexError: If an index is that of no class and not ``ignore_index``.
        """
        target = target.long()
        if are_all_classes(target, num_classes, ignore_index):
            return cls(target, None)
        check_range(owner, target, num_classes, ignore_index)
        valid = target != ignore_index
        return cls(torch.where(valid, target, 0), valid)


def are_all_classes(target: Tensor, num_classes: int, ignore_index: int) -> bool:
    """Return whether every index is that of a class, and none is ignored; False where reading values is impossible or slow.

    Args:
        target: Class indices.
        num_classes: How many classes there are.
        ignore_index: Target of examples that do not count.

    Returns:
        True if all may be used as they are.
    """
    bounds = _bounds(target)
    return bounds is not None and bounds[0] >= 0 and bounds[1] < num_classes and not bounds[0] <= ignore_index <= bounds[1]


def one_hot(logits: Tensor, target: Tensor) -> Tensor:
    """Return class indices ``(N, ...)`` as probabilities of the shape of ``logits``.

    Args:
        logits: Logits ``(N, C, ...)``, for their shape and type.
        target: Valid class indices ``(N, ...)``.

    Returns:
        1 at the class and 0 elsewhere, ``(N, C, ...)``.
    """
    return torch.zeros_like(logits).scatter(1, target.unsqueeze(1), 1.0)


def _bounds(target: Tensor) -> tuple[float, float] | None:
    """Return the smallest and the largest index, or None where looking at values is impossible or would stall a device."""
    if not target.is_cpu or torch.compiler.is_compiling() or target.numel() == 0:
        return None
    try:
        low, high = torch.aminmax(target)
        return low.item(), high.item()
    except RuntimeError:  # inside torch.vmap values cannot be read
        return None


def check_range(owner: str, target: Tensor, num_classes: int, ignore_index: int) -> None:
    """Raise an error for an index that is that of no class, where values can be looked at.

    Args:
        owner: Whom the error names.
        target: Class indices.
        num_classes: How many classes there are.
        ignore_index: Target of examples that do not count.

    Raises:
        IndexError: If there is one.
    """
    if _bounds(target) is None:
        return
    outside = ((target < 0) | (target >= num_classes)) & (target != ignore_index)
    if outside.any():
        position = tuple(outside.nonzero()[0].tolist())
        raise IndexError(
            f"{owner}: target must lie in [0, {num_classes - 1}] or be ignore_index={ignore_index},"
            f" got {int(target[position])} at position {position}."
        )
