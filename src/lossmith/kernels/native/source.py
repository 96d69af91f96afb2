"""Prints graphs as statements of C, for one row at a time.

All arithmetic is in double precision. A walk is a loop over the classes of a row, which is in the cache; what takes long
to compute in one walk and is needed in a later one is stored in a buffer.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from lossmith.kernels.graphs.recorded import Graphs
from lossmith.kernels.graphs.reductions import REDUCTIONS, identity_of, is_row, level_of, numbers_within, reductions_in
from lossmith.kernels.row_operations import seen_through
from lossmith.kernels.symbols import Input, Operation, UntraceableError, inputs_of
from lossmith.kernels.traced import FACTORS, LOGITS, TARGET

__all__ = ["Printer", "row_statements", "splits_largest"]

OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
FUNCTIONS = {
    "abs": "fabs",
    "cos": "cos",
    "exp": "exp_of",
    "expm1": "expm1_of",
    "log": "log_of",
    "log1p": "log1p_of",
    "pow": "power_of",
    "sigmoid": "sigmoid_of",
    "sin": "sin",
    "softplus": "softplus_of",
    "sqrt": "sqrt",
    "tanh": "tanh_of",
}
PATTERNS = {
    "isfinite": "fabs({0}) < INFINITY",
    "isnan": "{0} != {0}",
    "logical_and": "({0} != 0) & ({1} != 0)",
    "logical_not": "{0} == 0",
    "logical_or": "({0} != 0) | ({1} != 0)",
    "neg": "-{0}",
    "own": "(double)z[label]",
    "put": "j == {1} ? {2} : {0}",
    "spread": "{0}",
    "tail_places": "(double)j / (classes > 1 ? classes - 1 : 1)",
    "two_difference": "{0} - {1} - {2}",
    "where": "{0} ? {1} : {2}",
}
CONDITIONS = ("eq", "ne", "lt", "le", "gt", "ge", "isfinite", "isnan", "logical_and", "logical_not", "logical_or")
# Log-odds are known to twice the digits.
OF_TWO = ("sigmoid", "softplus")
# What takes longer than to read it from a buffer.
LONG = (*FUNCTIONS, "div")
# As in kernels/triton/walks.py, but a loop in C ends where nothing changes any more.
NEWTON_STEPS = 60


def row_statements(graphs: Graphs, *, has_gradient: bool) -> "Printer":
    """Print what is computed for one row.

    Args:
        graphs: Loss and gradient.
        has_gradient: Whether there is to be a gradient.

    Returns:
        A printer with all lines.
    """
    trial = Printer(graphs, has_gradient=has_gradient)
    return Printer(graphs, has_gradient=has_gradient, wanted=trial.used)


class Printer:
    """Prints the statements for one row: lines, and the names that values have in them.

    Args:
        graphs: Loss and gradient.
        has_gradient: Whether there is to be a gradient.
        wanted: Rows that are needed in several walks; by default all that take long are taken for such.
    """

    def __init__(self, graphs: Graphs, *, has_gradient: bool, wanted: set[Hashable] | None = None) -> None:
        self.lines: list[str] = []
        self.buffers = 0
        """How many buffers of the length of a row are needed."""
        self.used: set[Hashable] = set()
        """Rows that were read from a buffer."""
        self._wanted = wanted
        self._depth = 2
        self._count = 0
        self._names: dict[Hashable, str] = {number: f"n{i}" for i, number in enumerate(graphs.numbers)}
        self._stored: dict[Hashable, str] = {}
        self._of_walk: dict[Hashable, str] = {}
        self._filling: dict[Hashable, str] = {}
        self._is_whole = True
        roots = [graphs.loss, graphs.gradient] if has_gradient else [graphs.loss]
        self._reductions = [each for root in roots for each in reductions_in(root)]
        self._without_top = {each.arguments[0]: each for root in roots for each in _rows_without_top(root)}
        self.add(f"const double loss = {self.text(graphs.loss)};")
        if has_gradient:
            self._print_gradient(graphs.gradient)

    def _print_gradient(self, gradient: Any) -> None:
        """Print the gradient; single entries that differ from the rest are written after it."""
        row, puts = seen_through(gradient), []
        while isinstance(row, Operation) and row.name == "put" and is_row(row.arguments[0]) and not is_row(row.arguments[2]):
            row, *entry = map(seen_through, row.arguments)
            puts.append(entry)
        self._prepare([row, *(part for entry in puts for part in entry)])
        with self._walk():
            self.add(f"g[j] = (number)({self.text(row)} * share);")
        for place, value in reversed(puts):
            self.add(f"g[{self.text(place)}] = (number)({self.text(value)} * share);")

    def add(self, *lines: str) -> None:
        """Add lines at the present depth."""
        self.lines += [f"{'    ' * self._depth}{line}" for line in lines]

    def _new_name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    @contextmanager
    def _walk(self, **reductions: Iterable[str]) -> Iterator[None]:
        """Print a loop over the classes; names are accumulated, ``add`` or ``max`` or ``min``."""
        signs = {"add": "+", "max": "max", "min": "min"}
        clauses = [f" reduction({signs[kind]}:{', '.join(names)})" for kind, names in reductions.items() if names]
        self.add(f"#pragma omp simd{''.join(clauses)}", "for (int64_t j = 0; j < classes; j++) {")
        filled = dict(self._stored)
        with self._block(is_whole=True):
            yield
        self._stored = filled | self._filling

    @contextmanager
    def _block(self, *, is_whole: bool) -> Iterator[None]:
        """Print what depends on j, in braces that have been opened; only a whole walk fills buffers."""
        self._of_walk, self._filling, self._is_whole = {}, {}, is_whole
        self._depth += 1
        yield
        self._depth -= 1
        self.add("}")

    def text(self, value: Any) -> str:
        """Return what a value is called, after it has been computed."""
        value = seen_through(value)
        if isinstance(value, Input) and not value.is_number:
            return {LOGITS: "(double)z[j]", FACTORS: "(double)a[j]", TARGET: "label"}[value.name]
        if not isinstance(value, Operation | Input):
            return _constant(value)
        if value in self._names:
            return self._names[value]
        assert isinstance(value, Operation)
        if value.name in REDUCTIONS:
            if identity_of(value) not in self._names:
                self._reduce(value)
            return self._names[identity_of(value)]
        if is_row(value):
            return self._entry(_key(value), lambda: self._written(value), value.name)
        written = self._written(value)
        self._names[value] = self._new_name()
        self.add(f"const {_type(value.name)} {self._names[value]} = {written};")
        return self._names[value]

    def _entry(self, key: Hashable, write: Callable[[], str], operation: str) -> str:
        """Return the entry of a row at j: from its buffer, or computed."""
        if key in self._of_walk:
            return self._of_walk[key]
        if key in self._stored:
            self.used.add(key)
            return f"{self._stored[key]}[j]"
        written = write()
        name = self._of_walk[key] = self._new_name()
        self.add(f"const {_type(operation)} {name} = {written};")
        if operation in LONG and self._is_whole and (self._wanted is None or key in self._wanted):
            self._filling[key] = f"b{self.buffers}"
            self.add(f"b{self.buffers}[j] = {name};")
            self.buffers += 1
        return name

    def _written(self, value: Operation) -> str:
        arguments = [seen_through(each) for each in value.arguments]
        if value.name in OF_TWO and (two := _two(arguments[0])):
            sign, odds = two
            high, parts = self.text(odds), ", ".join(map(self.text, odds.arguments))
            return f"{value.name}_of_two({sign}{high}, {sign}rounding_of({parts}))"
        parts_ = [self.text(each) for each in arguments] if value.name != "own" else []
        if value.name in OPERATORS:
            return f"{parts_[0]} {OPERATORS[value.name]} {parts_[1]}"
        if value.name in FUNCTIONS:
            return f"{FUNCTIONS[value.name]}({', '.join(parts_)})"
        if value.name in PATTERNS:
            return PATTERNS[value.name].format(*parts_)
        raise UntraceableError(f"uses {value.name}, which kernels do not know")

    def _prepare(self, values: Iterable[Any]) -> None:
        """Compute the numbers that rows are made of, since within a walk it is too late."""
        for value in values:
            for number in [value, *numbers_within(value)]:
                if not is_row(number):
                    self.text(number)

    def _reduce(self, value: Operation) -> None:
        """Find a number of the row, and with the same walk all others for which everything is known."""
        if value.name == "tempered_peak":
            self._newton(value)
        elif value.name == "take":
            self._take(value)
        else:
            self._sums_and_tops(value)

    def _take(self, value: Operation) -> None:
        row, index = value.arguments
        self._prepare([row])
        place, name = self.text(index), self._new_name()
        self.add(f"double {name};", "{")
        with self._block(is_whole=False):
            self.add(f"const int64_t j = {place};")
            self.add(f"{name} = {self.text(row)};")
        self._names[identity_of(value)] = name

    def _sums_and_tops(self, value: Operation) -> None:
        known: dict[Any, int] = {}
        level = level_of(value, known)
        same = [each for each in (value, *self._reductions) if level_of(each, known) == level and self._is_open(each)]
        self._prepare(each.arguments[0] for each in same)
        for row in {each.arguments[0]: None for each in same if each.name != "total"}:
            if self._next_row(row) is not None and ("top_height", row) not in self._names:
                self._split_largest(row)
        same = [each for each in same if self._is_open(each)]
        if not same:
            return
        totals = {identity_of(each): each.arguments[0] for each in same if each.name == "total"}
        tops = {each.arguments[0]: self._new_name() for each in same if each.name != "total"}
        for identity in totals:
            self._names[identity] = self._new_name()
            self.add(f"double {self._names[identity]} = 0.0;")
        for name in tops.values():
            self.add(f"double {name}h = -INFINITY;")
        with self._walk(add=[self._names[each] for each in totals], max=[f"{name}h" for name in tops.values()]):
            for identity, row in totals.items():
                self.add(f"{self._names[identity]} += {self.text(row)};")
            for row, name in tops.items():
                entry = self.text(row)
                self.add(f"{name}h = {entry} > {name}h ? {entry} : {name}h;")
        self._places(tops)

    def _split_largest(self, row: Any) -> None:
        """Print the search for the largest numbers one after the other, which leaves a row without them."""
        rows = [row]
        while (following := self._next_row(rows[-1])) is not None:
            rows.append(following)
        name, buffer, maxima = self._new_name(), f"b{self.buffers}", f"b{self.buffers + 1}"
        self.buffers += 2
        with self._walk():
            self.add(f"{buffer}[j] = {self.text(row)};")
        count = len(rows)
        self.add(
            f"double {name}h[{count}];",
            f"int64_t {name}p[{count}];",
            f"split_largest({buffer}, classes, {count}, {maxima}, {name}h, {name}p);",
        )
        for i, each in enumerate(rows):
            self._names["top_height", each], self._names["top_place", each] = f"{name}h[{i}]", f"{name}p[{i}]"
        if rows[-1] in self._without_top:
            self._stored[self._without_top[rows[-1]]] = buffer

    def _next_row(self, row: Any) -> Operation | None:
        """Return a row without its largest number if the largest of that is asked for, and nothing but such."""
        following = self._without_top.get(row)
        has_peak = any(self._asks_for(each, "peak_height", "peak_place", "peak_rest") for each in (row, following))
        return following if self._asks_for(following, "top_height", "top_place") and not has_peak else None

    def _is_open(self, value: Operation) -> bool:
        return value.name not in ("take", "tempered_peak") and identity_of(value) not in self._names

    def _asks_for(self, row: Any, *names: str) -> bool:
        return any(each.name in names and each.arguments[0] is row for each in self._reductions)

    def _places(self, tops: dict[Any, str]) -> None:
        """Print where the largest are, and the exponentials of the others where these are asked for."""
        for row, name in tops.items():
            self._names["top_height", row] = f"{name}h"
            if self._asks_for(row, "top_place", "peak_place", "peak_rest"):
                self._print_place(row, name)
            self.add(f"const double {name}_height = {name}h == -INFINITY ? 0.0 : {name}h;")
            self._names["peak_height", row] = f"{name}_height"
            if self._asks_for(row, "peak_rest"):
                self._print_rest(row, name)

    def _print_place(self, row: Any, name: str) -> None:
        self.add(f"int64_t {name}p = classes;")
        with self._walk(min=[f"{name}p"]):
            self.add(f"const int64_t {name}q = {self.text(row)} == {name}h ? j : classes;")
            self.add(f"{name}p = {name}q < {name}p ? {name}q : {name}p;")
        self.add(f"{name}p = {name}p < classes ? {name}p : 0;")  # a row of nothing but NaN
        self._names["top_place", row] = self._names["peak_place", row] = f"{name}p"

    def _print_rest(self, row: Any, name: str) -> None:
        """A row of nothing but -inf has no mass, one with an infinity is no number."""
        self.add(f"double {name}_rest = 0.0;")
        with self._walk(add=[f"{name}_rest"]):
            entry = self._entry(("weights", row), lambda: f"exp_of({self.text(row)} - {name}_height)", "exp")
            self.add(f"{name}_rest += j == {name}p ? 0.0 : {entry};")
        self.add(
            f"{name}_rest = {name}h == INFINITY ? NAN : {name}_rest;",
            f"{name}_rest = {name}h == -INFINITY && {name}_rest == {name}_rest ? -1.0 : {name}_rest;",
        )
        self._names["peak_rest", row] = f"{name}_rest"

    def _newton(self, node: Operation) -> None:
        """Print Newton's method for the largest of the tempered probabilities, see :mod:`lossmith.numerics.normalizer`."""
        gap, start, t = node.arguments
        name, temperature = self._new_name(), self.text(t)
        self._prepare([gap])
        self.add(f"double {name} = {self.text(start)};", f"for (int step = 0; step < {NEWTON_STEPS}; step++) {{")
        self._depth += 1
        self.add(
            f"const double {name}c = ({temperature} - 1.0) * exp_of(({temperature} - 1.0) * {name});",
            f"double {name}s = 0.0, {name}d = 0.0;",
        )
        with self._walk(add=[f"{name}s", f"{name}d"]):
            entry = self.text(gap)
            self.add(
                f"const double {name}x = {entry} * {name}c;",
                f"const double {name}e = exp_of(log1p_of({name}x) / (1.0 - {temperature}));",
                f"{name}s += {name}e;",
                f"{name}d += {name}e / (1.0 + {name}x);",
            )
        self.add(
            f"double {name}l = ({temperature} - 1.0) * (log_of({name}s) + {name});",
            f"{name}l = expm1_of({name}l > 60.0 ? 60.0 : {name}l) * {name}s / {name}d;",
            f"{name}l = {name} - log1p_of({name}l) / ({temperature} - 1.0);",
            f"{name}l = {name}l > 0.0 ? 0.0 : {name}l;",
            f"const int is_same = !(fabs({name}l - {name}) > 4e-16 * (1.0 + fabs({name}l)));",
            f"{name} = {name}l;",
            "if (is_same) break;",
        )
        self._depth -= 1
        self.add("}")
        self._names[identity_of(node)] = name


def splits_largest(graphs: Graphs) -> bool:
    """Return whether the largest numbers of a row are looked at one after the other.

    Args:
        graphs: Loss and gradient.

    Returns:
        Whether there is a row without the largest of another.
    """
    return bool(_rows_without_top(graphs.loss))


def _rows_without_top(root: Any) -> list[Operation]:
    """Return all rows that are others with -inf at the place of their largest number."""
    found: dict[Operation, None] = {}
    seen, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Operation) or node in seen:
            continue
        seen.add(node)
        waiting += inputs_of(node)
        if node.name == "put" and node.arguments[2] == -math.inf:
            row, place = node.arguments[:2]
            if isinstance(place, Operation) and place.name == "top_place" and place.arguments[0] is row:
                found[node] = None
    return list(found)


def _key(value: Operation) -> Hashable:
    """Return what a row is stored under: exponentials beside the largest number are found with their sum."""
    row = seen_through(value.arguments[0]) if value.name == "exp" else None
    if isinstance(row, Operation) and row.name == "sub":
        entry, height = map(seen_through, row.arguments)
        if isinstance(height, Operation) and height.name == "peak_height" and height.arguments[0] is entry:
            return ("weights", entry)
    return value


def _two(value: Any) -> tuple[str, Operation] | None:
    """Return the sign and the log-odds, if it is these or their negative."""
    if isinstance(value, Operation) and value.name == "neg":
        inner = _two(seen_through(value.arguments[0]))
        return inner and ("" if inner[0] else "-", inner[1])
    return ("", value) if isinstance(value, Operation) and value.name == "two_difference" else None


def _type(operation: str) -> str:
    return "int" if operation in CONDITIONS else "double"


def _constant(value: Any) -> str:
    number = float(value)
    if math.isnan(number):
        return "NAN"
    return repr(number) if math.isfinite(number) else f"({'-' if number < 0 else ''}INFINITY)"
