"""Losses whose gradient is known in closed form, as one differentiable operation.

A :class:`Rule` says how to compute the losses of a batch of rows, and what to keep for their gradient. :func:`rowwise_loss`
makes a PyTorch operation of it that works in eager mode, under ``torch.compile`` and ``torch.export``, with ``torch.func``
in reverse and forward mode, and that can be differentiated again.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from lossmith.numerics.temporaries import add_multiple, add_scaled, is_in_forward_mode, scale_kept
from lossmith.numerics.tracing import is_traced

__all__ = [
    "FEW_PASSES",
    "MANY_PASSES",
    "DescentRule",
    "GradientRule",
    "IndexRule",
    "Rule",
    "SumRule",
    "evaluate_again",
    "in_blocks",
    "in_blocks_of",
    "refuse_forward_mode_twice",
    "rowwise_loss",
    "rowwise_mean",
]

Evaluation = tuple[Tensor, tuple[Tensor, ...]]

# Rows are evaluated in blocks of about this many elements, so that the passes over a block find it in the cache.
BLOCK_ELEMENTS = 1 << 19
# So many elements are faster at once: with many passes two blocks; with few passes all that fits into buffers which the system
# does not hand out anew each time.
MANY_PASSES = 2 * BLOCK_ELEMENTS
FEW_PASSES = 1 << 22


class Rule(Protocol):
    """The losses of rows of logits ``(N, C, ...)``, classes along dimension 1, and their gradient.

    Every method uses differentiable operations only, so that the gradient can be differentiated again.
    """

    takes_share: bool
    """Whether to multiply what is kept by a number costs nothing."""
    share: float
    """That number, which each loss counts with in a mean; it is set only where it costs nothing."""

    @property
    def factor(self) -> float:
        """What the gradient with respect to the logits is :meth:`pullback` times, but for the share."""
        ...

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        """Return the losses ``(N, ...)`` and what :meth:`pullback` needs, each with one row per row of logits."""
        ...

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        """Return the gradient of ``sum(grad * losses)`` with respect to the logits, but for the factor.

        ``grad`` is ``(N, 1, ...)`` or one number.
        """
        ...

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        """Return the gradient of ``sum(grad * losses)`` with respect to probability targets."""
        ...


class GradientRule:
    """Base of rules that keep the gradient itself: ``evaluate`` returns the losses and ``(gradient,)``."""

    factor: float = 1.0
    """What the gradient is the kept one times."""
    takes_share: bool = False
    share: float = 1.0

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        """Return what was kept times ``grad``."""
        return scale_kept(saved[0], grad)


class DescentRule(GradientRule):
    """Base of rules that keep minus the gradient, where that is what their formula gives."""

    factor = -1.0


class IndexRule(GradientRule):
    """Base of such rules for class indices."""

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        """Raise an error: nothing asks for this."""
        raise NotImplementedError("class indices have no gradient")


class SumRule(GradientRule):
    """A weighted sum of what other rules give, as one operation."""

    def __init__(self, parts: Sequence[tuple[float, Rule]]) -> None:
        self.parts = parts

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        """Return the sum of the losses and that of the gradients."""
        return in_blocks(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, target: Tensor) -> Evaluation:
        evaluations = [rule.evaluate(logits, target) for _, rule in self.parts]
        losses = self._weighted_sum([part for part, _ in evaluations], add_scaled)
        slopes = [_slopes(rule, logits, target, saved) for (_, rule), (_, saved) in zip(self.parts, evaluations, strict=True)]
        return losses, (self._weighted_sum(slopes, add_multiple),)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        """Return the sum of what they pull at the targets."""
        return self._weighted_sum([rule.target_pullback(grad, logits, target) for _, rule in self.parts], add_scaled)

    def _weighted_sum(self, terms: Sequence[Tensor], add: Callable[[Tensor, Tensor, float], Tensor]) -> Tensor:
        total = _scaled(terms[0], self.parts[0][0])
        for term, (factor, _) in zip(terms[1:], self.parts[1:], strict=True):
            total = add(total, term, factor)
        return total


def _slopes(rule: Rule, logits: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
    """Return the gradient of each loss, which may be what the rule kept."""
    if isinstance(rule, GradientRule) and type(rule).pullback is GradientRule.pullback:
        return _scaled(saved[0], rule.factor)
    return rule.pullback(torch.ones_like(logits.narrow(1, 0, 1)) * rule.factor, target, saved)


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
    grad_logits = rule.pullback(_scaled(grad, left), target, saved) if wants_logits else None
    grad_target = rule.target_pullback(_scaled(grad, share), logits, target) if wants_target else None
    return grad_logits, grad_target, None


def _scaled(grad: Tensor, factor: float) -> Tensor:
    return grad if factor == 1 else grad * factor


def _tangent(ctx: Any, tangent: Tensor | None, target_tangent: Tensor | None) -> Tensor:
    logits, target, *_ = ctx.saved_tensors
    saved = _seen_by_autograd(ctx.rule, logits, target)
    one = torch.ones_like(logits.narrow(1, 0, 1))
    slope = torch.zeros_like(one.squeeze(1))
    if tangent is not None:
        slope = slope + (ctx.rule.pullback(_scaled(one, ctx.rule.factor / ctx.rule.share), target, saved) * tangent).sum(1)
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


def evaluate_again(rule: Rule, logits: Tensor, target: Tensor, rows: Tensor | None, evaluation: Evaluation) -> Evaluation:
    """Replace what was evaluated for certain rows, ``(N, ...)``, by what double precision gives."""
    if rows is None or not rows.any():
        return evaluation
    losses, saved = evaluation
    exact_losses, exact_saved = rule.evaluate(logits.movedim(1, -1)[rows].double(), target[rows])
    losses[rows] = exact_losses.to(losses.dtype)
    for whole, part in zip(saved, exact_saved, strict=True):
        whole.movedim(1, -1)[rows] = part.to(whole.dtype)
    return losses, saved


def in_blocks(
    evaluate: Callable[[Tensor, Tensor], Evaluation], logits: Tensor, target: Tensor, at_once: int = MANY_PASSES
) -> Evaluation:
    """Apply ``evaluate`` to blocks of rows, unless there are ``at_once`` elements or fewer."""
    if logits.numel() <= at_once:
        return evaluate(logits, target)
    return in_blocks_of(lambda rows, labels, _: evaluate(rows, labels), logits, target, at_once)


def in_blocks_of(
    evaluate: Callable[[Tensor, Tensor, Tensor | None], Evaluation],
    logits: Tensor,
    target: Tensor,
    at_once: int = MANY_PASSES,
) -> Evaluation:
    """Do the same for an ``evaluate`` that can write the first thing to be kept to where it belongs, its third argument."""
    size = logits.numel()
    if size <= at_once:
        return evaluate(logits, target, None)
    if not logits.is_cpu or torch.compiler.is_compiling() or torch.is_grad_enabled():
        return evaluate(logits, target, None)
    rows = max(1, BLOCK_ELEMENTS * logits.shape[0] // size)
    losses = logits.new_empty(target.shape[:1] + logits.shape[2:])
    saved: tuple[Tensor, ...] = (torch.empty_like(logits),)
    for block in (slice(start, start + rows) for start in range(0, logits.shape[0], rows)):
        place = saved[0][block]
        losses[block], parts = evaluate(logits[block], target[block], place)
        if len(saved) < len(parts):
            saved += tuple(part.new_empty(logits.shape[:1] + part.shape[1:]) for part in parts[1:])
        for whole, part in zip(saved, parts, strict=True):
            if part is not place:
                whole[block] = part
    return losses, saved
