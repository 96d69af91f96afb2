"""The single values of a column, and how labels among them are written."""

import numpy as np
import pandas as pd

from lossmith.expressions.quotes import quote

__all__ = ["check_single_values", "class_name"]

_SEVERAL = (list, tuple, dict, set, np.ndarray, complex, np.complexfloating)


def check_single_values(column: pd.Series, owner: str) -> None:
    """Raise an error for a column of lists, dictionaries and the like.

    Args:
        column: A column of any type.
        owner: What errors name.

    Raises:
        ValueError: If a row has more than one value.
    """
    if column.dtype.kind in "biufmM" or isinstance(column.dtype, pd.StringDtype):
        return
    odd = column.map(lambda value: isinstance(value, _SEVERAL)).to_numpy(dtype=bool)
    if odd.any():
        kind = type(column[odd].iloc[0]).__name__
        raise ValueError(f"{owner}: column {quote(column.name)} must hold single values, got {kind}.")


def class_name(label: object) -> str | None:
    """Return how a label is written, or None where it is missing; whole numbers are written alike, whatever their type.

    Args:
        label: A label of any type.

    Returns:
        Its name.

    >>> class_name(3.0), class_name("3"), class_name(" cat "), class_name(True), class_name(float("nan"))
    ('3', '3', 'cat', 'True', None)
    """
    if label is None or pd.isna(label):
        return None
    if isinstance(label, bytes):
        return label.decode(errors="replace").strip() or None
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label).strip() or None
