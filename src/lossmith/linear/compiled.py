"""The same for ``torch.compile``, which sees one operation and not what is in it: a chunk is no larger for being compiled."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from lossmith.linear.call import Call, Precision
from lossmith.linear.chunks import Gradients, Layer
from lossmith.linear.operation import gradients_of_rows, loss_and_gradients, plain
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.torch_compat import above_autograd

__all__ = ["compiled_linear_loss"]

_LOSSES: WeakValueDictionary[int, ClassificationLoss] = WeakValueDictionary()
_CAN_RECORD = above_autograd() is not None
Three = tuple[Tensor, Tensor, Tensor]


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _key_of(loss: ClassificationLoss) -> int:
    """Return the number that stands for a loss in a graph, whose parameters are looked up when the graph runs."""
    _LOSSES[id(loss)] = loss
    return id(loss)


def compiled_linear_loss(call: Call, layer: Layer, chunk: int | None) -> Tensor:
    """Return the loss by one operation of a graph.

    Args:
        call: The loss and all targets.
        layer: The layer.
        chunk: How many rows have logits at a time, or None.

    Returns:
        One number, or one for each row.
    """
    if not _CAN_RECORD:
        return plain(call, layer)
    denominator = call.denominator
    if denominator is not None and not isinstance(denominator, Tensor):
        denominator = torch.scalar_tensor(denominator, dtype=torch.float64, device=layer.features.device)
    tensors = (*layer[:3], call.target, call.sample_weight, denominator)
    wanted = [each is not None and each.requires_grad and torch.is_grad_enabled() for each in layer[:3]]
    value: Tensor = _linear_loss(*tensors, _key_of(call.loss), chunk, layer.precision.autocast, wanted)[0]
    return value


@torch.library.custom_op("lossmith::linear_loss", mutates_args=())
def _linear_loss(  # noqa: PLR0917 (an operation takes its arguments by their places)
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    sample_weight: Tensor | None,
    denominator: Tensor | None,
    key: int,
    chunk: int | None,
    autocast: torch.dtype | None,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    layer = Layer(features, weight, bias, Precision(features.device.type, autocast))
    call = Call(_LOSSES[key], target, sample_weight, denominator)
    with _recording():
        value, gradients = loss_and_gradients(call, layer, chunk, _wanted_now(key, wanted))
    return value, *_as_tensors(gradients, features)


@torch.library.custom_op("lossmith::linear_loss_gradients", mutates_args=())
def _gradients_of_rows(  # noqa: PLR0917
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    sample_weight: Tensor | None,
    weights: Tensor,
    key: int,
    chunk: int | None,
    autocast: torch.dtype | None,
    wanted: Sequence[bool],
) -> Three:
    layer = Layer(features, weight, bias, Precision(features.device.type, autocast))
    call = Call(_LOSSES[key], target, sample_weight, None)
    of_features, of_weight, of_bias = wanted
    with _recording():
        gradients = gradients_of_rows(call, layer, chunk, (of_features, of_weight, of_bias), weights)
    return _as_tensors(gradients, features)


def _recording() -> AbstractContextManager[object]:
    """Return a context in which the loss of a chunk can be differentiated, which operations leave to autograd outside."""
    context = above_autograd()
    assert context is not None
    return context


def _wanted_now(key: int, wanted: Sequence[bool]) -> tuple[bool, bool, bool]:
    """Return which gradients are made with the loss: none where the losses of rows are not reduced."""
    reduces = _LOSSES[key].reduction != "none"
    of_features, of_weight, of_bias = (each and reduces for each in wanted)
    return of_features, of_weight, of_bias


def _as_tensors(gradients: Gradients, like: Tensor) -> Three:
    """Return tensors, as an operation has to; one without elements stands for none."""
    first, second, third = (like.new_empty(0) if each is None else each for each in gradients)
    return first, second, third


def _empty(tensors: Sequence[Tensor | None], wanted: Sequence[bool]) -> Three:
    pairs = zip(tensors, wanted, strict=True)
    gradients = [
        torch.empty_like(each, memory_format=torch.contiguous_format) if each is not None and is_wanted else None
        for each, is_wanted in pairs
    ]
    assert tensors[0] is not None
    return _as_tensors(Gradients(*gradients), tensors[0])


@_linear_loss.register_fake
def _shapes_of_loss(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    features, *_, target, _, _, key, _, _, wanted = arguments
    shape = () if _LOSSES[key].reduction != "none" else target.shape[:1]
    value = features.new_empty(shape, dtype=torch.promote_types(features.dtype, torch.float32))
    return value, *_empty(arguments[:3], _wanted_now(key, wanted))


@_gradients_of_rows.register_fake
def _shapes_of_gradients(*arguments: Any) -> Three:
    return _empty(arguments[:3], arguments[-1])


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, _, ctx.key, ctx.chunk, ctx.autocast, ctx.wanted = inputs
    ctx.save_for_backward(*tensors, *output[1:])


def _backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    saved = ctx.saved_tensors
    if grad.dim():
        gradients = _gradients_of_rows(*saved[:5], grad, ctx.key, ctx.chunk, ctx.autocast, ctx.wanted)
    else:
        gradients = [each * grad.to(each.dtype) for each in saved[5:]]
    pairs = zip(gradients, ctx.wanted, strict=True)
    return *(each if is_wanted else None for each, is_wanted in pairs), *[None] * 7


_linear_loss.register_autograd(_backward, setup_context=_keep)
