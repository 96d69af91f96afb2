"""Prints rows and numbers: lines, the names that values have in them, loops over the classes, and buffers.

A walk is a loop over the classes of a row, which is in the cache; what takes long to compute in one walk and is needed in a
later one is stored in a buffer.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lossmith.kernels.graphs.reductions import REDUCTIONS, identity_of, is_row, numbers_within
from lossmith.kernels.native.operations import LONG, constant, type_of, written
from lossmith.kernels.row_operations import seen_through
from lossmith.kernels.symbols import Input, Operation
from lossmith.kernels.traced import FACTORS, LOGITS, TARGET

__all__ = ["RowPrinter"]


class RowPrinter(ABC):
    """Prints what rows and numbers are made of; how a number is made of a row is told by who derives from it.

    Args:
        numbers: What is the same for all rows, and has a name already.
        wanted: Rows that are needed in several walks; by default all that take long are taken for such.
    """

    def __init__(self, numbers: Sequence[Hashable], wanted: set[Hashable] | None) -> None:
        self.lines: list[str] = []
        self.buffers = 0
        """How many buffers of the length of a row are needed."""
        self.used: set[Hashable] = set()
        """Rows that were read from a buffer."""
        self._wanted = wanted
        self._depth = 2
        self._count = 0
        self._names: dict[Hashable, str] = {number: f"n{i}" for i, number in enumerate(numbers)}
        self._stored: dict[Hashable, str] = {}
        self._of_walk: dict[Hashable, str] = {}
        self._filling: dict[Hashable, str] = {}
        self._is_whole = True

    @abstractmethod
    def reduce(self, value: Operation) -> None:
        """Find a number of the row, and keep its name."""

    def add(self, *lines: str) -> None:
        """Add lines at the present depth."""
        self.lines += [f"{'    ' * self._depth}{line}" for line in lines]

    def new_name(self) -> str:
        """Return a name that has not been used."""
        self._count += 1
        return f"v{self._count}"

    def new_buffer(self) -> str:
        """Return the name of a buffer that has not been used."""
        self.buffers += 1
        return f"b{self.buffers - 1}"

    def keep(self, identity: Hashable, name: str) -> None:
        """Remember what a number of the row is called."""
        self._names[identity] = name

    def is_kept(self, identity: Hashable) -> bool:
        """Return whether a number of the row has been found."""
        return identity in self._names

    def store(self, row: Hashable, buffer: str) -> None:
        """Remember which buffer a row is in."""
        self._stored[row] = buffer

    @contextmanager
    def walk(self, **reductions: Iterable[str]) -> Iterator[None]:
        """Print a loop over the classes; names are accumulated, ``add`` or ``max`` or ``min``."""
        signs = {"add": "+", "max": "max", "min": "min"}
        clauses = [f" reduction({signs[kind]}:{', '.join(names)})" for kind, names in reductions.items() if names]
        self.add(f"#pragma omp simd{''.join(clauses)}")
        filled = dict(self._stored)
        with self._of_each("for (int64_t j = 0; j < classes; j++) {", is_whole=True):
            yield
        self._stored = filled | self._filling

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Print what is computed of one class alone; since the others are left out, it fills no buffers."""
        with self._of_each("{", is_whole=False):
            self.add(f"const int64_t j = {place};")
            yield

    @contextmanager
    def _of_each(self, head: str, *, is_whole: bool) -> Iterator[None]:
        """Print what depends on j."""
        self._of_walk, self._filling, self._is_whole = {}, {}, is_whole
        with self.block(head):
            yield

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Print what stands between braces, of which the head opens one."""
        self.add(head)
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
            return constant(value)
        if value in self._names:
            return self._names[value]
        assert isinstance(value, Operation)
        if value.name in REDUCTIONS:
            if identity_of(value) not in self._names:
                self.reduce(value)
            return self._names[identity_of(value)]
        if is_row(value):
            return self.entry(_key(value), lambda: written(value, self.text), value.name)
        expression = written(value, self.text)
        self._names[value] = self.new_name()
        self.add(f"const {type_of(value.name)} {self._names[value]} = {expression};")
        return self._names[value]

    def entry(self, key: Hashable, write: Callable[[], str], operation: str) -> str:
        """Return the entry of a row at j: from its buffer, or computed.

        Args:
            key: What the row is stored under.
            write: What gives the expression for the entry.
            operation: The name of the operation that it is.

        Returns:
            What the entry is called.
        """
        if key in self._of_walk:
            return self._of_walk[key]
        if key in self._stored:
            self.used.add(key)
            return f"{self._stored[key]}[j]"
        expression = write()
        name = self._of_walk[key] = self.new_name()
        self.add(f"const {type_of(operation)} {name} = {expression};")
        if operation in LONG and self._is_whole and (self._wanted is None or key in self._wanted):
            self._filling[key] = self.new_buffer()
            self.add(f"{self._filling[key]}[j] = {name};")
        return name

    def prepare(self, values: Iterable[Any]) -> None:
        """Compute the numbers that rows are made of, since within a walk it is too late."""
        for value in values:
            for number in [value, *numbers_within(value)]:
                if not is_row(number):
                    self.text(number)


def _key(value: Operation) -> Hashable:
    """Return what a row is stored under: exponentials beside the largest number are found with their sum."""
    row = seen_through(value.arguments[0]) if value.name == "exp" else None
    if isinstance(row, Operation) and row.name == "sub":
        entry, height = map(seen_through, row.arguments)
        if isinstance(height, Operation) and height.name == "peak_height" and height.arguments[0] is entry:
            return ("weights", entry)
    return value
