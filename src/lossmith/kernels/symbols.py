"""Recording a formula: symbols take the place of tensors and of parameters, and every operation on them is written down.

What is written down is a graph without order and without side effects. Equal operations are one object, so that a formula that is
run twice gives the same graph twice.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

__all__ = ["Input", "Operation", "Recording", "Symbol", "UndecidedError", "UntraceableError", "inputs_of"]


class UntraceableError(ValueError):
    """A formula cannot be written down; the message goes on after "The formula"."""


class UndecidedError(Exception):
    """Python asks whether a condition holds that has not been decided."""

    def __init__(self, condition: "Operation | Input") -> None:
        self.condition = condition


@dataclass(frozen=True, eq=False)
class Input:
    """What a formula is given: a parameter, the number of classes, a tensor."""

    name: str
    is_number: bool
    """Whether it is known without looking at a tensor's values."""


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation by torch's name for it, on inputs, operations and constants, which may be nested in tuples and slices."""

    name: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    is_number: bool
    """Whether it is known without looking at a tensor's values."""


def inputs_of(node: Input | Operation) -> list[Input | Operation]:
    """Return what an operation is computed from, each as often as it is used."""
    return [] if isinstance(node, Input) else [*_nodes_in((*node.arguments, *node.options.values()))]


def _nodes_in(argument: Any) -> Iterator[Input | Operation]:
    if isinstance(argument, Input | Operation):
        yield argument
    for part in _parts(argument):
        yield from _nodes_in(part)


def _parts(argument: Any) -> tuple[Any, ...]:
    if isinstance(argument, slice):
        return argument.start, argument.stop, argument.step
    return tuple(argument) if isinstance(argument, tuple | list) else ()


# What torch and Python call the same operation.
SYNONYMS = {
    "truediv": "div",
    "true_divide": "div",
    "divide": "div",
    "multiply": "mul",
    "subtract": "sub",
    "negative": "neg",
    "absolute": "abs",
    "and_": "logical_and",
    "or_": "logical_or",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "invert": "logical_not",
    "bitwise_not": "logical_not",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "not_equal": "ne",
}
# Results that are tuples, with the places of what is in them.
FIELDS = {"values": 0, "indices": 1, "probs": 0, "log_probs": 1}
PAIRS = ("topk", "sort", "max", "min", "tempered_probs")


class Recording:
    """All operations that have been written down, and what has been decided about conditions in the present run."""

    def __init__(self, dtype: torch.dtype = torch.float64, *, sees_all_absences: bool = False) -> None:
        self.dtype = dtype
        """The precision that formulas are told."""
        self.sees_all_absences = sees_all_absences
        """Whether random subsets are known as seen from all classes at once, or from one alone, which takes far less."""
        self._known: dict[str, Operation] = {}
        self._names: dict[Input | Operation, str] = {}
        self.decided: Mapping[Input | Operation, bool] = {}

    def number(self, name: str) -> "Symbol":
        """Return the symbol of a new input that is one number for all rows."""
        return self._named(Input(name, is_number=True), None)

    def tensor(self, name: str, shape: tuple[Any, ...] | None = None) -> "Symbol":
        """Return the symbol of a new input that is a tensor, with its shape where formulas may ask for that."""
        return self._named(Input(name, is_number=False), shape)

    def _named(self, node: Input, shape: tuple[Any, ...] | None) -> "Symbol":
        self._names[node] = f"input {len(self._names)}"
        return Symbol(self, node, shape)

    def symbol_of(self, name: str, *arguments: Any, **options: Any) -> "Symbol":
        """Write down an operation on symbols."""
        plain = {key: _unwrapped(value) for key, value in options.items()}
        keeps_shape = name in ("scatter", "scatter_add") and isinstance(arguments[0], Symbol)
        shape = arguments[0]._shape if keeps_shape else None
        return Symbol(self, self.operation(name, _unwrapped(arguments), plain), shape)

    def operation(self, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Operation:
        """Return the operation, the same object for the same operation."""
        name = SYNONYMS.get(name, name)
        key = f"{name}{self._key(arguments)}{[(option, self._key(value)) for option, value in sorted(options.items())]}"
        if key not in self._known:
            is_number = all(node.is_number for node in _nodes_in((*arguments, *options.values())))
            self._known[key] = Operation(name, arguments, options, is_number)
            self._names[self._known[key]] = f"operation {len(self._names)}"
        return self._known[key]

    def decide(self, condition: Input | Operation) -> bool:
        """Return what has been decided about a condition, which must not look at the values of tensors.

        Args:
            condition: The condition that Python asks about.

        Returns:
            Whether it holds in the present run.

        Raises:
            UntraceableError: If it depends on the values of tensors.
            UndecidedError: If nothing has been decided about it.
        """
        if not condition.is_number:
            raise UntraceableError("takes another way depending on values of the logits; torch.where would choose between two")
        if condition not in self.decided:
            raise UndecidedError(condition)
        return self.decided[condition]

    def _key(self, argument: Any) -> str:
        if isinstance(argument, Input | Operation):
            return f"<{self._names[argument]}>"
        parts = _parts(argument)
        return f"{type(argument).__name__}({','.join(map(self._key, parts))})" if parts else repr(argument)


def _unwrapped(argument: Any) -> Any:
    """Return an argument with the nodes that symbols stand for."""
    if isinstance(argument, Symbol):
        return argument.node
    if isinstance(argument, slice):
        return slice(*map(_unwrapped, _parts(argument)))
    if isinstance(argument, tuple | list):
        return tuple(map(_unwrapped, argument))
    if isinstance(argument, torch.Tensor):
        if argument.numel() != 1:
            raise UntraceableError(f"has a constant tensor of shape {tuple(argument.shape)} in it")
        return argument.item()
    return argument


class Symbol:
    """Stands for a tensor, or for a number. Operators are added below the class."""

    device: ClassVar[torch.device] = torch.device("cpu")
    __hash__ = object.__hash__

    def __init__(self, recording: Recording, node: Input | Operation, shape: tuple[Any, ...] | None = None) -> None:
        self._recording = recording
        self._shape = shape
        self.node = node

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the recording, but whole numbers for class indices."""
        return torch.int64 if _is_index(self.node) else self._recording.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of a tensor that has been given one."""
        if self._shape is None:
            raise UntraceableError(f"asks for the shape of {self.node.name}; that of the logits is known")
        return self._shape

    @classmethod
    def __torch_function__(cls, function: Callable[..., Any], _: object, arguments: Any = (), options: Any = None) -> "Symbol":
        """Write down a call of one of torch's functions."""
        named: Mapping[str, Any] = options or {}
        symbol = next(each for each in _flat((*arguments, *named.values())) if isinstance(each, Symbol))
        return symbol._recording.symbol_of(function.__name__, *arguments, **named)

    def __getattr__(self, name: str) -> Any:
        """Return a method of a tensor, or a part of a result that has several."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name in FIELDS:
            return self._part(FIELDS[name])
        if not callable(getattr(torch.Tensor, name, None)):
            raise UntraceableError(f"asks for {name} of {self.node.name}")
        return lambda *arguments, **options: self._recording.symbol_of(name, self, *arguments, **options)

    def is_floating_point(self) -> bool:
        """Return whether these are not class indices, which targets are here."""
        return self.dtype.is_floating_point

    def dim(self) -> int:
        """Return the number of dimensions of a tensor whose shape is known."""
        return len(self.shape)

    def size(self, dim: int) -> Any:
        """Return one dimension of a tensor whose shape is known."""
        return self.shape[dim]

    def new_zeros(self, shape: tuple[int, ...]) -> "Symbol":
        """Return a zero; without dimensions it is a number, whatever tensor it was made like."""
        return self._recording.symbol_of("constant", 0.0) if shape == () else self._recording.symbol_of("new_zeros", self, shape)

    def __iter__(self) -> Iterator["Symbol"]:
        """Return both parts of a result that has two."""
        if not (isinstance(self.node, Operation) and self.node.name in PAIRS):
            raise UntraceableError(f"walks over the values of {self.node.name} in Python")
        return iter((self._part(0), self._part(1)))

    def _part(self, place: int) -> "Symbol":
        return self._recording.symbol_of("getitem", self, place)

    def __bool__(self) -> bool:
        """Return what has been decided."""
        return self._recording.decide(self.node)

    def __float__(self) -> float:
        """Refuse, because a symbol has no value."""
        raise UntraceableError(
            f"needs the value of {self.node.name} as a number of Python, as range and the functions of math do"
        )

    __int__ = __index__ = __len__ = __float__


def _is_index(node: Any) -> bool:
    if isinstance(node, Operation):
        return node.name in ("argmax", "argmin") or (node.name in ("squeeze", "unsqueeze") and _is_index(node.arguments[0]))
    return isinstance(node, Input) and node.name == "target" and not node.is_number


def _flat(argument: Any) -> Iterator[Any]:
    yield argument
    for part in _parts(argument):
        yield from _flat(part)


def _operator(name: str) -> Callable[..., Symbol]:
    return lambda self, *others: self._recording.symbol_of(name, self, *others)


def _reflected(name: str) -> Callable[..., Symbol]:
    return lambda self, other: self._recording.symbol_of(name, other, self)


for _name in ("add", "sub", "mul", "truediv", "pow", "and", "or"):
    _written = _name + "_" if _name in ("and", "or") else _name
    assert hasattr(operator, _written)
    setattr(Symbol, f"__{_name}__", _operator(_written))
    setattr(Symbol, f"__r{_name}__", _reflected(_written))
for _name in ("neg", "abs", "invert", "getitem", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Symbol, f"__{_name}__", _operator(_name))
