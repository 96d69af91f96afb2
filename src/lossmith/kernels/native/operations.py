"""What the operations of a graph are in C, one by one. All arithmetic is in double precision."""

import math
from collections.abc import Callable
from typing import Any

from lossmith.kernels.row_operations import seen_through
from lossmith.kernels.symbols import Operation, UntraceableError

__all__ = ["LONG", "constant", "type_of", "written"]

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
    "wide": "{0}",
}
CONDITIONS = ("eq", "ne", "lt", "le", "gt", "ge", "isfinite", "isnan", "logical_and", "logical_not", "logical_or")
# Log-odds are known to twice the digits.
OF_TWO = ("sigmoid", "softplus")
LONG = (*FUNCTIONS, "div")
"""What takes longer than to read it from a buffer."""


def written(value: Operation, text: Callable[[Any], str]) -> str:
    """Return an operation as an expression.

    Args:
        value: The operation.
        text: What gives the names of its arguments, and computes them before.

    Returns:
        The expression.

    Raises:
        UntraceableError: If C has nothing like it.
    """
    arguments = [seen_through(each) for each in value.arguments]
    if value.name in OF_TWO and (two := _two(arguments[0])):
        sign, odds = two
        high, low = text(odds), ", ".join(map(text, odds.arguments))
        return f"{value.name}_of_two({sign}{high}, {sign}rounding_of({low}))"
    parts = [text(each) for each in arguments] if value.name != "own" else []
    if value.name in OPERATORS:
        return f"{parts[0]} {OPERATORS[value.name]} {parts[1]}"
    if value.name in FUNCTIONS:
        return f"{FUNCTIONS[value.name]}({', '.join(parts)})"
    if value.name in PATTERNS:
        return PATTERNS[value.name].format(*parts)
    raise UntraceableError(f"uses {value.name}, which kernels do not know")


def type_of(operation: str) -> str:
    """Return the type of what an operation gives."""
    return "int" if operation in CONDITIONS else "double"


def constant(value: Any) -> str:
    """Return a number as it is written in C."""
    number = float(value)
    if math.isnan(number):
        return "NAN"
    return repr(number) if math.isfinite(number) else f"({'-' if number < 0 else ''}INFINITY)"


def _two(value: Any) -> tuple[str, Operation] | None:
    """Return the sign and the log-odds, if it is these or their negative."""
    if isinstance(value, Operation) and value.name == "neg":
        inner = _two(seen_through(value.arguments[0]))
        return inner and ("" if inner[0] else "-", inner[1])
    return ("", value) if isinstance(value, Operation) and value.name == "two_difference" else None
