"""A formula as graphs of what kernels have: the loss of a row, and its gradient, for some decisions about the parameters."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from lossmith.kernels.formula import Formula
from lossmith.kernels.graphs.derivatives import gradient_of
from lossmith.kernels.graphs.lowering import lowered
from lossmith.kernels.graphs.numbers import Decisions, Numbers
from lossmith.kernels.graphs.parameters import numbers_of, structure_of, with_numbers
from lossmith.kernels.row_operations import seen_through
from lossmith.kernels.symbols import Input, Operation, Recording, Symbol, UntraceableError, inputs_of
from lossmith.kernels.traced import CLASSES, FACTORS, LOGITS, TARGET

__all__ = ["Graphs", "graphs_of"]


class Graphs(NamedTuple):
    """Loss and gradient of a row."""

    loss: Any
    """None if kernels do not have what the formula needs."""
    gradient: Any
    numbers: tuple[Operation | Input, ...]
    """The numbers that they use, which a kernel takes as arguments."""
    conditions: tuple[tuple[Any, bool], ...]
    """What must hold for the parameters."""
    has_factors: bool
    """Whether the target is a factor for every class."""
    dtype: torch.dtype

    def is_for(self, numbers: Numbers) -> bool:
        """Return whether the parameters decide as they did when this was recorded."""
        return all(bool(numbers(condition)) == holds for condition, holds in self.conditions)


def graphs_of(
    formula: Formula, num_classes: int, *, has_factors: bool, dtype: torch.dtype, sees_all_absences: bool = False
) -> tuple[Graphs, tuple[float, ...]] | None:
    """Return the graphs for a formula, which are made once for all values of its numbers that decide alike.

    Args:
        formula: The loss.
        num_classes: How many classes there are.
        has_factors: Whether the target is a factor for every class, and not class indices.
        dtype: The precision in which kernels compute.
        sees_all_absences: Whether kernels may look at random subsets from all classes at once.

    Returns:
        The graphs and the values of their numbers in this call, or None where kernels do not have what the formula needs.
    """
    given = numbers_of(formula)
    inputs = {f"x{place}": number for place, number in enumerate(given)} | {CLASSES: num_classes}
    variants = _variants(structure_of(formula), has_factors, dtype, sees_all_absences)
    numbers = Numbers(inputs, num_classes)
    graphs = next((known for known in variants if known.is_for(numbers)), None)
    if graphs is None:
        graphs = _recorded(formula, numbers, has_factors, Recording(dtype, sees_all_absences=sees_all_absences))
        variants.append(graphs)
    return None if graphs.loss is None else (graphs, tuple(float(numbers(each)) for each in graphs.numbers))


@lru_cache(maxsize=512)
def _variants(structure: Any, has_factors: bool, dtype: torch.dtype, sees_all_absences: bool) -> list[Graphs]:  # noqa: ARG001
    """Return the graphs known so far for a structure."""
    return []


def _recorded(formula: Formula, numbers: Numbers, has_factors: bool, recording: Recording) -> Graphs:
    recording.decided = decisions = Decisions(numbers)
    try:
        return _graphs(recording, decisions, formula, has_factors)
    except (UntraceableError, TypeError, AttributeError, RuntimeError, NotImplementedError):
        return Graphs(None, None, (), tuple(decisions.made.items()), has_factors, recording.dtype)


def _graphs(recording: Recording, decisions: Decisions, formula: Formula, has_factors: bool) -> Graphs:
    symbols = with_numbers(formula, _numbered(recording))
    shape = (recording.tensor("rows"), recording.number(CLASSES))
    logits: Any = recording.tensor(LOGITS, shape)
    target: Any = recording.tensor(FACTORS, shape) if has_factors else recording.tensor(TARGET)
    loss: Any = symbols.losses(logits, target)
    known: dict[Any, Any] = {}
    parts = [lowered(recording, part, known) for part in (loss.node, gradient_of(recording, loss.node).node)]
    return Graphs(parts[0], parts[1], _numbers_in(parts), tuple(decisions.made.items()), has_factors, recording.dtype)


def _numbered(recording: Recording) -> Callable[[float], Symbol]:
    count = iter(range(1_000_000))
    return lambda _: recording.number(f"x{next(count)}")


def _numbers_in(parts: list[Any]) -> tuple[Operation | Input, ...]:
    """Return the numbers that something else is made of."""
    found: dict[Operation | Input, None] = {}
    waiting, seen = [part for part in parts if isinstance(part, Input | Operation)], set()
    while waiting:
        node = seen_through(waiting.pop())
        if node in seen:
            continue
        seen.add(node)
        if node.is_number:
            found[node] = None
        else:
            waiting += inputs_of(node)
    return tuple(found)
