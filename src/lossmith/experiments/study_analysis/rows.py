"""Which test rows a measurement takes: always the same ones, so that every run is measured on the same."""

import numpy as np

__all__ = ["halves", "some_rows"]


def some_rows(count: int, most: int) -> np.ndarray:
    """Return at most so many row numbers, drawn by chance, in order.

    >>> len(some_rows(1000, 10)), some_rows(3, 10)
    (10, array([0, 1, 2]))
    """
    return np.sort(np.random.default_rng(0).permutation(count)[:most])


def halves(labels: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two halves of the rows of each class, together at most so many rows; an odd one is in the first.

    >>> halves(np.array([0, 0, 1, 1, 1]), most=100)
    (array([0, 2, 4]), array([1, 3]))
    """
    rows = some_rows(len(labels), most)
    in_order = rows[np.argsort(labels[rows], kind="stable")]
    turn = np.concatenate([np.arange(count) % 2 for count in np.unique(labels[rows], return_counts=True)[1]])
    return np.sort(in_order[turn == 0]), np.sort(in_order[turn == 1])
