"""Which rows serve for training, validation and test."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lossmith.data.sources.examples import SPLITS, Array
from lossmith.expressions.limits import Limits

__all__ = ["Shares", "Splits", "make_splits"]

IntArray = np.ndarray[tuple[int], np.dtype[np.int64]]

_MANY = 1e9  # the inverse of a share may be infinite


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


def make_splits(labels: IntArray, given: Array | None, shares: Shares, seed: int, replicate: int = 0) -> Splits:
    """Divide the rows: as the source says, and at random within each class where it says nothing.

    Rows that are marked for training give up the validation split, if there is none; and the test split likewise. Replicates come
    in rounds: a round shuffles the rows once, and its replicates test on one part after another, so that with a fifth of the rows
    for testing every five replicates test every row once. Drawn by themselves, five would leave a third of the rows untested.

    Args:
        labels: The class index of each row.
        given: The split of each row, as far as the source says, or None.
        shares: How large the missing splits are.
        seed: Shuffles the rows.
        replicate: Says which part is tested.

    Returns:
        Row numbers of the three splits.

    Raises:
        ValueError: If the shares are out of range.
    """
    shares.check()
    split = np.full(len(labels), "", dtype=object) if given is None else given.copy()
    split[split == "train"] = ""
    missing = Shares(*(0.0 if np.any(split == name) else share for name, share in zip(SPLITS[1:], shares, strict=True)))
    # Without a test split to take turns with, every replicate is a round of its own.
    turns = int(min(1 / missing.test, _MANY) + 1e-9) if missing.test else 1
    rounds, fold = divmod(replicate, turns)
    generator = np.random.default_rng([seed, rounds])
    free = split == ""
    for label in np.unique(labels):
        rows = generator.permutation(np.flatnonzero((labels == label) & free))
        for name, part in _parts(rows, missing, fold).items():
            split[part] = name
    split[split == ""] = "train"
    return Splits(*(torch.from_numpy(np.flatnonzero(split == name)) for name in SPLITS))


def _parts(rows: IntArray, shares: Shares, fold: int) -> dict[str, IntArray]:
    """Return the rows of a class that test and validate: the part whose turn it is, and those that come after it, in a circle.

    Where rows are so few that both are rounded up, training goes first; with two rows or one, all train.

    >>> {name: part.tolist() for name, part in _parts(np.arange(10), Shares(0.15, 0.2), fold=4).items()}
    {'test': [8, 9], 'validation': [0, 1]}
    >>> [len(_parts(np.arange(3), Shares(0.15, 0.2), fold)["test"]) for fold in range(5)]
    [1, 0, 1, 0, 1]
    """
    if len(rows) <= 2:
        return {}
    first, last = (_bound(part, shares.test, len(rows)) for part in (fold, fold + 1))
    others = np.concatenate([rows[last:], rows[:first]])
    validation = _bound(1, shares.validation, len(rows))
    return {"test": rows[first:last], "validation": others[: min(validation, len(others) - 1)]}


def _bound(parts: int, share: float, rows: int) -> int:
    """Return how many rows so many parts have together; the first part has one at least, unless its share is 0."""
    return max(int(parts * share * rows + 0.5), min(parts, 1)) if share else 0
