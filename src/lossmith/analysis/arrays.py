"""What every measurement takes: arrays or tensors, checked once and turned into NumPy's double precision."""

from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

__all__ = [
    "Array",
    "Numbers",
    "as_labels",
    "as_matrix",
    "as_probabilities",
    "at_labels",
    "check_same_rows",
    "probabilities_and_labels",
]

Numbers: TypeAlias = ArrayLike | Tensor
"""Arrays, tensors of any device and precision, or nested lists."""
Array: TypeAlias = np.ndarray


def as_matrix(owner: str, name: str, values: Numbers) -> Array:
    """Return ``(n, d)`` finite numbers in double precision, n and d at least 1; what has more dimensions is flattened.

    >>> as_matrix("linear_cka", "features", torch.ones(2, 3, 2)).shape
    (2, 6)
    """
    array = np.asarray(_as_numpy(values), dtype=np.float64)
    if array.ndim < 2 or array.size == 0:
        raise ValueError(f"{owner}: {name} must be (n, d) with n, d >= 1, got shape {tuple(array.shape)}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{owner}: {name} must be finite, got {np.count_nonzero(~np.isfinite(array))} values that are not.")
    return array.reshape(len(array), -1)


def as_probabilities(owner: str, values: Numbers) -> Array:
    """Return ``(n, C)`` numbers between 0 and 1 that sum to 1 in each row, to the rounding of half precision."""
    array = as_matrix(owner, "probabilities", values)
    if array.min() < 0.0 or array.max() > 1.0 + 1e-6:
        raise ValueError(f"{owner}: probabilities must be in [0, 1], got {array.min():g} to {array.max():g}.")
    sums = array.sum(1)
    worst = sums[np.abs(sums - 1.0).argmax()]
    if abs(worst - 1.0) > 1e-2:
        raise ValueError(f"{owner}: probabilities must sum to 1 in each row, got {worst:g}.")
    return array


def as_labels(owner: str, values: Numbers, *, name: str = "labels", rows: int | None = None, classes: int | None = None) -> Array:
    """Return ``(n,)`` whole numbers >= 0: one for each of ``rows``, each below ``classes``, where these are given.

    >>> as_labels("accuracy", torch.tensor([0, 3]), classes=3)
    Traceback (most recent call last):
    ValueError: accuracy: labels must be in [0, 3), got 3.
    """
    array = np.asarray(_as_numpy(values))
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{owner}: {name} must be (n,) with n >= 1, got shape {tuple(array.shape)}.")
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{owner}: {name} must be integers, got {array.dtype}.")
    if rows is not None:
        check_same_rows(owner, name, len(array), rows)
    for extreme in (array.min(), array.max()):
        if extreme < 0 or (classes is not None and extreme >= classes):
            allowed = ">= 0" if classes is None else f"in [0, {classes})"
            raise ValueError(f"{owner}: {name} must be {allowed}, got {extreme}.")
    return array.astype(np.int64, copy=False)


def probabilities_and_labels(owner: str, probabilities: Numbers, labels: Numbers) -> tuple[Array, Array]:
    """Return probabilities ``(n, C)`` and a label below C for each row."""
    values = as_probabilities(owner, probabilities)
    return values, as_labels(owner, labels, rows=len(values), classes=values.shape[1])


def at_labels(values: Array, labels: Array) -> Array:
    """Return the value of each row ``(n, C)`` at its label."""
    chosen: Array = values[np.arange(len(values)), labels]
    return chosen


def check_same_rows(owner: str, name: str, got: int, rows: int) -> None:
    """Raise an error unless there is one entry for each row."""
    if got != rows:
        raise ValueError(f"{owner}: {name} must have {rows} entries, one for each row, got {got}.")


def _as_numpy(values: Numbers) -> Array:
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return (values.to(torch.float64) if values.is_floating_point() else values).numpy()
    return np.asarray(values)
