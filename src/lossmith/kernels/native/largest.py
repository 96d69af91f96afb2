"""The largest numbers of a row, one after the other: each is the largest of a row without the one before."""

import math
from collections.abc import Sequence
from typing import Any

from lossmith.kernels.graphs.recorded import Graphs
from lossmith.kernels.native.rows import RowPrinter
from lossmith.kernels.symbols import Operation, inputs_of

__all__ = ["Successions", "is_asked_for", "splits_largest"]


class Successions:
    """Rows, and the same without their largest numbers.

    Args:
        roots: What is computed.
        reductions: The numbers of rows that it is made of.
    """

    def __init__(self, roots: Sequence[Any], reductions: Sequence[Operation]) -> None:
        self._reductions = reductions
        self._without_top = {each.arguments[0]: each for root in roots for each in _rows_without_top(root)}

    def starts(self, row: Any) -> bool:
        """Return whether more than the largest number of a row is asked for."""
        return self._next_row(row) is not None

    def split(self, printer: RowPrinter, row: Any) -> None:
        """Print the search for the largest numbers one after the other, which leaves a row without them.

        Args:
            printer: Where it is printed.
            row: A row with which a succession starts.
        """
        rows = [row]
        while (following := self._next_row(rows[-1])) is not None:
            rows.append(following)
        name, buffer, maxima, count = printer.new_name(), printer.new_buffer(), printer.new_buffer(), len(rows)
        with printer.walk():
            printer.add(f"{buffer}[j] = {printer.text(row)};")
        printer.add(
            f"double {name}h[{count}];",
            f"int64_t {name}p[{count}];",
            f"split_largest({buffer}, classes, {count}, {maxima}, {name}h, {name}p);",
        )
        for i, each in enumerate(rows):
            printer.keep(("top_height", each), f"{name}h[{i}]")
            printer.keep(("top_place", each), f"{name}p[{i}]")
        if rows[-1] in self._without_top:
            printer.store(self._without_top[rows[-1]], buffer)

    def _next_row(self, row: Any) -> Operation | None:
        """Return a row without its largest number if the largest of that is asked for, and nothing but such."""
        following = self._without_top.get(row)
        asked = self._reductions
        has_peak = any(is_asked_for(asked, each, "peak_height", "peak_place", "peak_rest") for each in (row, following))
        return following if is_asked_for(asked, following, "top_height", "top_place") and not has_peak else None


def is_asked_for(reductions: Sequence[Operation], row: Any, *names: str) -> bool:
    """Return whether one of the named numbers of a row is among those that are needed."""
    return any(each.name in names and each.arguments[0] is row for each in reductions)


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
