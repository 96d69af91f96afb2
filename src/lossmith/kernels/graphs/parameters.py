"""What of a formula is its structure, for which a kernel is made, and what is a number, which a kernel takes as an argument."""

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any

from lossmith.kernels.formula import Biased, Formula, Rows, Shifted, Sum, Terms
from lossmith.kernels.reference import Term

__all__ = ["numbers_of", "structure_of", "with_numbers"]

Replace = Callable[[float], Any]


def with_numbers(formula: Formula, replace: Replace) -> Formula:
    """Return a formula with something else in the place of each of its numbers, in a fixed order.

    Args:
        formula: The formula.
        replace: From a number to what takes its place.

    Returns:
        The new formula.
    """
    if isinstance(formula, Terms):
        return Terms(tuple(_term(term, replace) for term in formula.terms))
    if isinstance(formula, Rows):
        return Rows(formula.function, {name: _parameter(value, replace) for name, value in formula.parameters.items()})
    if isinstance(formula, Sum):
        return Sum([(_number(factor, replace), with_numbers(part, replace)) for factor, part in formula.parts])
    if isinstance(formula, Biased):
        return Biased(with_numbers(formula.formula, replace), _number(formula.epsilon, replace))
    if isinstance(formula, Shifted):
        numbers = (_number(formula.tau, replace), formula.counts, _number(formula.imbalance, replace))
        return Shifted(with_numbers(formula.formula, replace), *numbers)
    return formula


def _term(term: Term, replace: Replace) -> Term:
    factor, curve, normalized = term
    if isinstance(curve, partial):
        keywords = {name: _number(value, replace) for name, value in curve.keywords.items()}
        curve = partial(curve.func, *curve.args, **keywords)
    return Term(_number(factor, replace), curve, normalized)


def _parameter(value: Any, replace: Replace) -> Any:
    """Return a parameter of a function of rows: a number, or terms with numbers of their own."""
    is_terms = isinstance(value, tuple) and all(isinstance(each, Term) for each in value)
    return tuple(_term(term, replace) for term in value) if is_terms else _number(value, replace)


def _number(value: Any, replace: Replace) -> Any:
    return replace(value) if isinstance(value, float) else value


def numbers_of(formula: Formula) -> tuple[float, ...]:
    """Return the numbers of a formula, in the order in which they are replaced."""
    found: list[float] = []
    with_numbers(formula, found.append)
    return tuple(found)


def structure_of(formula: Formula) -> Hashable:
    """Return what two formulas have in common that differ in numbers alone.

    Args:
        formula: The formula.

    Returns:
        A key, the same for the same structure.
    """
    return tuple(_structure(formula))


def _structure(part: Any) -> Iterator[Hashable]:
    if isinstance(part, float):
        yield float
    elif isinstance(part, partial):
        yield from (part.func, part.args, *_structure(part.keywords))
    elif isinstance(part, tuple | list):
        yield from (type(part), len(part), *(each for item in part for each in _structure(item)))
    elif isinstance(part, dict):
        yield from (item for name, value in part.items() for item in (name, *_structure(value)))
    else:
        yield part
