"""Prints graphs as statements of C, for one row at a time: the loss, the gradient, and the numbers of the row that they need."""

from collections.abc import Hashable
from typing import Any

from lossmith.kernels.graphs.recorded import Graphs
from lossmith.kernels.graphs.reductions import identity_of, is_row, level_of, reductions_in
from lossmith.kernels.native.largest import Successions, is_asked_for
from lossmith.kernels.native.newton import newton
from lossmith.kernels.native.rows import RowPrinter
from lossmith.kernels.row_operations import seen_through
from lossmith.kernels.symbols import Operation

__all__ = ["Printer", "row_statements"]


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


class Printer(RowPrinter):
    """Prints the statements for one row.

    Args:
        graphs: Loss and gradient.
        has_gradient: Whether there is to be a gradient.
        wanted: Rows that are needed in several walks; by default all that take long are taken for such.
    """

    def __init__(self, graphs: Graphs, *, has_gradient: bool, wanted: set[Hashable] | None = None) -> None:
        super().__init__(graphs.numbers, wanted)
        roots = [graphs.loss, graphs.gradient] if has_gradient else [graphs.loss]
        self._reductions = [each for root in roots for each in reductions_in(root)]
        self._successions = Successions(roots, self._reductions)
        self.add(f"const double loss = {self.text(graphs.loss)};")
        if has_gradient:
            self._print_gradient(graphs.gradient)

    def _print_gradient(self, gradient: Any) -> None:
        """Print the gradient; single entries that differ from the rest are written after it."""
        row, puts = seen_through(gradient), []
        while isinstance(row, Operation) and row.name == "put" and is_row(row.arguments[0]) and not is_row(row.arguments[2]):
            row, *entry = map(seen_through, row.arguments)
            puts.append(entry)
        self.prepare([row, *(part for entry in puts for part in entry)])
        with self.walk():
            self.add(f"g[j] = (number)({self.text(row)} * share);")
        for place, value in reversed(puts):
            self.add(f"g[{self.text(place)}] = (number)({self.text(value)} * share);")

    def reduce(self, value: Operation) -> None:
        """Find a number of the row, and with the same walk all others for which everything is known."""
        if value.name == "tempered_peak":
            newton(self, value)
        elif value.name == "take":
            self._take(value)
        else:
            self._sums_and_tops(value)

    def _take(self, value: Operation) -> None:
        row, index = value.arguments
        self.prepare([row])
        place, name = self.text(index), self.new_name()
        self.add(f"double {name};")
        with self.at(place):
            self.add(f"{name} = {self.text(row)};")
        self.keep(identity_of(value), name)

    def _sums_and_tops(self, value: Operation) -> None:
        known: dict[Any, int] = {}
        level = level_of(value, known)
        same = [each for each in (value, *self._reductions) if level_of(each, known) == level and self._is_open(each)]
        self.prepare(each.arguments[0] for each in same)
        for row in {each.arguments[0]: None for each in same if each.name != "total"}:
            if self._successions.starts(row) and not self.is_kept(("top_height", row)):
                self._successions.split(self, row)
        same = [each for each in same if self._is_open(each)]
        if not same:
            return
        rows = {identity_of(each): each.arguments[0] for each in same if each.name == "total"}
        tops = {each.arguments[0]: self.new_name() for each in same if each.name != "total"}
        totals = {identity: self.new_name() for identity in rows}
        for name in totals.values():
            self.add(f"double {name} = 0.0;")
        for name in tops.values():
            self.add(f"double {name}h = -INFINITY;")
        with self.walk(add=totals.values(), max=[f"{name}h" for name in tops.values()]):
            for identity, name in totals.items():
                self.add(f"{name} += {self.text(rows[identity])};")
            for row, name in tops.items():
                entry = self.text(row)
                self.add(f"{name}h = {entry} > {name}h ? {entry} : {name}h;")
        for identity, name in totals.items():
            self.keep(identity, name)
        self._places(tops)

    def _is_open(self, value: Operation) -> bool:
        return value.name not in ("take", "tempered_peak") and not self.is_kept(identity_of(value))

    def _places(self, tops: dict[Any, str]) -> None:
        """Print where the largest are, and the exponentials of the others where these are asked for."""
        for row, name in tops.items():
            self.keep(("top_height", row), f"{name}h")
            if is_asked_for(self._reductions, row, "top_place", "peak_place", "peak_rest"):
                self._print_place(row, name)
            self.add(f"const double {name}_height = {name}h == -INFINITY ? 0.0 : {name}h;")
            self.keep(("peak_height", row), f"{name}_height")
            if is_asked_for(self._reductions, row, "peak_rest"):
                self._print_rest(row, name)

    def _print_place(self, row: Any, name: str) -> None:
        self.add(f"int64_t {name}p = classes;")
        with self.walk(min=[f"{name}p"]):
            self.add(f"const int64_t {name}q = {self.text(row)} == {name}h ? j : classes;")
            self.add(f"{name}p = {name}q < {name}p ? {name}q : {name}p;")
        self.add(f"{name}p = {name}p < classes ? {name}p : 0;")  # a row of nothing but NaN
        for part in ("top_place", "peak_place"):
            self.keep((part, row), f"{name}p")

    def _print_rest(self, row: Any, name: str) -> None:
        """A row of nothing but -inf has no mass, one with an infinity is no number."""
        self.add(f"double {name}_rest = 0.0;")
        with self.walk(add=[f"{name}_rest"]):
            entry = self.entry(("weights", row), lambda: f"exp_of({self.text(row)} - {name}_height)", "exp")
            self.add(f"{name}_rest += j == {name}p ? 0.0 : {entry};")
        self.add(
            f"{name}_rest = {name}h == INFINITY ? NAN : {name}_rest;",
            f"{name}_rest = {name}h == -INFINITY && {name}_rest == {name}_rest ? -1.0 : {name}_rest;",
        )
        self.keep(("peak_rest", row), f"{name}_rest")
