"""Columns that say the target in other words, which a model must not be given unless they are known when it is used."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch

from lossmith.data.sources.examples import Array

__all__ = ["restating_notes"]

_MOST_WRONG = 0.005
# A column that is wrong as often as the largest class alone says nothing, however rarely that is: it must be so ten times less.
_BETTER_THAN_LARGEST = 10
# What stands for classes has few values: names of finer classes may be many, whole numbers hardly more than there are classes.
_FEWEST_ROWS_A_VALUE = 10
_MOST_NUMBERS_A_CLASS = 2
_ENOUGH_ROWS = 50_000
_NAMES_AND_NUMBERS = ("string", "categorical", "boolean", "integer", "mixed-integer")  # in the words of pandas


def restating_notes(columns: Mapping[str, pd.Series], labels: Array, train: torch.Tensor) -> list[str]:
    """Warn of columns of names or whole numbers whose values stand for classes, all but exactly.

    Args:
        columns: The features by name.
        labels: The class index of each row.
        train: The places of the training rows, by which it is told.

    Returns:
        A line for each such column.

    >>> table = {"code": pd.Series([7, 8, 9] * 20), "size": pd.Series(range(60))}
    >>> restating_notes(table, np.array([0, 1, 2] * 20), torch.arange(60))[0].split(":")[0]
    "WARNING, column 'code' restates the target"
    """
    rows = train.numpy()
    rows = rows[:: -(-len(rows) // _ENOUGH_ROWS)]
    told = {name: _share_told(column.iloc[rows], labels[rows]) for name, column in columns.items()}
    return [
        f"WARNING, column {name!r} restates the target: it alone tells {share:.1%} of the training labels;"
        " unless it is known when the model is used, leave it out"
        for name, share in told.items()
        if share is not None
    ]


def _share_told(column: pd.Series, labels: Array) -> float | None:
    """Return the share of labels that the column alone tells, if that is nearly all of them and it stands for classes."""
    if not _may_stand_for_classes(column):
        return None
    codes, values = pd.factorize(column, use_na_sentinel=False)
    classes = np.unique(labels)
    is_number = column.dtype.kind in "iuf"
    if len(values) > (_MOST_NUMBERS_A_CLASS * len(classes) if is_number else len(labels) / _FEWEST_ROWS_A_VALUE):
        return None
    counts = pd.crosstab(codes, labels).to_numpy()
    wrong = 1 - counts.max(axis=1).sum() / len(labels)
    wrong_by_largest = 1 - counts.sum(axis=0).max() / len(labels)
    if wrong > min(_MOST_WRONG, wrong_by_largest / _BETTER_THAN_LARGEST):
        return None
    return float(1 - wrong)


def _may_stand_for_classes(column: pd.Series) -> bool:
    """Return whether a column holds names, truth values or whole numbers, one in each row."""
    if column.dtype.kind == "f":
        return bool((column.dropna() % 1 == 0).all())
    return pd.api.types.infer_dtype(column, skipna=True) in _NAMES_AND_NUMBERS
