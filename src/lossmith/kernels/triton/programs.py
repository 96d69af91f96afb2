"""Whole kernels as text: what surrounds the formula, which is the same for every loss."""

from typing import NamedTuple

from lossmith.kernels.graphs.recorded import Graphs
from lossmith.kernels.graphs.reductions import numbers_within
from lossmith.kernels.symbols import Operation
from lossmith.kernels.triton.source import Printer

__all__ = ["LONGEST_RESIDENT", "Program", "printed_program"]

# A row of so many numbers in single precision takes a quarter of the registers of a multiprocessor of a GPU.
LONGEST_RESIDENT = 16384

ARGUMENTS = "logits, target, weight, {own}, {numbers}ROWS, CLASSES, INNER, row_stride, inner_stride, class_stride, IGNORE"
CONSTANTS = "HAS_WEIGHT: tl.constexpr, REDUCES: tl.constexpr, M: tl.constexpr, BLOCK: tl.constexpr, WORK: tl.constexpr"
BEGINNING = """\
    rows = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)[:, None]
    in_rows = rows < ROWS
    base = logits + (rows // INNER) * row_stride + (rows % INNER) * inner_stride"""
LABELS = """\
    labels = tl.load(target + rows, mask=in_rows, other=IGNORE)
    counts = in_rows & (labels != IGNORE)
    share = tl.where(counts, 1.0, 0.0).to(WORK)
    if HAS_WEIGHT:
        share = tl.load(weight + labels, mask=counts & (labels >= 0) & (labels < CLASSES), other=0.0).to(WORK)"""
FACTORS = """\
    factors = target + (rows // INNER) * row_stride + (rows % INNER) * inner_stride
    factor_stride = class_stride
    counts = in_rows
    share = tl.where(counts, 1.0, 0.0).to(WORK)"""
OUTSIDE = """\
    loss = tl.where((labels < 0) | (labels >= CLASSES), float("nan"), loss)"""
LOSS = """\
    loss = tl.where(counts, loss, 0.0)
    if HAS_WEIGHT:
        loss = loss * share
    if REDUCES:
        tl.store(losses + tl.program_id(0), tl.sum(loss))
        tl.store(shares + tl.program_id(0), tl.sum(share))
    else:
        tl.store(losses + rows, loss, mask=in_rows)"""
GRADIENT = """\
    if REDUCES:
        slope = tl.load(slopes).to(WORK) / tl.load(whole).to(WORK) + tl.zeros([M, 1], WORK)
    else:
        slope = tl.load(slopes + rows, mask=in_rows, other=0.0).to(WORK)
    if HAS_WEIGHT:
        slope = slope * share
    place = gradient + (rows // INNER) * gradient_stride + (rows % INNER) * inner_stride + cols.to(tl.int64) * class_stride"""
STORE = """\
    tl.store(place, tl.where(counts, result * slope, 0.0), mask=in_rows & inside)"""


class Program(NamedTuple):
    """The kernels of a formula."""

    text: str
    kept: int
    """How many numbers of each row are kept for the gradient."""
    walks: int
    """How often the first kernel reads a row; the second reads it once."""


def printed_program(graphs: Graphs, *, resident: bool, has_gradient: bool) -> Program:
    """Print the kernels of a formula.

    Args:
        graphs: Loss and gradient.
        resident: Whether rows fit into one block.
        has_gradient: Whether there is to be a gradient.

    Returns:
        The source of ``forward``, and of ``backward`` if there is a gradient.
    """
    kept = numbers_within(graphs.gradient) if has_gradient else []
    forward = Printer(graphs if has_gradient else graphs._replace(gradient=None), resident=resident)
    forward.add(f"loss = {forward.text(graphs.loss)} + tl.zeros([M, 1], WORK)")
    for place, number in enumerate(kept):
        value = f"{forward.text(number)} + tl.zeros([M, 1], WORK)"
        forward.add(f"tl.store(kept + {place} * ROWS + rows, {value}, mask=in_rows)")
    parts = [_head("forward", "losses, shares, kept", graphs), BEGINNING, FACTORS if graphs.has_factors else LABELS]
    parts += ["    cols = tl.arange(0, BLOCK)[None, :]", *forward.lines, *([] if graphs.has_factors else [OUTSIDE]), LOSS]
    if has_gradient:
        parts += ["", "", *_backward(graphs, kept)]
    return Program("\n".join(parts) + "\n", len(kept), forward.walks)


def _head(name: str, own: str, graphs: Graphs) -> str:
    numbers = "".join(f'n{place}_: "fp64", ' for place in range(len(graphs.numbers)))
    head = f"@triton.jit\ndef {name}({ARGUMENTS.format(own=own, numbers=numbers)}, {CONSTANTS}):"
    wide = [f"    n{place}_wide = tl.zeros([1, 1], tl.float64) + n{place}_" for place in range(len(graphs.numbers))]
    return "\n".join([head, *wide, *(f"    n{place} = n{place}_wide.to(WORK)" for place in range(len(graphs.numbers)))])


def _backward(graphs: Graphs, kept: list[Operation]) -> list[str]:
    """The gradient is a function of each logit, and of what was kept from the loss."""
    own = "kept, slopes, whole, gradient, gradient_stride"
    parts = [_head("backward", own, graphs), BEGINNING, FACTORS if graphs.has_factors else LABELS]
    parts.append("    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]")
    printer = Printer(graphs, resident=True)
    for place, number in enumerate(kept):
        printer.add(f"k{place} = tl.load(kept + {place} * ROWS + rows, mask=in_rows, other=0.0)")
        if number.name.endswith("_place"):
            printer.add(f"k{place} = k{place}.to(tl.int32)")
        printer.name_kept(number, f"k{place}")
    printer.add(f"result = {printer.text(graphs.gradient)}")
    return [*parts, *printer.lines, GRADIENT, STORE]
