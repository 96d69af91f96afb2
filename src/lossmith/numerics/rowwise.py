"""Losses whose gradient is known in closed form, as one differentiable operation.

A ``Rule`` says how to compute the losses of a batch of rows, and what to keep for their gradient. :func:`rowwise_loss`
makes a PyTorch operation of it that works in eager mode, under ``torch.compile`` and ``torch.export``, with ``torch.func``
in reverse and forward mode, and that can be differentiated again.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, cast

import torch
from torch import Tensor

from lossmith.numerics.rules import Rule, times
from lossmith.numerics.temporaries import is_in_forward_mode
from lossmith.numerics.tracing import is_traced

__all__ = ["refuse_forward_mode_twice", "rowwise_loss", "rowwise_mean"]


def rowwise_loss(rule: Rule, logits: Tensor, target: Tensor) -> Tensor:
    """Return the loss of each row, differentiable in the logits and in probability targets."""
    if torch.compiler.is_compiling():
        losses, *_ = _TracedLoss.apply(logits, target, rule)  # type: ignore[no-untyped-call]
    elif torch._C._are_functorch_transforms_active():
        refuse_forward_mode_twice()
        losses, *_ = _TransformedLoss.apply(logits, target, rule)  # type: ignore[no-untyped-call]
    else:
        losses = _EagerLoss.apply(logits, target, rule)  # type: ignore[no-untyped-call]
    return cast("Tensor", losses)


def rowwise_mean(rule: Rule, logits: Tensor, target: Tensor) -> Tensor:
    """Return the mean of the losses of logits ``(N, C)``; in eager mode as one operation, which saves much for small batches."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return rowwise_loss(rule, logits, target).mean()
    return _apply_mean(logits, target, rule)


def refuse_forward_mode_twice() -> None:
    """PyTorch does not differentiate a custom ``jvp`` in forward mode: the second derivative would be 0 without a word."""
    functorch = torch._C._functorch
    levels = functorch.get_interpreter_stack() or []
    if sum(level.key() == functorch.TransformType.Jvp for level in levels) > 1:
        raise NotImplementedError("forward mode over forward mode is not possible here: use torch.func.hessian.")


def _keep(ctx: Any, logits: Tensor, target: Tensor, rule: Rule, saved: tuple[Tensor, ...]) -> None:
    ctx.rule = rule
    ctx.save_for_backward(logits, target, *saved)
    if is_in_forward_mode():
        ctx.save_for_forward(logits, target, *saved)


def _gradients(ctx: Any, grad: Tensor, share: float = 1.0) -> tuple[Tensor | None, Tensor | None, None]:
    """Return the gradients for that of each row, which is ``share * grad``."""
    logits, target, *saved = ctx.saved_tensors
    if (torch.is_grad_enabled() or is_in_forward_mode()) and not torch.compiler.is_compiling():
        saved = _seen_by_autograd(ctx.rule, logits, target)
    rule, (wants_logits, wants_target, _) = ctx.rule, ctx.needs_input_grad
    left = share / rule.share * rule.factor
    grad_logits = rule.pullback(times(grad, left), target, saved) if wants_logits else None
    grad_target = rule.target_pullback(times(grad, share), logits, target) if wants_target else None
    return grad_logits, grad_target, None


def _tangent(ctx: Any, tangent: Tensor | None, target_tangent: Tensor | None) -> Tensor:
    logits, target, *_ = ctx.saved_tensors
    saved = _seen_by_autograd(ctx.rule, logits, target)
    one = torch.ones_like(logits.narrow(1, 0, 1))
    slope = torch.zeros_like(one.squeeze(1))
    if tangent is not None:
        slope = slope + (ctx.rule.pullback(times(one, ctx.rule.factor / ctx.rule.share), target, saved) * tangent).sum(1)
    if target_tangent is not None:
        slope = slope + (ctx.rule.target_pullback(one, logits, target) * target_tangent).sum(1)
    return slope


def _seen_by_autograd(rule: Rule, logits: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """Evaluate anew what will be differentiated once more: every transform has to see how it depends on the logits."""
    with torch.enable_grad():
        return rule.evaluate(logits, target)[1]


class _TracedLoss(torch.autograd.Function):
    """For torch.compile and torch.export, which trace neither forward mode nor intermediate results kept in a context."""

    @staticmethod
    def forward(logits: Tensor, target: Tensor, rule: Rule) -> tuple[Tensor, ...]:
        losses, saved = rule.evaluate(logits, target)
        return (losses, *saved)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Rule], output: tuple[Tensor, ...]) -> None:
        _keep(ctx, *inputs, output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_forward(*inputs[:2], *output[1:])
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *_: None) -> tuple[Tensor | None, Tensor | None, None]:
        return (None, None, None) if grad is None else _gradients(ctx, grad.unsqueeze(1))


class _TransformedLoss(_TracedLoss):
    """For torch.func."""

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor | None, target_tangent: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        return (_tangent(ctx, tangent, target_tangent), *(None for _ in ctx.saved_tensors[2:]))

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], logits: Tensor, target: Tensor, rule: Rule
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """Rows do not see one another, so that the mapped dimension is just more rows."""
        size = info.batch_size
        folded = [
            (tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)).flatten(0, 1)
            for tensor, dim in zip((logits, target), in_dims, strict=False)
        ]
        outputs = _TransformedLoss.apply(*folded, rule)  # type: ignore[no-untyped-call]
        unfolded = tuple(output.unflatten(0, (size, -1)) for output in outputs)
        return unfolded, (0,) * len(unfolded)


class _EagerLoss(torch.autograd.Function):
    """For plain calls: a context that keeps intermediate results itself costs half of one that is set up afterwards."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, rule: Rule) -> Tensor:
        losses, saved = rule.evaluate(logits, target)
        _keep(ctx, logits, target, rule, saved)
        return losses.clone() if losses._is_view() else losses  # a view may not be modified in place

    backward = _TracedLoss.backward

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor | None, target_tangent: Tensor | None, _: None) -> Tensor:
        return _tangent(ctx, tangent, target_tangent)


# Within an operation nothing is recorded; this says so once, instead of letting every operation find out.
_below_autograd = getattr(torch._C, "_AutoDispatchBelowAutograd", nullcontext)


def _mean(losses: Tensor) -> Tensor:
    """Return the mean, for which torch divides with two more operations."""
    if not losses.is_cpu or is_traced():
        return losses.mean()
    return torch.scalar_tensor(losses.sum().item() / losses.numel(), dtype=losses.dtype, device="cpu")


class _EagerMean(torch.autograd.Function):
    """For plain calls whose losses are averaged."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, rule: Rule) -> Tensor:
        ctx.share = 1 / logits.shape[0]
        if rule.takes_share:
            rule.share = ctx.share
        with _below_autograd():
            losses, saved = rule.evaluate(logits, target)
            mean = _mean(losses)
        _keep(ctx, logits, target, rule, saved)
        return mean

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        return _gradients(ctx, grad, ctx.share)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor | None, target_tangent: Tensor | None, _: None) -> Tensor:
        return _tangent(ctx, tangent, target_tangent).mean()


# What is done before this by Function.apply is of use only under torch.func.
_apply_mean: Callable[[Tensor, Tensor, Rule], Tensor] = super(torch.autograd.Function, _EagerMean).apply
