"""Classes from labels of any type."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from lossmith.data.sources.column_values import class_name
from lossmith.data.sources.examples import Array, Examples, Groups
from lossmith.expressions.quotes import quote

__all__ = ["Classes", "class_groups", "classes_of"]


class Classes(NamedTuple):
    """The classes of some labels."""

    names: tuple[str, ...]
    labels: np.ndarray[tuple[int], np.dtype[np.int64]]
    true_labels: np.ndarray[tuple[int], np.dtype[np.int64]] | None


def classes_of(examples: Examples) -> Classes:
    """Number the classes of labels that are all there, in the order of numbers, or of the alphabet.

    Args:
        examples: Examples without missing labels.

    Returns:
        The names of the classes, and labels as their numbers.

    Raises:
        ValueError: If there are fewer than two classes, or fewer than two rows a class.
    """
    labels = _names(examples.labels, examples.classes)
    truth = None if examples.true_labels is None else _names(examples.true_labels, examples.classes)
    names = examples.classes or tuple(sorted({*labels, *(truth or ())}, key=_order(labels)))
    _check(names, labels, examples.name)
    number = {name: place for place, name in enumerate(names)}
    return Classes(names, _numbers(labels, number), None if truth is None else _numbers(truth, number))


def class_groups(groups: Groups | None, names: Sequence[str], owner: str) -> tuple[int, ...] | None:
    """Return the number of the coarse group of each class, from a group for each class in order or by name.

    Args:
        groups: A group for each class, in order or by the name of the class, or None.
        names: The names of the classes.
        owner: Whom errors name.

    Returns:
        Numbers from 0, in the order in which groups first come; None where none are given.

    Raises:
        TypeError: If the groups are neither a list nor a dictionary.
        ValueError: If a class has no group, or a group is neither a number nor a name.
    """
    if groups is None:
        return None
    if isinstance(groups, str):
        raise ValueError(f"{owner}: groups can only name a column of a table, got {groups!r}.")
    if isinstance(groups, Mapping):
        given = {class_name(key): group for key, group in groups.items()}
        missing = [name for name in names if name not in given]
        if missing:
            raise ValueError(f"{owner}: groups must have every class, got none for {missing[0]!r}.")
        groups = [given[name] for name in names]
    if not isinstance(groups, Sequence | np.ndarray):
        raise TypeError(f"{owner}: groups must be a column, or a group for each class, got {quote(groups)}.")
    if len(groups) != len(names):
        raise ValueError(f"{owner}: groups must have one entry for each of {len(names)} classes, got {len(groups)}.")
    odd = next((group for group in groups if not isinstance(group, Hashable)), None)
    if odd is not None:
        raise ValueError(f"{owner}: groups must be numbers or names, got {quote(odd)}.")
    order = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    return tuple(order[group] for group in groups)


def _names(labels: Array, classes: tuple[str, ...] | None) -> list[str]:
    """Write every distinct label once, which is much faster than every label."""
    codes, values = pd.factorize(pd.Series(labels), use_na_sentinel=True)
    written = [class_name(value) or "" for value in values]
    if classes is not None:
        written = [name if name in classes else classes[int(name)] for name in written]
    return [written[code] for code in codes]


def _order(names: Iterable[str]) -> "type[float] | None":
    try:
        for name in set(names):
            float(name)
    except ValueError:
        return None
    return float


def _check(names: Sequence[str], labels: Sequence[str], owner: str) -> None:
    if len(set(labels)) < 2:
        found = f"only {labels[0]!r}" if labels else "none"
        raise ValueError(f"{owner}: needs two classes at least, got {found}.")
    if len(labels) < 2 * len(names):
        found = f"{len(labels)} rows for {len(names)} classes. Is the target a quantity?"
        raise ValueError(f"{owner}: needs two rows a class at least, got {found}")


def _numbers(labels: Sequence[str], number: Mapping[str, int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([number[label] for label in labels], dtype=np.int64)
