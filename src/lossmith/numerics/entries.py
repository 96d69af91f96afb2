"""One entry of each row, read and replaced."""

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
    return rows.scatter(1, index, value)


class _Entry(torch.autograd.Function):
    """``gather`` for torch.compile: its own derivative adds atomically, as if an entry could be read twice."""

    @staticmethod
    def forward(rows: Tensor, index: Tensor) -> Tensor:
        return rows.gather(1, index)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], _: Tensor) -> None:
        ctx.shape = inputs[0].shape
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad.new_zeros(ctx.shape).scatter(1, ctx.saved_tensors[0], grad), None
