"""One entry of each row, read and replaced in a way that a compiler puts into the loops around it.

The derivatives of ``gather`` and ``scatter`` are buffers of their own, with which compiled losses take half as long again. In a
compiled graph a comparison with the number of the class stands in their place.
"""

from typing import Any, cast

import torch
from torch import Tensor

__all__ = ["entry", "with_entry"]


def entry(rows: Tensor, index: Tensor) -> Tensor:
    """Return the entry at ``index`` ``(N, 1, ...)`` of each row of ``(N, C, ...)``, ``(N, 1, ...)``.

    >>> entry(torch.tensor([[5.0, 7.0], [1.0, 2.0]]), torch.tensor([[1], [0]]))
    tensor([[7.],
            [1.]])
    """
    if not torch.compiler.is_compiling():
        return rows.gather(1, index)
    return cast("Tensor", _Entry.apply(rows, index))  # type: ignore[no-untyped-call]


def with_entry(rows: Tensor, index: Tensor, value: Tensor | float) -> Tensor:
    """Return rows ``(N, C, ...)`` with another value, a number or ``(N, 1, ...)``, at ``index`` ``(N, 1, ...)``.

    >>> with_entry(torch.tensor([[5.0, 7.0]]), torch.tensor([[1]]), 0.0)
    tensor([[5., 0.]])
    """
    if not torch.compiler.is_compiling():
        return rows.scatter(1, index, value)
    return torch.where(_is_at(index, rows.shape), value, rows)


def _is_at(index: Tensor, shape: torch.Size) -> Tensor:
    # Integers of 32 bits are compared as many at a time as there are numbers in single precision.
    classes = torch.arange(shape[1], device=index.device, dtype=torch.int32)
    return classes.view(-1, *[1] * (len(shape) - 2)) == index.to(torch.int32)


class _Entry(torch.autograd.Function):
    """``gather`` with a derivative that is no buffer."""

    @staticmethod
    def forward(rows: Tensor, index: Tensor) -> Tensor:
        return rows.gather(1, index)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], _: Tensor) -> None:
        ctx.shape = inputs[0].shape
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return torch.where(_is_at(ctx.saved_tensors[0], ctx.shape), grad, 0.0), None
