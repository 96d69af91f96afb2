"""Which calls run as Triton kernels, and kernels as operations of autograd.

Everything else is left to the formula: gradients of gradients, transforms, compiled graphs, and what kernels do not know.
"""

import os
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from lossmith.kernels import formula as plain
from lossmith.kernels.formula import Formula, Reduction, Shifted
from lossmith.kernels.graphs.recorded import Graphs, graphs_of
from lossmith.kernels.triton.launching import Kernels, Layout, kernels_of, launch, reduce
from lossmith.torch_compat import are_transforms_active, is_in_forward_mode, is_one_of_many_gradients, is_traced

__all__ = ["losses", "mean", "reduced", "reduces"]

# Places of classes are kept as numbers of single precision.
MOST_CLASSES = 1 << 24


class _Call(NamedTuple):
    """Kernels, and what they are told in one call."""

    kernels: Kernels
    graphs: Graphs
    numbers: tuple[float, ...]
    layout: Layout
    reduction: Reduction


def losses(formula: Formula, logits: Tensor, target: Tensor) -> Tensor:
    """Return the loss of each row: by a kernel where there is one for this call, else by the formula.

    Args:
        formula: The loss.
        logits: ``(N, C, ...)``, in floating point.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.

    Returns:
        Losses ``(N, ...)``.
    """
    found = reduced(formula, logits, target, Reduction()) if reduces(logits) else None
    return formula.losses(logits, target) if found is None else found


def mean(formula: Formula, logits: Tensor, target: Tensor, denominator: float | Tensor | None = None) -> Tensor:
    """Return the mean of the losses of all rows.

    Args:
        formula: The loss.
        logits: ``(N, C)``, in floating point.
        target: Class indices ``(N,)``, or a factor for every class ``(N, C)``.
        denominator: What their sum is divided by, instead of N.

    Returns:
        One number.
    """
    kind = "mean" if denominator is None else "sum"
    found = reduced(formula, logits, target, Reduction(kind)) if reduces(logits) else None
    if found is None:
        return plain.mean(formula, logits, target, denominator)
    return found if denominator is None else (found / denominator).to(found.dtype)


def reduces(logits: object) -> bool:
    """Return whether these are logits with values.

    Args:
        logits: What was given as logits.

    Returns:
        Whether kernels may run.

    Raises:
        RuntimeError: If they are on a processor, and Triton does not interpret its kernels there.
    """
    if not isinstance(logits, Tensor) or logits.is_meta or is_traced():
        return False
    if logits.is_cpu and os.environ.get("TRITON_INTERPRET") != "1":
        raise RuntimeError("LOSSMITH_KERNELS=triton needs logits on a GPU, or TRITON_INTERPRET=1 from the start, got cpu.")
    return True


def reduced(formula: Formula, logits: Tensor, target: Tensor, reduction: Reduction) -> Tensor | None:
    """Return the reduced losses by kernels, in single or double precision, or None where there are none for this call.

    Args:
        formula: The loss.
        logits: ``(N, C, ...)``, in floating point.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        reduction: What becomes of the losses.

    Returns:
        Losses ``(N, ...)``, or one number.
    """
    if isinstance(formula, Shifted):
        wide = logits if logits.dtype == torch.float64 else logits.float()
        return reduced(formula.formula, formula.shifted(wide), target, reduction)
    if not _is_plain_call(logits, target) or not 0 < logits.shape[1] < MOST_CLASSES or logits.numel() == 0:
        return None
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    known = graphs_of(formula, logits.shape[1], has_factors=target.is_floating_point(), dtype=dtype)
    if known is None:
        return None
    logits, target = _with_rows(logits), target.contiguous()
    layout, has_gradient = Layout.of(logits), logits.requires_grad and torch.is_grad_enabled()
    if target.is_floating_point() and logits.stride(0) != target.stride(0):
        logits = logits.contiguous()
        layout = Layout.of(logits)
    kernels = kernels_of(known[0], layout.is_resident, has_gradient)
    call = _Call(kernels, *known, layout, reduction)
    return cast("Tensor", _Reduced.apply(logits, target, call, formula))  # type: ignore[no-untyped-call]


def _is_plain_call(logits: Tensor, target: Tensor) -> bool:
    """Return whether this is a plain call in eager mode, from which at most a gradient is wanted."""
    return (
        not target.requires_grad and not are_transforms_active() and not is_in_forward_mode() and logits.device == target.device
    )


def _with_rows(logits: Tensor) -> Tensor:
    """Return logits of which the classes of a row are where kernels look for them; rows may be apart."""
    if logits.dim() == 2 and logits.stride(1) == 1:
        return logits
    return logits.contiguous()


class _Reduced(torch.autograd.Function):
    """Losses of rows, or their sum or mean."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, call: _Call, formula: Formula) -> Tensor:
        layout, reduction, dtype = call.layout, call.reduction, call.graphs.dtype
        out_dtype, reduces_ = reduction.dtype or dtype, reduction.kind != "none"
        # Of the shape that is returned, not a view of it: losses of rows may be changed in place by whoever gets them.
        shape = (layout.programs,) if reduces_ else logits.shape[:1] + logits.shape[2:]
        losses = logits.new_empty(shape, dtype=dtype if reduces_ else out_dtype)
        shares = torch.empty_like(losses)
        kept = logits.new_empty(call.kernels.program.kept, layout.rows, dtype=dtype)
        _start(call, call.kernels.forward, (layout.programs,), layout.block, logits, target, losses, shares, kept)
        ctx.call, ctx.formula = call, formula
        if not reduces_:
            ctx.save_for_backward(logits, target, kept, kept)
            return losses
        value, whole = reduce(losses, shares, is_mean=reduction.kind == "mean", dtype=out_dtype)
        ctx.save_for_backward(logits, target, kept, whole)
        return value

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor | None, None, None, None]:
        logits, target, kept, whole = ctx.saved_tensors
        if torch.is_grad_enabled() or is_in_forward_mode() or is_traced() or is_one_of_many_gradients(slopes):
            return _differentiable_gradient(ctx, slopes), None, None, None
        call = ctx.call
        gradient = torch.empty_like(logits, memory_format=torch.contiguous_format)
        block = min(call.layout.block, 4096)
        grid = (call.layout.programs, -(-call.layout.classes // block))
        stride = gradient.stride(0)
        _start(call, call.kernels.backward, grid, block, logits, target, kept, slopes.contiguous(), whole, gradient, stride)
        return gradient, None, None, None


def _start(call: _Call, kernel: Any, grid: tuple[int, ...], block: int, logits: Tensor, target: Tensor, *own: Any) -> None:  # noqa: PLR0917 (as kernels take them)
    weight = call.reduction.weight
    launch(
        kernel,
        grid,
        logits,
        target,
        logits if weight is None else weight,
        *own,
        *call.numbers,
        *call.layout.arguments,
        call.reduction.ignore_index,
        HAS_WEIGHT=weight is not None,
        REDUCES=call.reduction.kind != "none",
        **call.layout.constants(call.graphs.dtype, block),
    )


def _differentiable_gradient(ctx: Any, slopes: Tensor) -> Tensor:
    """Return the gradient by the formula, which can be differentiated again."""
    logits, target = ctx.saved_tensors[:2]
    with torch.enable_grad():
        found = reduced_by_formula(ctx.formula, logits, target, ctx.call.reduction)
        gradient: Tensor = torch.autograd.grad(found, logits, slopes, create_graph=True)[0]
    return gradient


def reduced_by_formula(formula: Formula, logits: Tensor, target: Tensor, reduction: Reduction) -> Tensor:
    """Return what :func:`reduced` returns, in plain operations of torch."""
    wide = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
    if target.is_floating_point():
        found, share = formula.losses(wide, target), torch.ones_like(target[:, 0])
    else:
        valid = target != reduction.ignore_index
        labels = torch.where(valid, target, 0).long()
        weight = torch.ones_like(labels, dtype=wide.dtype) if reduction.weight is None else reduction.weight.to(wide)[labels]
        share = torch.where(valid, weight, 0.0)
        found = torch.where(valid, formula.losses(torch.where(valid.unsqueeze(1), wide, 0.0), labels) * weight, 0.0)
    if reduction.kind != "none":
        found = found.sum() / (share.sum() if reduction.kind == "mean" else 1.0)
    return found.to(reduction.dtype or found.dtype)
