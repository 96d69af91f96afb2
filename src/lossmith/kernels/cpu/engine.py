"""Which kernel runs a formula, and kernels as operations of autograd.

Gradients of gradients come from the formula itself: they are rare, and speed is not the point there.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor

from lossmith.kernels import formula as plain
from lossmith.kernels.cpu.class_terms import kernel_of_classes
from lossmith.kernels.cpu.combined import kernel_of_biased, kernel_of_shifted, kernel_of_sum, kernel_with_partition
from lossmith.kernels.cpu.evaluation import Evaluation, Kernel
from lossmith.kernels.cpu.of_logits.margins import ldam
from lossmith.kernels.cpu.of_logits.sigmoid import sigmoid_cross_entropy
from lossmith.kernels.cpu.of_logits.sizes import logit_norm, logit_penalty, squared_error, squared_log_partition
from lossmith.kernels.cpu.probabilities import complement_entropy, maximum_probability
from lossmith.kernels.cpu.smoothing import label_smoothing
from lossmith.kernels.cpu.target import kernel_of_target
from lossmith.kernels.cpu.tempered import bi_tempered, tsallis
from lossmith.kernels.cpu.top_k import smooth_topk
from lossmith.kernels.eager import differentiable_gradient, is_differentiated, is_known, is_plain_call, scaled, share_of_rows
from lossmith.kernels.formula import Biased, Formula, Rows, Shifted, Sum, Terms
from lossmith.torch_compat import apply_outside_transforms, below_autograd

__all__ = ["KERNELS", "kernel_for", "losses", "mean"]

KERNELS: dict[str, Callable[..., Kernel | None]] = {
    kernel.__name__: kernel
    for kernel in (
        bi_tempered,
        complement_entropy,
        label_smoothing,
        ldam,
        logit_norm,
        logit_penalty,
        maximum_probability,
        sigmoid_cross_entropy,
        smooth_topk,
        squared_error,
        squared_log_partition,
        tsallis,
    )
}
"""The functions of rows that have a kernel, by the name of the function in ``lossmith.losses``."""


def losses(formula: Formula, logits: Tensor, target: Tensor) -> Tensor:
    """Return the loss of each row: by a kernel where there is one for this call, else by the formula.

    Args:
        formula: The loss.
        logits: ``(N, C, ...)``, in single or double precision.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.

    Returns:
        Losses ``(N, ...)``.
    """
    kernel = kernel_for(formula, target) if is_plain_call(logits, target) else None
    if kernel is None:
        return formula.losses(logits, target)
    return cast("Tensor", _Losses.apply(logits, target, kernel, formula))  # type: ignore[no-untyped-call]


def mean(formula: Formula, logits: Tensor, target: Tensor, denominator: float | Tensor | None = None) -> Tensor:
    """Return the mean of the losses of all rows, as one operation: that saves a fifth of the time for small batches.

    Args:
        formula: The loss.
        logits: ``(N, C)``, in single or double precision.
        target: Class indices ``(N,)``, or a factor for every class ``(N, C)``.
        denominator: What their sum is divided by, instead of N.

    Returns:
        One number.
    """
    is_plain = is_plain_call(logits, target) and is_known(denominator)
    kernel = kernel_for(formula, target) if is_plain else None
    if kernel is None:
        return plain.mean(formula, logits, target, denominator)
    share = share_of_rows(logits, denominator)
    return cast("Tensor", _apply_mean(logits, target, kernel, formula, share))


def kernel_for(formula: Formula, target: Tensor) -> Kernel | None:
    """Return the kernel that runs a formula, or None where there is none.

    Args:
        formula: The loss.
        target: The target of the call, whose kind decides.

    Returns:
        A kernel, if all parts of the formula have one.
    """
    if isinstance(formula, Terms):
        of_target = _looks_at_the_target_alone(formula, target)
        return kernel_of_target(formula.terms) if of_target else kernel_of_classes(formula.terms, target)
    if isinstance(formula, Rows):
        return _kernel_of_rows(formula, target)
    if isinstance(formula, Biased):
        kernel = None if target.is_floating_point() else kernel_for(formula.formula, target)
        return None if kernel is None else kernel_of_biased(kernel, formula.epsilon)
    if isinstance(formula, Shifted):
        kernel = kernel_for(formula.formula, target)
        return None if kernel is None else kernel_of_shifted(kernel, formula)
    return _kernel_of_sum(formula, target) if isinstance(formula, Sum) else None


def _kernel_of_sum(formula: Sum, target: Tensor) -> Kernel | None:
    kernels = [(factor, kernel_for(part, target)) for factor, part in formula.parts]
    known = [(factor, kernel) for factor, kernel in kernels if kernel is not None]
    if len(known) < len(kernels):
        return None
    kernel = kernel_of_sum(known)
    (factor, first), *others = formula.parts
    has_partition = [_is_partition(part) for _, part in others] == [True]
    if has_partition and factor == 1 and isinstance(first, Terms) and _looks_at_the_target_alone(first, target):
        return kernel_with_partition(first.terms, others[0][0], kernel)
    return kernel


def _is_partition(formula: Formula) -> bool:
    return isinstance(formula, Rows) and KERNELS.get(formula.function.__name__) is squared_log_partition and _is_own(formula)


def _is_own(formula: Rows) -> bool:
    """Return whether this is a function of the library; a user's of the same name may mean something else."""
    return formula.function.__module__.startswith("lossmith.losses.")


def _looks_at_the_target_alone(formula: Terms, target: Tensor) -> bool:
    return not (target.is_floating_point() or any(term.normalized for term in formula.terms))


def _kernel_of_rows(formula: Rows, target: Tensor) -> Kernel | None:
    kernel = KERNELS.get(formula.function.__name__) if _is_own(formula) else None
    return None if kernel is None else kernel(target, **formula.parameters)


# Of so few numbers a pass costs less than what surrounds it.
_FEW = 1 << 13


class _Losses(torch.autograd.Function):
    """The losses of rows."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, kernel: Kernel, formula: Formula) -> Tensor:
        found = kernel(logits, target, 1.0)
        _keep(ctx, logits, target, formula, found)
        return found.losses.clone()  # the losses may be a view, which must not be modified in place

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None, None]:
        if is_differentiated():
            return differentiable_gradient(ctx, grad), None, None, None
        direction, *factors = ctx.saved_tensors[2:]
        return scaled(direction, grad.unsqueeze(1) * (factors[0] if factors else ctx.factor)), None, None, None


class _Mean(torch.autograd.Function):
    """The mean of the losses of rows ``(N, C)``."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, kernel: Kernel, formula: Formula, share: float) -> Tensor:  # noqa: PLR0917
        ctx.share = share
        with below_autograd():
            found = kernel(logits, target, share)
            # Torch's own mean divides with two more operations.
            total = torch.scalar_tensor(found.losses.sum().item() * share, dtype=logits.dtype, device="cpu")
            if logits.numel() <= _FEW:
                found = _whole_gradient(found, share)
        ctx.share_left = 1.0 if found.has_share else share
        _keep(ctx, logits, target, formula, found)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None, None, None]:
        if is_differentiated():
            rows = ctx.saved_tensors[0].shape[0]
            return differentiable_gradient(ctx, (grad * ctx.share).expand(rows)), None, None, None, None
        direction, *factors = ctx.saved_tensors[2:]
        factor = ctx.share_left * ctx.factor
        grad = grad if factor == 1 else grad * factor
        return scaled(direction, grad * factors[0] if factors else grad), None, None, None, None


def _whole_gradient(found: Evaluation, share: float) -> Evaluation:
    """Multiply the direction by its factors at once: of few numbers that takes less time than to find them again later."""
    factor = found.factor if found.has_share else found.factor * share
    if not isinstance(factor, Tensor):
        if factor == 1:
            return found
        factor = _as_tensor(factor, found.direction.dtype)
    return found._replace(direction=found.direction.mul_(factor), factor=1.0, has_share=True)


@lru_cache(maxsize=256)
def _as_tensor(number: float, dtype: torch.dtype) -> Tensor:
    """Return a tensor: torch would make one of a number at every call, which takes as long as multiplying a small batch by it."""
    return torch.tensor(number, dtype=dtype, device="cpu")


# Leaves out what Function.apply does for torch.func, which takes 6 % of the time at (128, 10).
_apply_mean = apply_outside_transforms(_Mean)


def _keep(ctx: Any, logits: Tensor, target: Tensor, formula: Formula, found: Evaluation) -> None:
    ctx.formula = formula
    if isinstance(found.factor, Tensor):
        ctx.factor = 1.0
        ctx.save_for_backward(logits, target, found.direction, found.factor)
    else:
        ctx.factor = found.factor
        ctx.save_for_backward(logits, target, found.direction)
