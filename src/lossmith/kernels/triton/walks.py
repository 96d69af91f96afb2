"""What kernels find out by walking over a row: sums, entries, the largest number, exponentials beside it, Newton's method."""

from collections.abc import Hashable
from typing import Any, NamedTuple, Protocol

from lossmith.kernels.graphs.reductions import identity_of
from lossmith.kernels.symbols import Operation

__all__ = ["Walk", "newton"]

# As many steps as are needed where values cannot be looked at, see numerics/normalizer.py.
STEPS = {"tl.float32": 10, "tl.float64": 12}
LOWEST = 'float("-inf")'


class Writes(Protocol):
    """Where lines are printed."""

    resident: bool
    work: str

    def add(self, *lines: str) -> None:
        """Add lines."""
        ...

    def text(self, value: Any) -> str:
        """Return what a value is called."""
        ...

    def new_name(self) -> str:
        """Return a name."""
        ...

    def keep(self, identity: Hashable, name: str) -> None:
        """Remember what a value is called."""
        ...

    def begin_walk(self) -> None:
        """Begin a walk over the row."""
        ...

    def end_walk(self) -> None:
        """End it."""
        ...

    def repeat(self, times: int) -> None:
        """Begin a loop."""
        ...

    def end_repeat(self) -> None:
        """End it."""
        ...


class Walk(NamedTuple):
    """One number of a row, or a few that are found together, in the making."""

    node: Operation
    name: str

    @property
    def kind(self) -> str:
        """What is looked for."""
        return self.node.name.partition("_")[0]

    def begin(self, printer: Writes) -> None:
        """Print what stands before the walk."""
        if self.kind in ("take", "total"):
            printer.add(f"{self.name} = tl.zeros([M, BLOCK], WORK)")
            return
        printer.add(
            f"{self.name}h = tl.full([M, BLOCK], {LOWEST}, WORK)",
            f"{self.name}p = tl.zeros([M, BLOCK], tl.int32)",
            f"{self.name}r = tl.zeros([M, BLOCK], WORK)",
        )

    def add(self, printer: Writes) -> None:
        """Print what happens for each block."""
        name, row = self.name, printer.text(self.node.arguments[0])
        if self.kind == "total":
            printer.add(f"{name} += tl.where(inside, {row}, 0.0)")
        elif self.kind == "take":
            printer.add(f"{name} += tl.where(cols == {printer.text(self.node.arguments[1])}, {row}, 0.0)")
        else:
            self._climb(printer, row)

    def _climb(self, printer: Writes, row: str) -> None:
        name = self.name
        printer.add(f"{name}x = tl.where(inside, {row}, {LOWEST})")
        if printer.resident:
            # NaN is never the largest, but must not be lost.
            printer.add(f"{name}h = tl.where({name}x == {name}x, {name}x, {LOWEST})", f"{name}p += cols")
            printer.add(f"{name}r = tl.where({name}x == {name}x, 0.0, {name}x)")
            return
        printer.add(f"{name}u = {name}x > {name}h")
        if self.kind == "peak":
            printer.add(
                f"{name}e = tl.where({name}x == {LOWEST}, 0.0, exp(-tl.abs({name}x - {name}h)))",
                f"{name}r = tl.where({name}u, ({name}r + 1.0) * {name}e, {name}r + {name}e)",
            )
        printer.add(
            f"{name}p = tl.where({name}u, cols, {name}p)",
            f"{name}h = tl.where({name}u, {name}x, {name}h)",
        )

    def end(self, printer: Writes) -> None:
        """Print what stands after the walk, and remember the names of what was found."""
        name = self.name
        if self.kind in ("take", "total"):
            printer.add(f"{name} = tl.sum({name}, 1, keep_dims=True)")
            printer.keep(identity_of(self.node), name)
            return
        printer.add(
            f"{name}_height = tl.max({name}h, 1, keep_dims=True)",
            f"{name}_place = tl.min(tl.where({name}h == {name}_height, {name}p, 2147483647), 1, keep_dims=True)",
        )
        if self.kind == "peak":
            self._end_peak(printer)
        for part in ("height", "place", "rest"):
            printer.keep((f"{self.kind}_{part}", *self.node.arguments), f"{name}_{part}")

    def _end_peak(self, printer: Writes) -> None:
        """Add up what blocks found; a row of nothing but -inf has height 0 and no mass, one with an infinity is no number."""
        name = self.name
        printer.add(
            f"{name}e = tl.where({name}h == {LOWEST}, 0.0, exp({name}h - {name}_height))",
            f"{name}u = ({name}h == {name}_height) & ({name}p == {name}_place)",
            f"{name}_rest = tl.sum(tl.where({name}u, {name}r, (1.0 + {name}r) * {name}e), 1, keep_dims=True)",
            f'{name}_rest = tl.where({name}_height == float("inf"), float("nan"), {name}_rest)',
            f"{name}_rest = tl.where(({name}_height == {LOWEST}) & ({name}_rest == {name}_rest), -1.0, {name}_rest)",
            f"{name}_height = tl.where({name}_height == {LOWEST}, 0.0, {name}_height)",
        )


def newton(printer: Writes, node: Operation) -> None:
    """Print Newton's method for the largest of the tempered probabilities, see :mod:`lossmith.numerics.normalizer`."""
    gap, start, t = node.arguments
    name, temperature = printer.new_name(), printer.text(t)
    printer.add(f"{name} = {printer.text(start)}")
    if printer.resident:
        printer.text(gap)
    printer.repeat(STEPS[printer.work])
    printer.add(
        f"{name}c = ({temperature} - 1.0) * exp(({temperature} - 1.0) * {name})",
        f"{name}s = tl.zeros([M, BLOCK], WORK)",
        f"{name}d = tl.zeros([M, BLOCK], WORK)",
    )
    printer.begin_walk()
    printer.add(
        f"{name}x = {printer.text(gap)} * {name}c",
        f"{name}e = exp(log1p({name}x) / (1.0 - {temperature}))",
        f"{name}s += tl.where(inside, {name}e, 0.0)",
        f"{name}d += tl.where(inside, {name}e / (1.0 + {name}x), 0.0)",
    )
    printer.end_walk()
    printer.add(
        f"{name}t = tl.sum({name}s, 1, keep_dims=True)",
        f"{name}l = ({temperature} - 1.0) * (tl.log({name}t) + {name})",
        f"{name}l = expm1(tl.where({name}l > 60.0, 60.0, {name}l)) * {name}t / tl.sum({name}d, 1, keep_dims=True)",
        f"{name}l = {name} - log1p({name}l) / ({temperature} - 1.0)",
        f"{name} = tl.where({name}l > 0.0, 0.0, {name}l)",
    )
    printer.end_repeat()
    printer.keep(identity_of(node), name)
