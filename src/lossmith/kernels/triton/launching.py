"""Kernels that have been printed, made into functions, and started."""

import linecache
from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from lossmith.kernels.graphs.recorded import Graphs
from lossmith.kernels.triton import arithmetic
from lossmith.kernels.triton.programs import LONGEST_RESIDENT, Program, printed_program
from lossmith.kernels.triton.summing import sum_of_blocks

__all__ = ["Kernels", "Layout", "kernels_of", "launch", "reduce"]

# Rows together have about so many numbers in a block.
BLOCK_ELEMENTS = 2048
LONGEST_WALKED = 4096
WORK = {torch.float32: tl.float32, torch.float64: tl.float64}


class Kernels(NamedTuple):
    """What runs a formula."""

    program: Program
    forward: Any
    backward: Any


@lru_cache(maxsize=512)
def kernels_of(graphs: Graphs, resident: bool, has_gradient: bool) -> Kernels:
    """Return the kernels for graphs, which are made once.

    Args:
        graphs: Loss and gradient.
        resident: Whether rows fit into one block.
        has_gradient: Whether there is to be a gradient.

    Returns:
        The kernels.
    """
    program = printed_program(graphs, resident=resident, has_gradient=has_gradient)
    return _compiled(program)


@lru_cache(maxsize=512)
def _compiled(program: Program) -> Kernels:
    """Make functions of the text; Triton looks it up by the name of a file, as tracebacks do."""
    name = f"<lossmith kernel {len(linecache.cache)}>"
    linecache.cache[name] = (len(program.text), None, program.text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"triton": triton, "tl": tl} | {each: getattr(arithmetic, each) for each in arithmetic.__all__}
    exec(compile(program.text, name, "exec"), space)  # noqa: S102 (printed from a graph of known operations)
    return Kernels(program, space["forward"], space.get("backward"))


class Layout(NamedTuple):
    """Where rows and classes are, and how they are divided into blocks."""

    rows: int
    classes: int
    inner: int
    row_stride: int
    inner_stride: int
    class_stride: int
    block: int
    rows_at_once: int

    @classmethod
    def of(cls, logits: Tensor) -> "Layout":
        """Return the layout of logits ``(N, C, ...)`` whose classes and further dimensions are contiguous."""
        classes = logits.shape[1]
        inner = logits[0, 0].numel() if logits.dim() > 2 else 1
        block = _power_of_2(classes) if classes <= LONGEST_RESIDENT else LONGEST_WALKED
        rows = logits.shape[0] * inner
        at_once = max(1, min(_power_of_2(rows), BLOCK_ELEMENTS // block))
        return cls(rows, classes, inner, logits.stride(0), 1, inner, block, at_once)

    @property
    def is_resident(self) -> bool:
        """Whether a row fits into one block."""
        return self.classes <= self.block

    @property
    def programs(self) -> int:
        """How many programs there are for all rows."""
        return -(-self.rows // self.rows_at_once)

    @property
    def arguments(self) -> tuple[int, ...]:
        """What kernels are told about it."""
        return self[:6]

    def constants(self, dtype: torch.dtype, block: int) -> dict[str, Any]:
        """Return what kernels are compiled for."""
        warps = max(1, min(32, self.rows_at_once * block // 512))
        return {"M": self.rows_at_once, "BLOCK": block, "WORK": WORK[dtype], "num_warps": _power_of_2(warps)}


def _power_of_2(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
    """Start a kernel.

    Args:
        kernel: A function of Triton.
        grid: How many programs there are.
        *arguments: Its arguments.
        **constants: What it is compiled for.
    """
    kernel[grid](*arguments, **constants)


def reduce(losses: Tensor, shares: Tensor, *, is_mean: bool, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the mean or the sum of what blocks of rows found, and what it was divided by.

    Args:
        losses: Sums of losses.
        shares: Sums of the shares that rows have in the mean.
        is_mean: Whether the mean is wanted.
        dtype: The precision of the result.

    Returns:
        Two numbers.
    """
    result, divisor = losses.new_empty((), dtype=dtype), losses.new_empty(())
    launch(sum_of_blocks, (1,), losses, shares, result, divisor, len(losses), MEAN=is_mean, BLOCK=1024)
    return result, divisor
