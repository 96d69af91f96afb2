"""Which calls run as compiled functions, and these as operations of autograd; everything else is left to ``kernels/cpu``."""

import ctypes
import warnings
from collections.abc import Hashable
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from lossmith.kernels.cpu import engine as cpu
from lossmith.kernels.eager import differentiable_gradient, is_differentiated, is_known, is_plain_call, scaled, share_of_rows
from lossmith.kernels.formula import Formula
from lossmith.kernels.graphs.recorded import Graphs, graphs_of
from lossmith.kernels.native.building import CompilerError, library
from lossmith.kernels.native.largest import splits_largest
from lossmith.kernels.native.programs import FUNCTION_NAMES, printed_program
from lossmith.torch_compat import apply_outside_transforms, function_of_threads

__all__ = ["Kernel", "kernel_for", "losses", "mean"]

# Larger inputs take less time in kernels/cpu, where operations of torch are as good as loops of C and have fewer digits; but none
# of them splits the largest of a row off.
MOST_ELEMENTS = 1 << 14
# A loop over so few is written out by the compiler if it knows how many they are: two thirds of the time at (128, 10).
FEW_CLASSES = 32
MOST_KERNELS = 4096
# From so many on, starting threads takes less time than they save.
LEAST_FOR_THREADS = 1 << 13
RUN_AT_ONCE = function_of_threads()
POINTER, WHOLE = ctypes.c_void_p, ctypes.c_int64
ARGUMENTS = (*[POINTER] * 3, WHOLE, WHOLE, ctypes.c_double, *[POINTER] * 4, ctypes.c_uint)


class Kernel(NamedTuple):
    """The functions of a formula, and the numbers that it has."""

    alone: Any
    with_gradient: Any
    numbers: Any
    address: int

    def run(self, logits: Tensor, target: Tensor, share: float, result: Tensor, has_gradient: bool) -> Tensor | None:
        """Write the losses of rows, or their sum times a share, and return the gradient of that.

        Args:
            logits: ``(N, C)``, contiguous.
            target: Class indices ``(N,)``, or a factor for every class ``(N, C)``, contiguous.
            share: What losses or gradients are multiplied by in a sum.
            result: Where they are written: ``(N,)``, or one number for the sum.
            has_gradient: Whether there is to be a gradient.

        Returns:
            The gradient, or None.

        Raises:
            IndexError: If a class index is out of range.
            MemoryError: If there is none left.
        """
        rows, classes = logits.shape
        losses, total = (None, result.data_ptr()) if result.dim() == 0 else (result.data_ptr(), None)
        gradient = torch.empty_like(logits) if has_gradient else None
        function, place = (self.alone, None) if gradient is None else (self.with_gradient, gradient.data_ptr())
        threads = (RUN_AT_ONCE, torch.get_num_threads()) if rows * classes >= LEAST_FOR_THREADS else (None, 1)
        places = logits.data_ptr(), target.data_ptr(), self.address
        status = function(*places, rows, classes, share, losses, total, place, *threads)
        if status == 1:
            raise IndexError(f"target must lie in [0, {classes - 1}], got one that does not.")
        if status:
            raise MemoryError(f"no memory is left for rows of {classes} classes.")
        return gradient


def losses(formula: Formula, logits: Tensor, target: Tensor) -> Tensor:
    """Return the loss of each row: by a compiled function where there is one for this call, else by ``kernels/cpu``.

    Args:
        formula: The loss.
        logits: ``(N, C, ...)``, in single or double precision.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.

    Returns:
        Losses ``(N, ...)``.
    """
    kernel = kernel_for(formula, logits, target)
    if kernel is None:
        return cpu.losses(formula, logits, target)
    return cast("Tensor", _Losses.apply(_plain(logits), _plain(target), kernel, formula))  # type: ignore[no-untyped-call]


def mean(formula: Formula, logits: Tensor, target: Tensor, denominator: float | Tensor | None = None) -> Tensor:
    """Return the mean of the losses of all rows, as one operation.

    Args:
        formula: The loss.
        logits: ``(N, C)``, in single or double precision.
        target: Class indices ``(N,)``, or a factor for every class ``(N, C)``.
        denominator: What their sum is divided by, instead of N.

    Returns:
        One number.
    """
    kernel = kernel_for(formula, logits, target) if is_known(denominator) else None
    if kernel is None:
        return cpu.mean(formula, logits, target, denominator)
    share = share_of_rows(logits, denominator)
    return cast("Tensor", _apply_mean(_plain(logits), _plain(target), kernel, formula, share))


def kernel_for(formula: Formula, logits: Tensor, target: Tensor) -> Kernel | None:
    """Return the kernel for this call, or None where there is none.

    Args:
        formula: The loss.
        logits: The logits of the call.
        target: Its target.

    Returns:
        A kernel, which is compiled at the first such call.
    """
    # What else is a tensor may have no memory.
    if type(logits) is not Tensor or type(target) is not Tensor or not is_plain_call(logits, target):
        return None
    shape = logits.shape
    if len(shape) != 2 or 0 in shape:
        return None
    try:
        key = _exact_key(formula), shape[1], logits.dtype, target.dtype, shape[0] * shape[1] <= MOST_ELEMENTS
        if key not in _kernels:
            if len(_kernels) >= MOST_KERNELS:
                _kernels.clear()
            _kernels[key] = _made(formula, logits, target)
        return _kernels[key]
    except TypeError:  # a formula with parts that have no hash
        return None


_kernels: dict[Hashable, Kernel | None] = {}
"""Kernels by formula, parameters included, number of classes, precisions and whether there is little to compute."""


def _exact_key(part: Any) -> Hashable:
    """Return what tells a formula from others, numbers included."""
    if isinstance(part, tuple | list):
        return (type(part), *map(_exact_key, part))
    if isinstance(part, partial):
        return (part.func, part.args, *part.keywords.items())
    if isinstance(part, dict):
        return tuple((name, _exact_key(value)) for name, value in part.items())
    if isinstance(part, Tensor):  # whose values may change
        raise TypeError("A tensor tells no formulas apart.")
    return cast("Hashable", part)


def _made(formula: Formula, logits: Tensor, target: Tensor) -> Kernel | None:
    classes, has_factors = logits.shape[1], target.is_floating_point()
    known = graphs_of(formula, classes, has_factors=has_factors, dtype=torch.float64, sees_all_absences=has_factors)
    if known is None or (logits.numel() > MOST_ELEMENTS and not splits_largest(known[0])):
        return None
    functions = _functions(known[0], logits.dtype, classes if classes <= FEW_CLASSES else None)
    if functions is None:
        return None
    numbers = (ctypes.c_double * len(known[1]))(*known[1])
    return Kernel(functions[0], functions[1], numbers, ctypes.addressof(numbers))


@lru_cache(maxsize=512)
def _functions(graphs: Graphs, precision: torch.dtype, classes: int | None) -> tuple[Any, ...] | None:
    """Return the functions for graphs, which are made once; a kernel that cannot be compiled is done without."""
    try:
        made = library(printed_program(graphs, precision, classes))
    except CompilerError as error:
        warnings.warn(f"Lossmith goes on without a compiled kernel: {error}", RuntimeWarning, stacklevel=2)
        return None
    functions = tuple(getattr(made, name) for name in FUNCTION_NAMES)
    for function in functions:
        function.argtypes = ARGUMENTS
    return functions


def _plain(tensor: Tensor) -> Tensor:
    """Return a tensor whose memory has its numbers, one after the other."""
    return tensor if tensor.is_contiguous() and not tensor.is_neg() else tensor.contiguous().resolve_neg()


class _Losses(torch.autograd.Function):
    """The losses of rows."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, kernel: Kernel, formula: Formula) -> Tensor:
        found = logits.new_empty(logits.shape[0])
        gradient = kernel.run(logits, target, 1.0, found, ctx.needs_input_grad[0])
        ctx.formula = formula
        ctx.save_for_backward(logits, target, gradient)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        if is_differentiated():
            return differentiable_gradient(ctx, grad), None, None, None
        return scaled(ctx.saved_tensors[2], grad.unsqueeze(1)), None, None, None


class _Mean(torch.autograd.Function):
    """The mean of the losses of rows."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, kernel: Kernel, formula: Formula, share: float) -> Tensor:  # noqa: PLR0917
        found = logits.new_empty(())
        gradient = kernel.run(logits, target, share, found, ctx.needs_input_grad[0])
        ctx.formula, ctx.share = formula, share
        ctx.save_for_backward(logits, target, gradient)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        if is_differentiated():
            rows = ctx.saved_tensors[0].shape[0]
            return differentiable_gradient(ctx, (grad * ctx.share).expand(rows)), None, None, None, None
        return scaled(ctx.saved_tensors[2], grad), None, None, None, None


# Leaves out what Function.apply does for torch.func, which is not active here.
_apply_mean = apply_outside_transforms(_Mean)
