"""Logits whose classes are spread over processes, as they come: ``DTensor`` with ``Shard(1)``, or rows of a shard."""

from typing import Any

import torch
from torch import Tensor

from lossmith.kernels.sharded.collectives import Shard
from lossmith.kernels.sharded.rows import ShardedRows
from lossmith.torch_compat import is_dtensor

__all__ = ["as_given", "is_spread", "shard_of", "spread", "whole_shape"]


def is_spread(logits: object) -> bool:
    """Return whether the classes of logits are spread over processes.

    Args:
        logits: What was given as logits.

    Returns:
        True for rows of a shard, and for a ``DTensor`` that is divided along dimension 1.
    """
    return isinstance(logits, ShardedRows) or (is_dtensor(logits) and _class_dimension(logits, 1) is not None)


def _class_dimension(tensor: Any, dim: int) -> int | None:
    """Return the dimension of the mesh along which a dimension of a ``DTensor`` is divided."""
    found = [place for place, placement in enumerate(tensor.placements) if placement.is_shard(dim)]
    return found[0] if found else None


def shard_of(owner: str, tensor: Any, dim: int) -> Shard:
    """Return which classes of a ``DTensor`` this process has.

    Args:
        owner: Whom the error names.
        tensor: The ``DTensor``.
        dim: The dimension of its classes.

    Returns:
        The classes of this process.

    Raises:
        ValueError: If it is divided in another way, too.
    """
    place = _class_dimension(tensor, dim)
    others = [each for number, each in enumerate(tensor.placements) if number != place]
    if place is None or not all(each.is_replicate() for each in others):
        wanted = f"Shard({dim}) on one dimension of its mesh and Replicate() on all others"
        raise ValueError(f"{owner}: a DTensor must have {wanted}, got {tuple(tensor.placements)}.")
    return Shard.of(tensor.device_mesh.get_group(place), tensor.shape[dim])


def spread(owner: str, logits: Any, target: Any) -> tuple[Any, Any]:
    """Return logits and target as formulas take them.

    Args:
        owner: Whom the error names.
        logits: A ``DTensor`` or rows of a shard.
        target: Class indices, or probabilities of all classes or of those of this process.

    Returns:
        Rows of a shard, and class indices or rows of a shard.

    Raises:
        ValueError: If the logits are divided in another way, too.
    """
    rows = logits if isinstance(logits, ShardedRows) else ShardedRows(logits.to_local(), shard_of(owner, logits, 1))
    if isinstance(target, ShardedRows):
        return rows, target
    if is_dtensor(target):
        target = target.to_local() if target.shape == logits.shape and is_spread(target) else target.full_tensor()
    if not (isinstance(target, Tensor) and target.is_floating_point()):
        return rows, target
    is_whole = target.dim() > 1 and target.shape[1] == rows.shard.classes != rows.shard.here
    return rows, ShardedRows(target.narrow(1, rows.shard.first, rows.shard.here) if is_whole else target, rows.shard)


def whole_shape(tensor: Any) -> Any:
    """Return a tensor without values that has the shape of all classes, for what looks at shapes; anything else as it is.

    Args:
        tensor: Rows of a shard, or what else was given.

    Returns:
        A tensor on the device ``"meta"``, or the same.
    """
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta") if isinstance(tensor, ShardedRows) else tensor


def as_given(found: Tensor, logits: Any) -> Tensor:
    """Return a loss, which all processes have, in the way the logits came.

    Args:
        found: The loss.
        logits: What was given as logits.

    Returns:
        A ``DTensor`` for a ``DTensor``.
    """
    if isinstance(logits, ShardedRows):
        return found
    from torch.distributed.tensor import DTensor, Replicate  # slow to import, and here already if a DTensor came

    places = [Replicate() for _ in logits.placements]
    return DTensor.from_local(found, logits.device_mesh, places, run_check=False)
