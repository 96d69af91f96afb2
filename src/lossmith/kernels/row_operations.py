"""What operations of torch are for one row of logits at a time: a name, and the arguments that matter there.

Engines in other languages are printed from this. Every tensor of a formula is a row, a number for each class, or one number.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch

from lossmith.kernels.symbols import Input, Operation, UntraceableError, inputs_of
from lossmith.kernels.traced import FACTORS, LOGITS

__all__ = ["SPECIAL", "call_of", "is_row", "seen_through"]

# In double precision and for one row at a time, these do nothing.
KEPT_AS_IT_IS = ("clone", "constant", "contiguous", "double", "float", "squeeze", "to", "unsqueeze")
# What is one number for each row, whatever it is made of.
NUMBERS = ("amax", "amin", "argmax", "argmin", "log_odds", "logsumexp", "mean", "sum")

Call = tuple[str, tuple[Any, ...]]
"""An operation by its name in torch's spelling, and its arguments."""


def _along_classes(operation: str, dim: object) -> None:
    if dim not in (1, -1):
        raise UntraceableError(f"uses {operation} along dim={dim!r}; rows are seen one at a time, along dim=1")


def _reduction(name: str) -> Callable[..., Call]:
    def arguments(row: Any, dim: Any = None, *_: Any, **__: Any) -> Call:
        _along_classes(name, dim)
        return name, (row,)

    return arguments


def _gather(row: Any, dim: int, index: Any) -> Call:
    _along_classes("gather", dim)
    if isinstance(row, Operation) and row.name == "log_odds_of_absence":
        return "log_odds_of_absence", (row.arguments[0], index, *row.arguments[1:])
    return "gather", (row, index)


def _log_odds_of_absence(*_: Any) -> Call:
    raise UntraceableError("uses log_odds_of_absence of more than one class, which takes too long in a browser")


def _scatter(row: Any, dim: int, index: Any, src: Any = None, value: Any = None) -> Call:
    _along_classes("scatter", dim)
    return "scatter", (row, index, value if src is None else src)


def _scatter_add(row: Any, dim: int, index: Any, src: Any) -> Call:
    _along_classes("scatter_add", dim)
    return "scatter_add", (row, index, src)


def _ones_like(values: Any, **_: Any) -> Call:
    return "ones_like", (values,)


def _topk(row: Any, k: Any, dim: int = -1) -> Call:
    _along_classes("topk", dim)
    return "topk", (row, k)


def _getitem(value: Any, key: Any) -> Call:
    """Return a part of a pair, or a piece of a row."""
    if key in (0, 1) and isinstance(value, Operation):
        if value.name == "tempered_probs":
            return ("tempered_probs", "tempered_log_probs")[key], value.arguments
        if value.name == "topk":
            return ("topk", "topk_index")[key], _topk(*value.arguments, **value.options)[1]
    if isinstance(key, tuple) and len(key) == 2 and key[0] == slice(None) and isinstance(key[1], slice) and key[1].step is None:
        return "slice", (value, 0 if key[1].start is None else key[1].start, *([] if key[1].stop is None else [key[1].stop]))
    raise UntraceableError(f"takes the part [{key!r}] of a result")


def _clamp(row: Any, min: Any = None, max: Any = None) -> Call:  # noqa: A002 (torch's names)
    if max is None:
        return "clamp_min", (row, min)
    return "clamp", (row, -math.inf if min is None else min, max)


def _expand(row: Any, rows: Any, size: Any) -> Call:
    if rows != -1:
        raise UntraceableError("uses expand along the rows")
    return "expand", (row, size)


def _where(condition: Any, first: Any, second: Any) -> Call:
    return "where", (condition, first, second)


def _softplus(row: Any, beta: float = 1.0, *_: Any, **__: Any) -> Call:
    # Torch returns x itself beyond the threshold, where that is all there is to say in double precision, too.
    if beta != 1:
        raise UntraceableError("uses softplus with a beta")
    return "softplus", (row,)


def _relu(row: Any, **_: Any) -> Call:
    return "relu", (row,)


# What is called in another way than in torch, from torch's arguments.
SPECIAL: Mapping[str, Callable[..., Call]] = {
    **{
        name: _reduction(name)
        for name in ("amax", "amin", "argmax", "argmin", "logsumexp", "log_softmax", "mean", "softmax", "sum")
    },
    "clamp": _clamp,
    "expand": _expand,
    "gather": _gather,
    "getitem": _getitem,
    "log_odds_of_absence": _log_odds_of_absence,
    "ones_like": _ones_like,
    "relu": _relu,
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "softplus": _softplus,
    "topk": _topk,
    "where": _where,
}


def call_of(operation: Operation) -> Call:
    """Return an operation as something on rows.

    Args:
        operation: A call as torch takes it.

    Returns:
        Its name, and the arguments that matter for rows.

    Raises:
        UntraceableError: If these arguments mean nothing for rows.
    """
    if operation.name in SPECIAL:
        try:
            return SPECIAL[operation.name](*operation.arguments, **operation.options)
        except TypeError as error:  # other arguments than those that are named above
            raise UntraceableError(f"uses {operation.name} in a way that is not known for rows") from error
    if operation.options:
        raise UntraceableError(f"uses {operation.name} with {', '.join(operation.options)}, which is not known for rows")
    return operation.name, operation.arguments


def seen_through(value: Any) -> Any:
    """Return what a value is, whatever has been done to its shape or precision.

    Args:
        value: A node of a graph, or a constant.

    Returns:
        The node or constant behind operations that do nothing in double precision and for one row at a time.

    Raises:
        UntraceableError: If such an operation is used where it would do something.
    """
    while isinstance(value, Operation) and value.name in KEPT_AS_IT_IS:
        _check_kept(value)
        value = value.arguments[0]
    return value


def _check_kept(operation: Operation) -> None:
    """Raise an error where an operation on shape or precision would change what is computed."""
    types = [each for each in (*operation.arguments, *operation.options.values()) if isinstance(each, torch.dtype)]
    if any(not each.is_floating_point for each in types):
        raise UntraceableError(f"uses {operation.name} with {types[0]}, which is not known for rows")
    if operation.name == "unsqueeze" and is_row(operation.arguments[0]):
        raise UntraceableError("uses unsqueeze of a row; rows are known, and no tables of them")


@lru_cache(maxsize=10_000)  # a graph has few nodes but many paths
def is_row(node: Input | Operation) -> bool:
    """Return whether a node is a number for each class, and not one for all."""
    if isinstance(node, Input):
        return node.name in (LOGITS, FACTORS) and not node.is_number
    if node.name == "gather":
        return is_row(call_of(node)[1][1])
    return node.name not in NUMBERS and (node.name == "one_hot" or any(is_row(each) for each in inputs_of(node)))
