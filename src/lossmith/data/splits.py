"""Which rows serve for training, validation and test."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lossmith.data.sources.examples import SPLITS, Array
from lossmith.expressions.limits import Limits

__all__ = ["Shares", "Splits", "make_splits"]

IntArray = np.ndarray[tuple[int], np.dtype[np.int64]]


class Shares(NamedTuple):
    """How large the splits are that a source does not have itself, as shares of the rows that are divided."""

    validation: float = 0.15
    test: float = 0.2

    def check(self) -> None:
        """Raise an error where a share is none, or nothing is left to train on.

        Raises:
            ValueError: If a share is out of [0, 1), or their sum is not below 1.
        """
        for name, share in (("validation_share", self.validation), ("test_share", self.test)):
            Limits(0.0, 1.0, high_open=True).check(name, share, owner="load_data")
        if self.validation + self.test >= 1:
            raise ValueError(f"load_data: validation_share and test_share must leave rows to train on, got {tuple(self)}.")


class Splits(NamedTuple):
    """Row numbers, in ascending order."""

    train: Tensor
    validation: Tensor
    test: Tensor


def make_splits(labels: IntArray, given: Array | None, shares: Shares, seed: int) -> Splits:
    """Divide the rows: as the source says, and at random within each class where it says nothing.

    Rows that are marked for training give up the validation split, if there is none; and the test split likewise.

    Args:
        labels: The class index of each row.
        given: The split of each row, as far as the source says, or None.
        shares: How large the missing splits are.
        seed: Draws them.

    Returns:
        Row numbers of the three splits.

    Raises:
        ValueError: If the shares are out of range.
    """
    shares.check()
    split = np.full(len(labels), "", dtype=object) if given is None else given.copy()
    split[split == "train"] = ""
    generator = np.random.default_rng(seed)
    missing = {
        name: share
        for name, share in zip(("test", "validation"), (shares.test, shares.validation), strict=True)
        if not np.any(split == name)
    }
    free = split == ""
    for label in np.unique(labels):
        rows = generator.permutation(np.flatnonzero((labels == label) & free))
        start = 0
        for name, count in _counts(len(rows), missing).items():
            split[rows[start : start + count]] = name
            start += count
    split[split == ""] = "train"
    return Splits(*(torch.from_numpy(np.flatnonzero(split == name)) for name in SPLITS))


def _counts(rows: int, shares: dict[str, float]) -> dict[str, int]:
    """Return how many rows of a class go where: one at least into each split, and none where training would be left without.

    >>> (
    ...     _counts(100, {"test": 0.2, "validation": 0.15}),
    ...     _counts(3, {"test": 0.2, "validation": 0.15}),
    ...     _counts(2, {"test": 0.2, "validation": 0.15}),
    ... )
    ({'test': 20, 'validation': 15}, {'test': 1, 'validation': 1}, {'test': 0, 'validation': 0})
    """
    if rows <= 2:
        return dict.fromkeys(shares, 0)
    counts = {name: max(1, int(share * rows + 0.5)) if share else 0 for name, share in shares.items()}
    while sum(counts.values()) >= rows:  # both were rounded up
        counts[max(counts, key=lambda name: counts[name])] -= 1
    return counts
