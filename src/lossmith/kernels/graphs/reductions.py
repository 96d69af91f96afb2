"""What of a graph is a row and what is one number of it, and which of these numbers are found together."""

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

from lossmith.kernels.symbols import Input, Operation, inputs_of
from lossmith.kernels.traced import FACTORS, LOGITS

__all__ = ["REDUCTIONS", "identity_of", "is_row", "is_wide", "key_of", "level_of", "numbers_within", "reductions_in"]

REDUCTIONS = ("take", "total", "peak_height", "peak_place", "peak_rest", "top_height", "top_place", "tempered_peak")
"""The operations that make one number of a row."""


@lru_cache(maxsize=10_000)  # a graph has few nodes but many paths
def is_row(value: Any) -> bool:
    """Return whether there is a number for each class, and not one for all."""
    if isinstance(value, Input):
        return value.name in (LOGITS, FACTORS)
    if not isinstance(value, Operation) or value.is_number or value.name in (*REDUCTIONS, "own"):
        return False
    # A number that is put at the place of one class differs from that of the others, whatever these have.
    return value.name == "put" or any(is_row(each) for each in inputs_of(value))


@lru_cache(maxsize=10_000)
def is_wide(value: Any) -> bool:
    """Return whether this is a number of a row that needs the digits of double precision, whatever rows have."""
    if not isinstance(value, Operation) or value.is_number or value.name in REDUCTIONS or is_row(value):
        return False
    return value.name == "wide" or any(is_wide(each) for each in inputs_of(value))


def identity_of(node: Operation) -> tuple[Hashable, ...]:
    """Return what tells a number of a row from others."""
    return (node.name, *node.arguments)


def key_of(node: Operation) -> tuple[Hashable, ...]:
    """Return what is found together: all parts of a peak are one walk."""
    return (node.name.partition("_")[0], *node.arguments)


def numbers_within(value: Any) -> list[Operation]:
    """Return the numbers of a row that something is made of without a walk over the row."""
    found: dict[Operation, None] = {}
    seen, waiting = set(), [value]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Operation) or node.is_number or node in seen:
            continue
        seen.add(node)
        if not is_row(node) and node is not value:
            found[node] = None
        else:
            waiting += inputs_of(node)
    return list(found)


def level_of(value: Any, known: dict[Any, int]) -> int:
    """Return how many walks over a row are needed, each for sums that the next is made of."""
    if not isinstance(value, Operation) or value.is_number:
        return 0
    if value not in known:
        below = max((level_of(each, known) for each in inputs_of(value)), default=0)
        known[value] = below + (value.name in REDUCTIONS)
    return known[value]


def reductions_in(root: Any) -> list[Operation]:
    """Return all numbers of a row that something is made of and that take a walk over the row."""
    found: dict[Operation, None] = {}
    seen, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Operation) and node not in seen and not node.is_number:
            seen.add(node)
            waiting += inputs_of(node)
            if node.name in REDUCTIONS:
                found[node] = None
    return list(found)
