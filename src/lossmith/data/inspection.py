"""What a user should know about data before training on it."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lossmith.data.class_balance import imbalance_notes
from lossmith.data.encoding.labels import Classes
from lossmith.data.sources.examples import Array
from lossmith.data.sparse_rows import Inputs, SparseRows
from lossmith.data.splits import Splits
from lossmith.expressions.lists import listed, quoted

__all__ = ["data_notes"]

_RARE = 10  # training rows


def data_notes(inputs: Inputs, classes: Classes, splits: Splits) -> tuple[str, ...]:
    """Return a line each on quantities as classes, uneven and rare classes, those that a split lacks, equal inputs, wrong labels.

    Args:
        inputs: Inputs as a network takes them.
        classes: The classes and labels.
        splits: Which rows serve for what.

    Returns:
        Notes for the user, of which there may be none.
    """
    notes = [*_class_notes(classes.labels, classes.names, splits), *_duplicate_notes(inputs, classes.labels, splits)]
    if classes.true_labels is not None:
        wrong = (classes.labels != classes.true_labels)[splits.train.numpy()].mean()
        notes.append(f"training labels that differ from the true labels: {wrong:.1%}")
    return tuple(notes)


def _class_notes(labels: Array, classes: tuple[str, ...], splits: Splits) -> list[str]:
    train, validation, test = (np.bincount(labels[rows.numpy()], minlength=len(classes)) for rows in splits)
    rare = [f"{name!r} {count}" for name, count in zip(classes, train, strict=True) if 0 < count < _RARE]
    notes = imbalance_notes(labels[splits.train.numpy()], classes)
    notes += [f"rare classes, by training rows: {listed(rare)}"] if rare else []
    if _are_quantities(classes):
        notes.insert(0, "the target holds numbers with fractions: each different number is a class of its own")
    for absent, what in (
        ((train == 0) & (test + validation > 0), "are in no training row, so no model can learn them"),
        ((train > 0) & (test == 0), "are in no test row" + (", having too few rows" if rare else "")),
        (train + validation + test == 0, "are in no row at all"),
    ):
        if absent.any():
            notes.append(f"classes {quoted(itertools.compress(classes, absent))} {what}")
    return notes


def _are_quantities(names: tuple[str, ...]) -> bool:
    """Whether the classes look like a quantity that was measured.

    >>> _are_quantities(("0.5", "1", "2.25")), _are_quantities(("0", "1", "2")), _are_quantities(("v1.5", "2.5"))
    (True, False, False)
    """
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return not all(number.is_integer() for number in numbers)


class _Duplicates(NamedTuple):
    rows: int
    contradicting: int
    leaking: int


def _duplicate_notes(inputs: Inputs, labels: Array, splits: Splits) -> list[str]:
    found = _duplicates(inputs, labels, splits.test.numpy())
    notes = []
    if found.rows:
        notes.append(f"duplicates of an earlier row: {found.rows}")
    if found.contradicting:
        notes.append(f"rows with the same inputs as a row of another class, which nobody can tell apart: {found.contradicting}")
    if found.leaking:
        notes.append(
            f"test rows with the same inputs as a training or validation row, which make the test too easy: {found.leaking}"
        )
    return notes


def _duplicates(inputs: Inputs, labels: Array, test: Array) -> _Duplicates:
    digests = np.array([hash(row) for row in _rows_as_bytes(inputs)])  # 64 bits each
    _, group = np.unique(digests, return_inverse=True)
    groups = group.max() + 1
    in_test = np.zeros(len(labels), dtype=bool)
    in_test[test] = True
    elsewhere = np.bincount(group[~in_test], minlength=groups) > 0
    lowest, highest = np.full(groups, labels.max() + 1), np.full(groups, -1)
    np.minimum.at(lowest, group, labels)
    np.maximum.at(highest, group, labels)
    return _Duplicates(len(labels) - groups, int((lowest < highest)[group].sum()), int(elsewhere[group[in_test]].sum()))


def _rows_as_bytes(inputs: Inputs) -> Iterator[bytes]:
    if not isinstance(inputs, SparseRows):
        yield from (row.tobytes() for row in inputs.numpy())
        return
    columns, values = inputs.columns.numpy(), inputs.values.numpy()
    for start, end in itertools.pairwise(inputs.starts.tolist()):
        yield columns[start:end].tobytes() + values[start:end].tobytes()
