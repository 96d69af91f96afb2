"""Prints the formulas of losses in JavaScript: numbers as expressions, rows of numbers as calls of what ``rows.js`` has.

Derivatives are not printed. A curve brings its pull, and operations on rows are differentiated where they run.
"""

import json
import math
import re
from collections import Counter
from textwrap import indent
from typing import Any, NamedTuple

from lossmith.kernels.row_operations import call_of, seen_through
from lossmith.kernels.symbols import Input, Operation, inputs_of
from lossmith.kernels.traced import (
    CHOOSE,
    CLASSES,
    Traced,
    TracedBias,
    TracedRows,
    TracedSum,
    TracedTerm,
    TracedTerms,
    UntraceableError,
    Value,
)
from lossmith.report.explore.operations import FUNCTIONS, OF_ROWS

__all__ = ["ROW_OPERATIONS", "printed"]


class Text(NamedTuple):
    """An expression and how tightly it holds together, by JavaScript's own order of operators."""

    written: str
    tightness: int

    def within(self, tightness: int) -> str:
        """Return it as a part of an expression that holds together so tightly."""
        return self.written if self.tightness >= tightness else f"({self.written})"


CHOICE, OR, AND, EQUAL, ORDER, SUM, PRODUCT, SIGN, POWER, WHOLE = range(10)

OPERATORS = {
    "add": ("+", SUM),
    "sub": ("-", SUM),
    "mul": ("*", PRODUCT),
    "div": ("/", PRODUCT),
    "eq": ("===", EQUAL),
    "ne": ("!==", EQUAL),
    "lt": ("<", ORDER),
    "le": ("<=", ORDER),
    "gt": (">", ORDER),
    "ge": (">=", ORDER),
    "logical_and": ("&&", AND),
    "logical_or": ("||", OR),
}
PREFIXES = {"neg": "-", "logical_not": "!"}
ROW_OPERATIONS = OF_ROWS.union(OPERATORS, PREFIXES)
"""The operations on rows that the page knows."""


def printed(loss: Traced) -> str:
    """Return a formula as a function ``(z, y, given) => evaluation`` of logits, target and parameters.

    Args:
        loss: The formula.

    Returns:
        An arrow function; ``given`` holds the parameters by name.

    Raises:
        UntraceableError: If the formula uses an operation that the page does not know.

    >>> from lossmith import MAELoss
    >>> from lossmith.kernels.traced import trace
    >>> print(printed(trace(MAELoss(), [])))
    (z, y, given) => sumOfTerms(z, y, [{ factor: 2, curve: ({ p, rest }) => [rest, p] }])
    """
    outer = _Scope(_uses(loss))
    return f"(z, y, given) => {outer.closed(_formula(loss, outer))}"


def _formula(formula: Traced, scope: "_Scope") -> str:
    if isinstance(formula, TracedTerms):
        return f"sumOfTerms(z, y, [{', '.join(_term(term, scope) for term in formula.terms)}])"
    if isinstance(formula, TracedRows):
        inner = _Scope(scope.uses, scope)
        body = inner.closed(inner.text(formula.losses).written)
        return f"ofRow(z, y, (logits, target) => {body})"
    if isinstance(formula, TracedSum):
        parts = [f"[{scope.text(factor).written}, {_formula(part, scope)}]" for factor, part in formula.parts]
        return f"weightedSum([{', '.join(parts)}])"
    if isinstance(formula, TracedBias):
        return f"biased(z, y, {scope.text(formula.epsilon).written}, (z) => {_formula(formula.formula, scope)})"
    ways = (_formula(way, scope) for way in (formula.if_true, formula.if_false))
    return f"({scope.text(formula.condition).within(OR)} ? {' : '.join(ways)})"


def _term(term: TracedTerm, scope: "_Scope") -> str:
    inner = _Scope(scope.uses, scope, is_scalar=True)
    value, pull = (inner.text(part).written for part in (term.value, term.pull))
    body = inner.closed(f"[{value}, {pull}]")
    used = [name for name in ("p", "rest", "surprise") if re.search(rf"(?<![\w.]){name}\b", body)]
    curve = f"({{ {', '.join(used)} }}) => {body}"
    return f"{{ factor: {scope.text(term.factor).written}, curve: {curve}{', normalized: true' if term.normalized else ''} }}"


def _uses(formula: Traced) -> Counter[Input | Operation]:
    """Count how often each node is used."""
    counts: Counter[Input | Operation] = Counter()
    waiting = [*_nodes(formula)]
    while waiting:
        node = seen_through(waiting.pop())
        if isinstance(node, Input | Operation):
            counts[node] += 1
            waiting += inputs_of(node) if counts[node] == 1 else []
    return counts


def _nodes(part: Any) -> list[Input | Operation]:
    if isinstance(part, Input | Operation):
        return [part]
    return [node for each in part for node in _nodes(each)] if isinstance(part, tuple) else []


class _Scope:
    """A function's body: values that are used more than once get a name in it."""

    def __init__(self, uses: Counter[Input | Operation], outer: "_Scope | None" = None, *, is_scalar: bool = False) -> None:
        self.uses = uses
        self._outer = outer
        self._is_scalar = is_scalar or outer is None
        self._lines: list[str] = []
        self._names: dict[Operation, str] = {}

    def closed(self, result: str) -> str:
        """Return the body of an arrow function."""
        if not self._lines:
            return f"({result})" if result.startswith("{") else result
        lines = "".join(f"{line};\n" for line in (*self._lines, f"return {result}"))
        return f"{{\n{indent(lines, '  ')}}}"

    def text(self, value: Value) -> Text:
        """Return a value as an expression, after what it needs has got its names."""
        value = seen_through(value)
        if isinstance(value, Input):
            return Text(_input(value), WHOLE)
        if not isinstance(value, Operation):
            return _constant(value)
        if value.is_number and self._outer is not None:
            return self._outer.text(value)
        if value not in self._names:
            text = self._number(value) if self._is_scalar else self._row(value)
            if self.uses[value] < 2 or re.fullmatch(r"[\w.]+", text.written):
                return text
            self._names[value] = f"{'n' if self._outer is None else 'v'}{len(self._names) + 1}"
            self._lines.append(f"const {self._names[value]} = {text.written}")
        return Text(self._names[value], WHOLE)

    def _number(self, operation: Operation) -> Text:
        """Return what is one number as an expression of operators and functions."""
        name, arguments = call_of(operation)
        parts = [self.text(argument) for argument in arguments]
        if name in OPERATORS:
            return _infix(name, *parts)
        if name in FUNCTIONS:
            return Text(f"{FUNCTIONS[name]}({', '.join(part.written for part in parts)})", WHOLE)
        if name in ("where", CHOOSE):
            return Text(" ".join((parts[0].within(OR), "?", parts[1].within(OR), ":", parts[2].within(CHOICE))), CHOICE)
        if name in PREFIXES:
            return Text(f"{PREFIXES[name]}{parts[0].within(WHOLE)}", SIGN)
        if name == "pow":
            return Text(f"{parts[0].within(WHOLE)} ** {parts[1].within(WHOLE)}", POWER)
        if name in ("detach", "ones_like", "zeros_like"):
            return {"ones_like": Text("1", WHOLE), "zeros_like": Text("0", WHOLE)}.get(name, parts[0])
        raise UntraceableError(f"uses {name}, which the page does not know for numbers")

    def _row(self, operation: Operation) -> Text:
        """Return what may be a row as a call."""
        if operation.name == CHOOSE:
            return self._number(operation)
        name, arguments = call_of(operation)
        if name not in ROW_OPERATIONS:
            raise UntraceableError(f"uses {name}, which the page does not know for rows")
        written = ", ".join(self.text(argument).written for argument in arguments)
        return Text(f"rows.{_camel_case(name)}({written})", WHOLE)


def _infix(name: str, first: Text, second: Text) -> Text:
    if name == "add" and first.written == "0":
        return second
    sign, tightness = OPERATORS[name]
    # What stands on the right of a minus or a fraction keeps its brackets.
    return Text(f"{first.within(tightness)} {sign} {second.within(tightness + 1)}", tightness)


def _input(node: Input) -> str:
    if not node.is_number:
        return node.name
    return "z.length" if node.name == CLASSES else f"given.{node.name}"


def _constant(value: Any) -> Text:
    if isinstance(value, bool):
        return Text(json.dumps(value), WHOLE)
    if not isinstance(value, int | float):
        raise UntraceableError(f"has {value!r} in it, which is no number")
    sign = "-" if value < 0 else ""
    digits = "NaN" if math.isnan(value) else "Infinity" if math.isinf(value) else repr(abs(value)).removesuffix(".0")
    return Text(sign + digits, SIGN if sign else WHOLE)


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
