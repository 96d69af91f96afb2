"""Prints graphs as Triton kernels.

A kernel has M rows at a time. Numbers of a row are ``(M, 1)``, rows ``(M, BLOCK)``. Rows that fit into one block are *resident*:
they are read once, whatever is computed from them. Longer ones are walked over, once for each sum that another is made of.
"""

import math
from collections.abc import Hashable
from typing import Any

import torch

from lossmith.kernels.graphs.recorded import Graphs
from lossmith.kernels.graphs.reductions import (
    REDUCTIONS,
    identity_of,
    is_row,
    is_wide,
    key_of,
    level_of,
    numbers_within,
    reductions_in,
)
from lossmith.kernels.row_operations import seen_through
from lossmith.kernels.symbols import Input, Operation, UntraceableError
from lossmith.kernels.traced import FACTORS, LOGITS, TARGET
from lossmith.kernels.triton.walks import Walk, newton

__all__ = ["Printer"]

OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "logical_and": "&",
    "logical_or": "|",
}
FUNCTIONS = {
    "abs": "tl.abs",
    "cos": "tl.cos",
    "exp": "exp",
    "expm1": "expm1",
    "log": "tl.log",
    "log1p": "log1p",
    "pow": "power",
    "sigmoid": "sigmoid",
    "sin": "tl.sin",
    "softplus": "softplus",
    "sqrt": "tl.sqrt",
    "where": "tl.where",
}
PATTERNS = {
    "isfinite": "tl.abs({0}) < float('inf')",
    "isnan": "{0} != {0}",
    "logical_not": "{0} == 0",
    "neg": "-{0}",
    "put": "tl.where(cols == {1}, {2}, {0})",
    "spread": "{0}",
    "tail_places": "cols.to(WORK) / tl.maximum(CLASSES - 1, 1)",
    "tanh": "2 * sigmoid(2 * {0}) - 1",
    "wide": "({0}).to(tl.float64)",
}
OF_TWO = ("sigmoid", "softplus")


class Printer:
    """Prints one kernel: lines, and the names that values have in them.

    Args:
        graphs: Loss and gradient.
        resident: Whether a row fits into one block, and has been read.
    """

    def __init__(self, graphs: Graphs, *, resident: bool) -> None:
        self.lines: list[str] = []
        self.resident = resident
        self.walks = 0
        """How often a row is read."""
        self._graphs = graphs
        self._depth = 1
        self.work = {torch.float32: "tl.float32", torch.float64: "tl.float64"}[graphs.dtype]
        self._names: dict[Hashable, str] = {number: f"n{i}" for i, number in enumerate(graphs.numbers)}
        self._of_chunk: dict[Any, str] = {}
        self._count = 0
        self._times = 1
        if resident:
            self._read()

    def add(self, *lines: str) -> None:
        """Add lines at the present depth."""
        self.lines += [f"{'    ' * self._depth}{line}" for line in lines]

    def new_name(self) -> str:
        """Return a name that has not been used."""
        self._count += 1
        return f"v{self._count}"

    def _read(self) -> None:
        self.walks += self._times
        self.add(
            "inside = cols < CLASSES",
            "z = tl.load(base + cols.to(tl.int64) * class_stride, mask=in_rows & inside, other=0.0).to(WORK)",
        )
        if self._graphs.has_factors:
            self.add("a = tl.load(factors + cols.to(tl.int64) * factor_stride, mask=in_rows & inside, other=0.0).to(WORK)")

    def begin_walk(self) -> None:
        """Begin a walk over the row; what is added next happens for each block of it."""
        if not self.resident:
            self._of_chunk = {}
            self.add("for start in range(0, CLASSES, BLOCK):")
            self._depth += 1
            self.add("cols = start + tl.arange(0, BLOCK)[None, :]")
            self._read()

    def end_walk(self) -> None:
        """End it."""
        if not self.resident:
            self._depth -= 1
            self._of_chunk = {}

    def repeat(self, times: int) -> None:
        """Begin a loop."""
        self._times = times
        self.add(f"for step in range({times}):")
        self._depth += 1

    def end_repeat(self) -> None:
        """End it."""
        self._times = 1
        self._depth -= 1

    def keep(self, identity: Hashable, name: str) -> None:
        """Remember what a value is called."""
        self._names[identity] = name

    def name_kept(self, number: Operation, name: str) -> None:
        """Remember what a number of the row is called that has been computed before."""
        self.keep(identity_of(number) if number.name in REDUCTIONS else number, name)

    def text(self, value: Any) -> str:
        """Return what a value is called, after it has been computed."""
        value = seen_through(value)
        if isinstance(value, Input) and not value.is_number:
            return {LOGITS: "z", FACTORS: "a", TARGET: "labels"}[value.name]
        if not isinstance(value, Operation | Input):
            return _constant(value)
        if isinstance(value, Operation) and value.name in REDUCTIONS:
            if identity_of(value) not in self._names:
                self._reduce(value)
            return self._names[identity_of(value)]
        names = self._of_chunk if is_row(value) else self._names
        if value not in names:
            assert isinstance(value, Operation)
            written = self._written(value)
            names[value] = self.new_name()
            self.add(f"{names[value]} = {written}")
        return names[value]

    def _written(self, value: Operation) -> str:
        arguments = [seen_through(each) for each in value.arguments]
        if value.name == "own":
            return "tl.load(base + labels * class_stride, mask=counts & (labels >= 0) & (labels < CLASSES), other=0.0).to(WORK)"
        if value.name == "two_difference":
            return f"two_difference({', '.join(map(self.text, arguments))})[0]"
        if value.name in OF_TWO and (two := _two(arguments[0])):
            sign, odds = two
            parts = ", ".join(map(self.text, odds.arguments))
            low = self.new_name()
            self.add(f"{low} = two_difference({parts})")
            return f"{value.name}_of_two({sign}{low}[0], {sign}{low}[1])"
        parts_ = [f"{self.text(each)}{self._suffix(each, value)}" for each in arguments]
        if value.name in OPERATORS:
            return f"{parts_[0]} {OPERATORS[value.name]} {parts_[1]}"
        if value.name in FUNCTIONS:
            return f"{FUNCTIONS[value.name]}({', '.join(parts_)})"
        if value.name in PATTERNS:
            return PATTERNS[value.name].format(*parts_)
        raise UntraceableError(f"uses {value.name}, which kernels do not know")

    def _suffix(self, number: Any, user: Operation) -> str:
        """Return what is written after a name: in rows numbers are rounded, and parameters have the digits of what they meet."""
        if is_row(user):
            return ".to(WORK)" if is_wide(number) else ""
        return "_wide" if number in self._graphs.numbers and is_wide(user) else ""

    def _reduce(self, value: Operation) -> None:
        """Find a number of the row, and with the same walk all others for which everything is known."""
        if value.name == "tempered_peak":
            newton(self, value)
            return
        known: dict[Any, int] = {}
        level = level_of(value, known)
        wanted = [self._graphs.loss, *([] if self._graphs.gradient is None else numbers_within(self._graphs.gradient))]
        candidates = [each for root in wanted for each in reductions_in(root)] if not self.resident else []
        together = {key_of(each): each for each in (value, *candidates) if level_of(each, known) == level}
        walks = [Walk(each, self.new_name()) for each in together.values() if self._is_open(each)]
        for walk in walks:
            for number in (n for part in walk.node.arguments for n in [part, *numbers_within(part)] if not is_row(n)):
                self.text(number)
        for walk in walks:
            walk.begin(self)
        self.begin_walk()
        for walk in walks:
            walk.add(self)
        self.end_walk()
        for walk in walks:
            walk.end(self)

    def _is_open(self, value: Operation) -> bool:
        return value.name != "tempered_peak" and identity_of(value) not in self._names


def _two(value: Any) -> tuple[str, Operation] | None:
    """Return the sign and the log-odds, if it is these or their negative: they are known to twice the digits."""
    if isinstance(value, Operation) and value.name == "neg":
        inner = _two(seen_through(value.arguments[0]))
        return inner and ("" if inner[0] else "-", inner[1])
    return ("", value) if isinstance(value, Operation) and value.name == "two_difference" else None


def _constant(value: Any) -> str:
    number = float(value)
    return repr(number) if math.isfinite(number) else f'float("{number}")'
