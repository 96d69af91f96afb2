"""Functions whose derivative is known in a better form than autograd would find."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from lossmith.numerics.one_operation import as_one_operation, is_stand_in
from lossmith.torch_compat import refuse_forward_mode_twice

__all__ = ["with_row_slopes", "with_slope"]


def with_slope(x: Tensor, value: Tensor, slope: Tensor | float) -> Tensor:
    """Return ``value``, a function of ``x`` whose derivative is ``slope``, itself a differentiable function of ``x``.

    How the value follows from ``x`` is never differentiated; how the slope does is, any number of times.

    Args:
        x: The variable.
        value: The function of it, whose own graph is not used.
        slope: Its derivative, of the same shape, or a constant one.

    Returns:
        The value, with the slope as its gradient.

    >>> x = torch.tensor(-40.0, requires_grad=True)
    >>> torch.autograd.grad(with_slope(x, torch.sigmoid(x), torch.sigmoid(x) * torch.sigmoid(-x)), x)
    (tensor(4.2484e-18),)
    """
    if is_stand_in(x):
        return as_one_operation(with_slope, x, value, slope)
    if not isinstance(slope, Tensor):
        slope = torch.ones_like(value) * slope
    if torch.compiler.is_compiling():
        return cast("Tensor", _KnownSlope.apply(x, value.detach(), slope))  # type: ignore[no-untyped-call]
    refuse_forward_mode_twice()
    return cast("Tensor", _KnownSlopeWithTangents.apply(x, value.detach(), slope))  # type: ignore[no-untyped-call]


def with_row_slopes(logits: Tensor, losses: Tensor, slopes: Callable[[], Tensor]) -> Tensor:
    """Return losses ``(N, ...)`` of rows of logits ``(N, C, ...)``, with their gradient for a compiler.

    Compiled, the gradient is made together with the losses and kept, where a compiler would go through all logits once more: that
    saves a third of the time of the squared error. Anything else differentiates the losses as they are.
    """
    if not torch.compiler.is_compiling():
        return losses
    return cast("Tensor", _RowSlopes.apply(logits, losses.detach(), slopes()))  # type: ignore[no-untyped-call]


class _RowSlopes(torch.autograd.Function):
    @staticmethod
    def forward(logits: Tensor, losses: Tensor, slopes: Tensor) -> Tensor:  # noqa: ARG004
        return losses.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], _: Tensor) -> None:
        ctx.save_for_backward(inputs[2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        slopes: Tensor = ctx.saved_tensors[0]
        return grad.unsqueeze(1) * slopes, None, None


class _KnownSlope(torch.autograd.Function):
    """For torch.compile, which does not take functions with a tangent."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, value: Tensor, slope: Tensor) -> Tensor:  # noqa: ARG004
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], _: Tensor) -> None:
        ctx.save_for_backward(inputs[2])
        ctx.save_for_forward(inputs[2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        slope: Tensor = ctx.saved_tensors[0]
        return grad * slope, None, None


class _KnownSlopeWithTangents(_KnownSlope):
    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: Tensor | None, __: Tensor | None) -> Tensor:
        slope: Tensor = ctx.saved_tensors[0]
        return tangent * slope
