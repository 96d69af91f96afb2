"""Sums over processes that autograd understands: adding up, and handing the same to all, are each other's derivative.

Every process computes the same loss from numbers of rows that are the same everywhere, and from its own classes. A sum over the
classes is added up over the processes, and its gradient, which all of them have, is that of each summand. A number of a row that
meets the logits of a process is used by all processes, so its gradient is what their gradients add up to.
"""

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, distributed

__all__ = ["Shard", "added_up", "gathered", "largest", "shared"]


class Shard(NamedTuple):
    """Which of all classes a process has, and with whom it shares them."""

    group: Any
    """The processes, or None for all of them."""
    first: int
    """The class that the first of its logits belongs to."""
    here: int
    """How many classes it has."""
    classes: int
    """How many there are."""

    @classmethod
    def of(cls, group: Any, classes: int) -> "Shard":
        """Return the classes of this process where they are divided as ``torch.chunk`` and ``DTensor`` divide them.

        Args:
            group: The processes, or None for all of them.
            classes: How many classes there are.

        Returns:
            The part of this process, which has none if there are too few.
        """
        rank, processes = distributed.get_rank(group), distributed.get_world_size(group)
        size = -(-classes // processes)
        first = min(rank * size, classes)
        return cls(group, first, min(size, classes - first), classes)

    def local(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return where classes are among those of this process, and whether they are there.

        Args:
            index: Class indices.

        Returns:
            Indices, which are 0 for classes of other processes, and a mask.
        """
        place = index - self.first
        is_here = (place >= 0) & (place < self.here)
        return torch.where(is_here, place, 0), is_here


def added_up(numbers: Tensor, shard: Shard) -> Tensor:
    """Return the sum over the processes of numbers that each has for its classes.

    Args:
        numbers: Numbers of rows.
        shard: The processes.

    Returns:
        The sums, the same everywhere.
    """
    return cast("Tensor", _AddedUp.apply(numbers, shard))  # type: ignore[no-untyped-call]


def shared(numbers: Tensor, shard: Shard) -> Tensor:
    """Return numbers that all processes have, for use with the logits of this one.

    Args:
        numbers: Numbers of rows, the same everywhere.
        shard: The processes.

    Returns:
        The same numbers, whose gradient is added up over the processes.
    """
    if not (numbers.requires_grad and torch.is_grad_enabled()):
        return numbers
    return cast("Tensor", _Shared.apply(numbers, shard))  # type: ignore[no-untyped-call]


def largest(numbers: Tensor, shard: Shard) -> Tensor:
    """Return the largest over the processes, without gradient.

    Args:
        numbers: Numbers of rows.
        shard: The processes.

    Returns:
        The largest of each, the same everywhere.
    """
    found = numbers.detach().clone(memory_format=torch.contiguous_format)
    distributed.all_reduce(found, distributed.ReduceOp.MAX, group=shard.group)
    return found


def gathered(numbers: Tensor, shard: Shard) -> Tensor:
    """Return the numbers of all processes side by side.

    Args:
        numbers: ``(N, k)``, of the same shape everywhere.
        shard: The processes.

    Returns:
        ``(N, P k)`` for P processes, the same everywhere.
    """
    return cast("Tensor", _Gathered.apply(numbers, shard))  # type: ignore[no-untyped-call]


class _AddedUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, numbers: Tensor, shard: Shard) -> Tensor:
        ctx.shard = shard
        total = numbers.detach().clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total, group=shard.group)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return shared(grad, ctx.shard), None


class _Shared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, numbers: Tensor, shard: Shard) -> Tensor:
        ctx.shard = shard
        return numbers.view_as(numbers)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return added_up(grad, ctx.shard), None


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, numbers: Tensor, shard: Shard) -> Tensor:
        ctx.shard, ctx.width = shard, numbers.shape[1]
        parts = [torch.empty_like(numbers) for _ in range(distributed.get_world_size(shard.group))]
        distributed.all_gather(parts, numbers.contiguous(), group=shard.group)
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        start = distributed.get_rank(ctx.shard.group) * ctx.width
        return shared(grad, ctx.shard).narrow(1, start, ctx.width), None
