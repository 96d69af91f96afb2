"""The loss of a linear layer as one operation of autograd, whose gradients are made together with the loss."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from lossmith.kernels.sharded.collectives import added_up, shared
from lossmith.linear.call import Call, Precision
from lossmith.linear.chunks import Gradients, Layer, Wanted, evaluated, rows_at_a_time, walk
from lossmith.linear.placed import fits, walk_in_place
from lossmith.torch_compat import is_graph_kept, is_in_forward_mode, is_one_of_many_gradients

__all__ = ["Found", "as_one_operation", "gradients_of_rows", "loss_and_gradients", "plain"]


class Found(NamedTuple):
    """A loss, or one for each row, and its gradients."""

    value: Tensor
    gradients: Gradients


def plain(call: Call, layer: Layer) -> Tensor:
    """Return the loss of all logits at once, for every transform and any number of derivatives.

    Args:
        call: The loss and all targets.
        layer: The layer.

    Returns:
        One number, or one for each row.
    """
    if call.shard is not None:
        layer = layer._replace(features=shared(layer.features, call.shard))
    with layer.precision.context():
        return call(layer.logits())


def loss_and_gradients(call: Call, layer: Layer, chunk: int | None, wanted: Wanted) -> Found:
    """Return the loss and its gradients, by chunks of the rows that count.

    Args:
        call: The loss and all targets.
        layer: The layer.
        chunk: How many rows have logits at a time, or None.
        wanted: Which of the gradients by features, weight and bias are wanted; none where losses are not reduced.

    Returns:
        The loss, in single precision at least, and the gradients in the precision of their tensors.
    """
    call, places = call.with_denominator(), call.counted()
    with torch.no_grad(), torch.autocast(layer.precision.device, enabled=False):
        rounded = layer.rounded()
        counted = rounded if places is None else rounded.of_rows(places)
        counted_call = call if places is None else call.of_rows(places)
        size = rows_at_a_time(counted, chunk)
        if fits(counted, layer, wanted, size):
            values, gradients = walk_in_place(counted_call, counted, size, wanted)
        else:
            gradients = Gradients.zeros(layer, counted.features.shape[0], wanted)
            values = (walk if any(wanted) else evaluated)(counted_call, counted, size, gradients)
        return Found(_put_together(values, call, counted, places), _spread(_whole(gradients, call), layer, places))


def gradients_of_rows(call: Call, layer: Layer, chunk: int | None, wanted: Wanted, weights: Tensor) -> Gradients:
    """Return the gradients of the sum of losses times a factor for each row; the logits are made once more.

    Args:
        call: The loss, which does not reduce, and all targets.
        layer: The layer.
        chunk: How many rows have logits at a time, or None.
        wanted: Which of the gradients by features, weight and bias are wanted.
        weights: The factor of each row, ``(N,)``.

    Returns:
        The gradients in the precision of their tensors.
    """
    places = call.counted()
    with torch.no_grad(), torch.autocast(layer.precision.device, enabled=False):
        rounded = layer.rounded()
        if places is not None:
            call, rounded, weights = call.of_rows(places), rounded.of_rows(places), weights[places]
        gradients = Gradients.zeros(layer, rounded.features.shape[0], wanted)
        walk(call, rounded, rows_at_a_time(rounded, chunk), gradients, weights)
        return _spread(_whole(gradients, call), layer, places)


def _put_together(values: list[Tensor], call: Call, counted: Layer, places: Tensor | None) -> Tensor:
    """Return the loss of all rows from those of the chunks."""
    dtype = torch.promote_types(counted.features.dtype, torch.float32)
    if call.loss.reduction != "none":
        if values:
            return torch.stack(values).sum().to(dtype)
        nothing = counted.features.new_zeros((), dtype=dtype)
        return nothing if call.denominator is None else (nothing / call.denominator).to(dtype)
    losses = torch.cat(values).to(dtype) if values else counted.features.new_zeros(0, dtype=dtype)
    return losses if places is None else _scattered(losses, places, call.target.shape[0])


def _whole(gradients: Gradients, call: Call) -> Gradients:
    """Return gradients of which that by the features has what the classes of all processes contribute."""
    if call.shard is None or gradients.features is None:
        return gradients
    return gradients._replace(features=added_up(gradients.features, call.shard))


def _spread(gradients: Gradients, layer: Layer, places: Tensor | None) -> Gradients:
    """Return the gradients in the precision of their tensors, and 0 for the features of rows that do not count."""
    features, *others = gradients
    if features is not None and places is not None:
        features = _scattered(features, places, layer.features.shape[0])
    pairs = zip((features, *others), layer[:3], strict=True)
    return Gradients(*(None if each is None or like is None else each.to(like.dtype) for each, like in pairs))


def _scattered(rows: Tensor, places: Tensor, number: int) -> Tensor:
    return rows.new_zeros(number, *rows.shape[1:]).index_copy_(0, places, rows)


def as_one_operation(call: Call, layer: Layer, chunk: int | None) -> Tensor:
    """Return the loss by chunks as an operation of autograd.

    Args:
        call: The loss and all targets.
        layer: The layer.
        chunk: How many rows have logits at a time, or None.

    Returns:
        One number, or one for each row, in single precision at least.
    """
    # Targets are arguments, so that torch notices where one is overwritten before it is needed again.
    tensors = (*layer[:3], call.target, call.sample_weight)
    return cast("Tensor", _LinearLoss.apply(*tensors, call, layer.precision, chunk))  # type: ignore[no-untyped-call]


class _LinearLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *tensors, ctx.call, ctx.precision, ctx.chunk = arguments
        reduces = ctx.call.loss.reduction != "none"
        wanted = ctx.needs_input_grad[:3] if reduces else (False, False, False)
        value, gradients = loss_and_gradients(ctx.call, _layer(tensors, ctx.precision), ctx.chunk, wanted)
        ctx.save_for_backward(*tensors, *gradients)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        return *_backward(ctx, _layer(saved, ctx.precision), saved[5:], grad), *[None] * 5


def _layer(tensors: Sequence[Any], precision: Precision) -> Layer:
    features, weight, bias, *_ = tensors
    return Layer(features, weight, bias, precision)


def _backward(ctx: Any, layer: Layer, kept: Sequence[Tensor | None], grad: Tensor) -> Sequence[Tensor | None]:
    """Return the gradients: those that were kept times a number, or from the logits once more."""
    wanted, is_many = ctx.needs_input_grad[:3], is_one_of_many_gradients(grad)
    if torch.is_grad_enabled() or is_in_forward_mode() or (is_many and grad.dim()):
        return _differentiable_gradients(ctx.call, layer, wanted, grad)
    if grad.dim():
        return gradients_of_rows(ctx.call, layer, ctx.chunk, wanted, grad)
    in_place = not (is_graph_kept() or is_many)
    return [_scaled(each, grad, in_place=in_place) for each in kept]


def _differentiable_gradients(call: Call, layer: Layer, wanted: Wanted, grad: Tensor) -> list[Tensor | None]:
    """Return the gradients of the loss of all logits at once, which can be differentiated again."""
    variables = [each for each, is_wanted in zip(layer[:3], wanted, strict=True) if is_wanted and each is not None]
    with torch.enable_grad():
        value = plain(call, layer).to(grad.dtype)
        gradients = iter(torch.autograd.grad(value, variables, grad, create_graph=True))
    return [next(gradients) if is_wanted else None for is_wanted in wanted]


def _scaled(gradient: Tensor | None, grad: Tensor, *, in_place: bool) -> Tensor | None:
    """Return a gradient times a number: in its own place if the graph ends with it."""
    if gradient is None:
        return None
    if not in_place:
        return gradient * grad.to(gradient.dtype)
    if grad.is_cpu and grad.item() == 1:
        return gradient
    return gradient.mul_(grad.to(gradient.dtype))
