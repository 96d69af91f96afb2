"""What each setting may be: its type and its range, checked before anything is read or trained."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lossmith.data.long_tails import make_long_tail
from lossmith.data.noise.label_noise import LabelNoise
from lossmith.expressions.limits import Limits
from lossmith.expressions.quotes import quote
from lossmith.studies.design.tuned_ranges import written_tuned
from lossmith.training.checks import RECIPE_LIMITS

__all__ = ["CHECKS", "checked", "split_list"]

Check = Callable[[str, Any], Any]
"""Takes the name of a setting and what was given, and returns what the setting becomes, or raises a ValueError."""


def checked(name: str, value: Any) -> Any:
    """Return the value of a setting in the form that the study has it: lists may be one item, or text with commas.

    Args:
        name: One of ``CHECKS``.
        value: What was given on the command line, in a file or in Python.

    Returns:
        The value, with lists as tuples.

    Raises:
        ValueError: If the value is of another type or out of the range of the setting.

    >>> checked("losses", "ce, agce(b=1, q=0.5)"), checked("epochs", 60)
    (('ce', 'agce(b=1, q=0.5)'), 60)
    >>> checked("epochs", "60")
    Traceback (most recent call last):
    ValueError: compare: epochs must be a whole number in [1, 1e+06], got '60'.
    """
    return CHECKS[name](name, value)


def _refused(name: str, expected: str, value: Any) -> ValueError:
    return ValueError(f"compare: {name} must be {expected}, got {quote(value)}.")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _refused(name, "text", value)
    return value


def _path(name: str, value: Any) -> str:
    """Return a path as text, which the file of a study can hold."""
    if not isinstance(value, str | Path):
        raise _refused(name, "the path of a folder", value)
    return os.fspath(value)


def _column(name: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | np.integer):
        raise _refused(name, "the name of a column", value)
    return value if isinstance(value, str) else int(value)


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise _refused(name, "true or false", value)
    return bool(value)


def _within(limits: Limits) -> Check:
    def check(name: str, value: Any) -> Any:
        try:
            return limits.check(name, value, owner="compare")
        except (TypeError, ValueError):
            kind = "a whole number" if limits.whole else "a number"
            raise _refused(name, f"{kind} {limits}", value) from None

    return check


def _list(item: Check) -> Callable[[str, Any], tuple[Any, ...]]:
    def check(name: str, value: Any) -> tuple[Any, ...]:
        items = split_list(value) if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
        if not len(items):
            raise ValueError(f"compare: {name} must name at least one, got none.")
        return tuple(item(name, each) for each in items)

    return check


def _joined(name: str, value: Any) -> str:
    """Return names as one text, whether they were given so or as a list."""
    return ",".join(_list(_text)(name, value))


def _by_loss(item: Check) -> Check:
    """Take numbers by the name of a loss: a dictionary, or text such as ``ce=0.1, gce(q=0.5)=0.3``."""

    def check(name: str, value: Any) -> dict[str, tuple[float, ...]]:
        given = _pairs(name, value) if isinstance(value, str) else value
        if not isinstance(given, Mapping) or not all(isinstance(loss, str) for loss in given):
            raise _refused(name, "numbers by the name of a loss, such as ce=0.1", value)
        if not given:
            raise ValueError(f"compare: {name} must name at least one, got none.")
        return {loss: _list(item)(name, numbers) for loss, numbers in given.items()}

    return check


def _pairs(name: str, text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in split_list(text):
        loss, equals, number = pair.rpartition("=")
        if not equals or not loss.strip() or loss.count("(") != loss.count(")"):
            raise _refused(name, "numbers by the name of a loss, such as ce=0.1", text)
        found.setdefault(loss.strip(), []).append(number.strip())
    return found


def _tuned(name: str, value: Any) -> tuple[str, ...]:
    """Return what is tuned as text, of which ranges by name may come as a dictionary."""
    if isinstance(value, Mapping):
        return tuple(item for pair in value.items() for item in _tuned_pair(*pair))
    return _list(_text)(name, value)


def _tuned_pair(name: Any, values: Any) -> list[str]:
    if name in ("settings", "parameters") and isinstance(values, bool):
        return [name] if values else []
    if isinstance(values, Mapping) and values.keys() == {"low", "high"}:  # a range in TOML, which has no pairs
        values = (values["low"], values["high"])
    return written_tuned({str(name): values})


def _rate(name: str, value: Any) -> float:
    number = _number(name, value)
    if number <= 0:
        raise ValueError(f"compare: {name} must be > 0, got {number!r}.")
    return number


def _decay(name: str, value: Any) -> float:
    number = _number(name, value)
    if number < 0:
        raise ValueError(f"compare: {name} must be >= 0, got {number!r}.")
    return number


def _number(name: str, value: Any) -> float:
    number = math.nan
    if isinstance(value, str | int | float | np.number) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
    if not math.isfinite(number):
        raise _refused(name, "numbers", value)
    return number


def _noise(name: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float | np.number | LabelNoise):
        raise _refused(name, "text or numbers", value)
    return value


def _source(name: str, value: Any) -> Any:
    """Leave to :func:`lossmith.data.load_data` what it may know how to read."""
    if not isinstance(value, str | Path | pd.DataFrame | Mapping | tuple | list):
        raise _refused(name, "a path, the name of a data set, a data frame or arrays", value)
    return os.fspath(value) if isinstance(value, Path) else value


def _groups(name: str, value: Any) -> Any:
    if not isinstance(value, str | Mapping | Sequence | np.ndarray) or isinstance(value, bytes):
        raise _refused(name, "the name of a column, or a group for each class", value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def _sides(name: str, value: Any) -> Any:
    sides = tuple(value) if isinstance(value, list | tuple) else (value,)
    try:
        found = tuple(Limits(1, whole=True).check(name, side, owner="compare") for side in sides)
    except (TypeError, ValueError):
        found = ()
    if len(found) not in (1, 2):
        raise _refused(name, "a whole number >= 1, or height and width", value)
    return found if isinstance(value, list | tuple) else found[0]


def _imbalance(_: str, value: Any) -> str:
    """Return a long tail as text, in one form however it was given."""
    try:
        return str(make_long_tail(value) or "none")
    except (TypeError, ValueError) as error:
        raise ValueError(str(error).replace("load_data", "compare")) from None


_SHARE = _within(Limits(0.0, 1.0, high_open=True))
_COUNT = _within(Limits(1, whole=True))
_WHOLE = _within(Limits(0, whole=True))

CHECKS: dict[str, Check] = {
    "data": _text,
    "losses": _list(_text),
    "noise": _list(_noise),
    "seeds": _COUNT,
    "trials": _COUNT,
    "rates": _list(_rate),
    "decays": _list(_decay),
    "loss_rates": _by_loss(_rate),
    "loss_decays": _by_loss(_decay),
    "tune": _tuned,
    "processes": _COUNT,
    "num_classes": _within(Limits(2, whole=True)),
    "tune_on": _text,
    "metric": _text,
    "class_weight": _text,
    "draws": _text,
    "published": _text,
    "track": _list(_text),
    "minutes": _within(Limits(0.0, low_open=True)),
    "train_rows": _COUNT,
    "references": _truth,
    "clean_validation": _truth,
    "model": _text,
    "optimizer": _text,
    "schedule": _text,
    "nesterov": _truth,
    "decay_vectors": _truth,
    "augment": _joined,
    "precision": _text,
    "select": _text,
    "keep": _list(_text),
    **{name: _within(limits) for name, limits in RECIPE_LIMITS.items()},
    "target": _column,
    "true_label": _text,
    "validation": _source,
    "test": _source,
    "split_column": _text,
    "groups": _groups,
    "validation_share": _SHARE,
    "test_share": _SHARE,
    "seed": _WHOLE,
    "rows": _COUNT,
    "imbalance": _imbalance,
    "text": _text,
    "encoder": _path,
    "fine_tune": _truth,
    "cache": _path,
    "resize": _sides,
    "folder": _path,
}
"""Every setting by name."""


def split_list(text: str) -> list[str]:
    """Return the items of a list with commas, which may have commas within brackets themselves.

    >>> split_list("ce, gce(q=0.5), agce(b=1, q=0.5)")
    ['ce', 'gce(q=0.5)', 'agce(b=1, q=0.5)']
    """
    depth, start, parts = 0, 0, []
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]
