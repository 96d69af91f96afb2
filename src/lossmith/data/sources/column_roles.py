"""What the columns of a table are for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lossmith.data.sources.column_values import check_single_values, class_name
from lossmith.data.sources.examples import Array, Examples, Groups
from lossmith.data.sources.table_files import Table
from lossmith.expressions.limits import is_whole
from lossmith.expressions.lists import quoted
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote

__all__ = ["Roles", "column_named", "examples_of_table", "split_name"]

_TARGET_NAMES = ("target", "label", "labels", "class", "classes", "y")
_SPLIT_NAMES = {
    "train": ("train", "training", "tr", "fit"),
    "validation": ("validation", "valid", "val", "dev", "development"),
    "test": ("test", "testing", "te", "eval", "evaluation"),
}
# What targets are called that features may be called, too: taken only where nothing else could be the target.
_LIKELY_TARGET_NAMES = (
    *("intent", "category", "sentiment", "emotion", "topic", "genre", "species", "variety", "diagnosis", "disease"),
    *("outcome", "result", "output", "quality", "grade", "survived", "churn", "spam", "fraud"),
)
_MOST_CLASSES_GUESSED = 100
_FEWEST_ROWS_GUESSED = 5  # a class, on average


@dataclass(frozen=True)
class Roles:
    """Which columns are not features. All but the target may be missing."""

    target: str | int | None = None
    true_label: str | None = None
    split: str | None = None
    groups: Groups | None = None


def examples_of_table(table: Table, roles: Roles, name: str) -> Examples:
    """Take the target, and what else the roles name, out of the table; the rest are features.

    Args:
        table: The table, and notes on it.
        roles: Which columns are what.
        name: What the data is called.

    Returns:
        The examples.

    Raises:
        ValueError: If there is no such column, or none is left as a feature.
    """
    frame, notes, output = table
    target, note = _target(frame, roles.target, output, name)
    group_column = column_named(frame, roles.groups, name) if isinstance(roles.groups, str) else None
    true_label, split = (None if role is None else column_named(frame, role, name) for role in (roles.true_label, roles.split))
    taken = [column for column in (target, true_label, split, group_column) if column is not None]
    features = frame.drop(columns=taken)
    if features.shape[1] == 0:
        raise ValueError(f"{name}: no columns are left to tell the target from.")
    return Examples(
        name,
        features,
        _objects(frame[target], name),
        split=None if split is None else _splits(frame[split], name),
        true_labels=None if true_label is None else _objects(frame[true_label], name),
        groups=roles.groups if group_column is None else _groups(frame, target, group_column, name),
        notes=(*notes, *note),
    )


def split_name(text: object) -> str | None:
    """Return which split a word means.

    Args:
        text: A word.

    Returns:
        One of ``SPLITS``, or None.

    >>> split_name("Training"), split_name("dev"), split_name("cats")
    ('train', 'validation', None)
    """
    word = str(text).strip().lower()
    return next((split for split, words in _SPLIT_NAMES.items() if word in words), None)


def column_named(frame: pd.DataFrame, name: str | int, owner: str) -> str:
    """Return the column of this name or place, in whatever case it is written.

    Args:
        frame: The table.
        name: A name, or a place from 0 on.
        owner: What errors name.

    Returns:
        The name that the column has.

    Raises:
        ValueError: If there is no such column.
    """
    if is_whole(name) and -frame.shape[1] <= name < frame.shape[1]:
        return str(frame.columns[name])
    if name in frame.columns:
        return str(name)
    alike = [column for column in frame.columns if column.lower() == str(name).strip().lower()]
    if len(alike) == 1:
        return str(alike[0])
    raise ValueError(
        f"{owner}: no column {quote(name)}{nearest(str(name), frame.columns)} The columns are {quoted(frame.columns, most=30)}."
    )


def _target(frame: pd.DataFrame, given: str | int | None, output: str, owner: str) -> tuple[str, tuple[str, ...]]:
    """Return the target column, with a note if it was guessed."""
    if given is not None:
        return column_named(frame, given, owner), ()
    if output:
        return output, (f"target: column {output!r}, which the file calls its output",)
    told = [column for column in frame.columns if column.lower() in _TARGET_NAMES]
    if len(told) == 1:
        return told[0], (f"target: column {told[0]!r}, by its name",)
    last = frame.columns[-1]
    found = {} if told else dict.fromkeys(_likely_by_name(frame), "by its name")
    if not told and _last_is_only_text(frame):
        found.setdefault(last, "the last one and the only one that is not numbers")
    if len(found) == 1:
        ((column, why),) = found.items()
        return column, (f"target: column {column!r}, {why}",)
    raise ValueError(
        f"{owner}: target must be given, the column that holds the classes. The columns are {quoted(frame.columns, most=30)}."
    )


def _likely_by_name(frame: pd.DataFrame) -> list[str]:
    """Return columns that are called as targets often are, and have few different values."""
    called = [column for column in frame.columns if column.lower() in _LIKELY_TARGET_NAMES]
    return [column for column in called if 2 <= _distinct(frame[column]) <= len(frame) / _FEWEST_ROWS_GUESSED]


def _distinct(column: pd.Series) -> int:
    return int(column.dropna().astype(str).nunique())


def _last_is_only_text(frame: pd.DataFrame) -> bool:
    numeric = [pd.api.types.is_numeric_dtype(frame[column]) for column in frame.columns]
    return all(numeric[:-1]) and not numeric[-1] and frame.iloc[:, -1].nunique() <= min(_MOST_CLASSES_GUESSED, len(frame) / 2)


def _objects(column: pd.Series, owner: str) -> Array:
    check_single_values(column, owner)
    return np.asarray(column.astype(object).where(column.notna(), None), dtype=object)


def _splits(column: pd.Series, owner: str) -> Array:
    check_single_values(column, owner)
    names = {value: split_name(value) for value in column.dropna().unique()}
    unknown = [value for value, name in names.items() if name is None]
    if unknown or column.isna().any():
        found = repr(unknown[0]) if unknown else "a missing value"
        raise ValueError(f"{owner}: column {column.name!r} must say train, validation or test, got {found}.")
    return np.asarray(column.map(names), dtype=object)


def _groups(frame: pd.DataFrame, target: str, column: str, owner: str) -> Mapping[Any, Any]:
    """Return the group of each class, which must be the same in all its rows."""
    check_single_values(frame[column], owner)
    known = frame[[target, column]].dropna().drop_duplicates()
    names = known[target].map(class_name)
    twice = names[names.duplicated()]
    if len(twice):
        raise ValueError(f"{owner}: column {column!r} must have one group for each class, got several for {twice.iloc[0]!r}.")
    return dict(zip(names, known[column], strict=True))
