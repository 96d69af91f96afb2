"""A formula with symbols for its parameters, as graphs of operations that other languages can be printed from.

Python's own ``if`` about a parameter or about the number of classes is taken both ways, and what the two ways have in common is
put together again: ``box_cox(x, q)`` becomes ``choose(q == 0, x, expm1(q * x) / q)``.
"""

import copy
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from lossmith.kernels.formula import Biased, Formula, Rows, Shifted, Sum, Terms
from lossmith.kernels.reference import Curve, Term
from lossmith.kernels.symbols import Input, Operation, Recording, Symbol, UndecidedError, UntraceableError
from lossmith.numerics.probability import Probability

__all__ = [
    "CHOOSE",
    "CLASSES",
    "FACTORS",
    "LOGITS",
    "PROBABILITY",
    "TARGET",
    "Either",
    "Traced",
    "TracedBias",
    "TracedRows",
    "TracedSum",
    "TracedTerm",
    "TracedTerms",
    "UntraceableError",
    "Value",
    "trace",
]

Value = Input | Operation | float
"""A node of a graph, or a constant."""

CHOOSE = "choose"
"""The operation ``choose(condition, first, second)``, the condition being known before any logit."""
CLASSES, FACTORS, LOGITS, TARGET = "classes", "factors", "logits", "target"
PROBABILITY = ("p", "rest", "surprise")
"""What a curve is a function of: attributes of a :class:`~lossmith.numerics.probability.Probability`."""
MOST_DECISIONS = 12


class HasFormula(Protocol):
    """A loss."""

    def formula(self) -> Formula:
        """Return its formula with the parameters that it has now."""
        ...


class TracedTerm(NamedTuple):
    """A term: factor and whether it is normalised, value and pull of its curve in terms of ``PROBABILITY``."""

    factor: Value
    value: Value
    pull: Value
    normalized: bool


class TracedTerms(NamedTuple):
    """A sum of terms."""

    terms: tuple[TracedTerm, ...]


class TracedRows(NamedTuple):
    """The loss of a row in terms of ``LOGITS`` and ``TARGET``, a class index."""

    losses: Value


class TracedSum(NamedTuple):
    """A weighted sum."""

    parts: tuple[tuple[Value, "Traced"], ...]


class TracedBias(NamedTuple):
    """A formula of logits to which epsilon is added at the target."""

    formula: "Traced"
    epsilon: Value


class Either(NamedTuple):
    """One of two formulas, by a condition on the parameters or on the number of classes."""

    condition: Input | Operation
    if_true: "Traced"
    if_false: "Traced"


Traced = TracedTerms | TracedRows | TracedSum | TracedBias | Either


def trace(loss: HasFormula, parameters: Iterable[str]) -> Traced:
    """Write down the formula of a loss for any values of some of its parameters.

    Args:
        loss: The loss. It is not changed.
        parameters: Names of the attributes that become inputs of the same names; all others stay as they are.

    Returns:
        The formula for class indices in double precision.

    Raises:
        UntraceableError: If the formula needs more than operations on tensors and numbers; the message says what.

    >>> from lossmith import GeneralizedCrossEntropyLoss
    >>> traced = trace(GeneralizedCrossEntropyLoss(), ["q"])
    >>> traced.terms[0].pull.name
    'exp'
    """
    recording = Recording()
    stand_in = copy.copy(loss)
    for name in parameters:
        if name not in vars(loss):
            raise UntraceableError(f"has a parameter {name} that is no attribute of the loss")
        vars(stand_in)[name] = recording.number(name)
    inputs = _Inputs.of(recording)
    return _explored(recording, lambda: _traced(stand_in.formula(), inputs), ())


class _Inputs(NamedTuple):
    logits: Any
    target: Any
    probability: Probability

    @classmethod
    def of(cls, recording: Recording) -> "_Inputs":
        logits = recording.tensor(LOGITS, shape=(recording.tensor("rows"), recording.number(CLASSES)))
        known: list[Any] = [recording.tensor(name) for name in PROBABILITY]
        return cls(logits, recording.tensor(TARGET), Probability(*known))


def _traced(formula: Formula, inputs: _Inputs) -> Traced:
    """Run a formula on symbols."""
    if isinstance(formula, Terms):
        return TracedTerms(tuple(_traced_term(term, inputs) for term in formula.terms))
    if isinstance(formula, Rows | Shifted):
        return TracedRows(_node(formula.losses(inputs.logits, inputs.target)))
    if isinstance(formula, Sum):
        return TracedSum(tuple((_node(factor), _traced(part, inputs)) for factor, part in formula.parts))
    if isinstance(formula, Biased):
        return TracedBias(_traced(formula.formula, inputs), _node(formula.epsilon))
    raise UntraceableError(f"is of a kind of its own, {type(formula).__name__}")


def _traced_term(term: Term, inputs: _Inputs) -> TracedTerm:
    value, pull = _run(term.curve, inputs.probability)
    return TracedTerm(_node(term.factor), _node(value), _node(pull), term.normalized)


def _run(curve: Curve, probability: Probability) -> tuple[Tensor, Tensor | float]:
    return curve(Probability(probability.p, probability.rest, probability.surprise))


def _node(value: Any) -> Value:
    if isinstance(value, Symbol):
        return value.node
    return float(value)


Decision = tuple[Input | Operation, bool]


def _explored(recording: Recording, run: Callable[[], Traced], decisions: tuple[Decision, ...]) -> Traced:
    """Run a formula with these decisions, and both ways at the next one."""
    recording.decided = dict(decisions)
    try:
        return run()
    except UndecidedError as question:
        condition = question.condition
    except UntraceableError:
        raise
    except (TypeError, AttributeError, RuntimeError, NotImplementedError) as error:  # what torch and Python say to a symbol
        raise UntraceableError(f"does what cannot be written down: {str(error).splitlines()[0]}") from error
    if len(decisions) == MOST_DECISIONS:
        raise UntraceableError(f"takes more than {MOST_DECISIONS} decisions")
    ways = [_explored(recording, run, (*decisions, (condition, answer))) for answer in (True, False)]
    return _Join(recording, condition).formulas(*ways)


class _Join:
    """Puts together what a formula is where a condition holds and where it does not."""

    def __init__(self, recording: Recording, condition: Input | Operation) -> None:
        self._recording = recording
        self._condition = condition
        self._joined: dict[tuple[Operation, Operation], Operation] = {}

    def formulas(self, first: Traced, second: Traced) -> Traced:
        """Return one formula, which is either of them as a whole where they have too little in common."""
        if isinstance(first, TracedRows) and isinstance(second, TracedRows):
            return TracedRows(self.values(first.losses, second.losses))
        if isinstance(first, TracedTerms) and isinstance(second, TracedTerms) and _are_alike(first, second):
            return TracedTerms(tuple(map(self._terms, first.terms, second.terms)))
        return first if first == second else Either(self._condition, first, second)

    def _terms(self, first: TracedTerm, second: TracedTerm) -> TracedTerm:
        factor, value, pull = (self.values(one, other) for one, other in zip(first[:3], second[:3], strict=True))
        return TracedTerm(factor, value, pull, first.normalized)

    def values(self, first: Any, second: Any) -> Any:
        """Return a value that is the first where the condition holds and the second elsewhere."""
        if first is second or (type(first) is type(second) is not Operation and first == second):
            return first
        if isinstance(first, Operation) and isinstance(second, Operation) and _have_same_shape(first, second):
            return self._operations(first, second)
        return self._recording.operation(CHOOSE, (self._condition, first, second), {})

    def _operations(self, first: Operation, second: Operation) -> Operation:
        """Join the arguments of the same operation; a graph has few nodes but many paths, so each pair is joined once."""
        if (first, second) not in self._joined:
            arguments = tuple(map(self.values, first.arguments, second.arguments))
            options = {name: self.values(first.options[name], second.options[name]) for name in first.options}
            self._joined[first, second] = self._recording.operation(first.name, arguments, options)
        return self._joined[first, second]


def _are_alike(first: TracedTerms, second: TracedTerms) -> bool:
    return [term.normalized for term in first.terms] == [term.normalized for term in second.terms]


def _have_same_shape(first: Operation, second: Operation) -> bool:
    """Return whether two operations differ at most in nodes and numbers that they are applied to."""
    if (first.name, len(first.arguments), first.options.keys()) != (second.name, len(second.arguments), second.options.keys()):
        return False
    pairs = zip((*first.arguments, *first.options.values()), (*second.arguments, *second.options.values()), strict=True)
    return all(one is other or one == other or (_is_value(one) and _is_value(other)) for one, other in pairs)


def _is_value(argument: Any) -> bool:
    return isinstance(argument, Input | Operation | float)
