"""The numbers of a recorded formula, computed before a kernel starts: parameters, and what is made of them alone."""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from lossmith.kernels.row_operations import call_of, seen_through
from lossmith.kernels.symbols import Input, Operation, UntraceableError

__all__ = ["Decisions", "Numbers"]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "neg", "pow", "eq", "ne", "lt", "le", "gt", "ge")},
    **{
        name: getattr(np, name)
        for name in ("abs", "exp", "expm1", "log", "log1p", "maximum", "minimum", "sqrt", "square", "where")
    },
    "clamp_max": np.minimum,
    "clamp_min": np.maximum,
    "detach": lambda x: x,
    "div": operator.truediv,
    "logical_and": np.logical_and,
    "logical_not": np.logical_not,
    "logical_or": np.logical_or,
}


class Numbers:
    """What the inputs of a recording are in one call, and what follows from them.

    Args:
        inputs: The values of the inputs by name.
        num_classes: How many classes there are.
    """

    def __init__(self, inputs: Mapping[str, float], num_classes: int) -> None:
        self._known: dict[Any, Any] = {}
        self._inputs = inputs
        self._classes = np.float64(num_classes)

    def __call__(self, value: Any) -> Any:
        """Return the value of a node, or the constant itself; what has no value is no number, or infinite.

        Args:
            value: A node that is a number, or a constant.

        Returns:
            Its value.

        Raises:
            UntraceableError: If it is made by an operation that is not known for numbers.
        """
        value = seen_through(value)
        if isinstance(value, Input):
            return np.float64(self._inputs[value.name])
        if not isinstance(value, Operation):
            return np.float64(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        if value not in self._known:
            with np.errstate(all="ignore"):
                self._known[value] = self._computed(value)
        return self._known[value]

    def _computed(self, operation: Operation) -> Any:
        if operation.name == "classes":
            return self._classes
        name, arguments = call_of(operation)
        if name not in FUNCTIONS:
            raise UntraceableError(f"uses {name}, which is not known for numbers")
        return FUNCTIONS[name](*map(self, arguments))


class Decisions(Mapping[Any, bool]):
    """Decides about conditions by the numbers of one call, and remembers what was asked.

    Args:
        numbers: The numbers.
    """

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self.made: dict[Any, bool] = {}

    def __getitem__(self, condition: Any) -> bool:
        self.made[condition] = bool(self._numbers(condition))
        return self.made[condition]

    def __contains__(self, condition: object) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)
