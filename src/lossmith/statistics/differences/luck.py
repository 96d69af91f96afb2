"""The luck of test rows: what other rows of the same kind would make of a difference between two losses.

Rows are independent of one another and many, so that their luck is known far better than that of training. After Bayle et al.
2020, the variance of a cross-validated difference over draws of the data is that of the scores of its rows; a row that several
replicates tested counts once, with the mean of its scores.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

__all__ = ["NO_LUCK", "LuckByScores", "LuckOfRows", "RowLuck", "RowScores", "row_luck"]


@dataclass(frozen=True)
class RowLuck:
    """What the luck of rows has to do with the difference of two losses, as variances."""

    mean: float = 0.0
    """Of the mean difference over all replicates."""
    replicate: float = 0.0
    """Of the difference in one replicate, whose test rows are some of all."""
    shared: float = 0.0
    """The share of their test rows that two replicates have in common, on average."""

    @property
    def between(self) -> float:
        """The part of the variance between replicates that their test rows explain."""
        return self.replicate * (1 - self.shared)


NO_LUCK = RowLuck()
"""Where nothing is known of rows: replicates alone tell how far their mean may be off."""

LuckOfRows = Callable[[str, str, str], RowLuck]
"""From loss, reference and noise to the luck of rows in their difference."""


class RowScores(NamedTuple):
    """The test rows of a replicate."""

    numbers: np.ndarray
    """Which rows of the data they are."""
    scores: np.ndarray
    """What a loss makes of each, see :func:`lossmith.statistics.differences.overlapping.row_scores`."""


def row_luck(first: Sequence[RowScores], second: Sequence[RowScores]) -> RowLuck:
    """Return the luck of rows in the mean difference of two losses, each replicate counting the same.

    Args:
        first: The rows of each replicate with the scores of a loss.
        second: The same rows with the scores of what it is compared with.

    Returns:
        Variances; 0 for fewer than two rows, which tell none.

    Raises:
        ValueError: If the rows of the two are not the same.

    >>> rows = np.arange(4)
    >>> luck = row_luck([RowScores(rows, np.array([1.0, 1, 0, 1]))], [RowScores(rows, np.array([1.0, 0, 0, 1]))])
    >>> luck.mean, luck.replicate
    (0.0625, 0.0625)
    """
    for mine, theirs in zip(first, second, strict=True):
        if not np.array_equal(mine.numbers, theirs.numbers):
            raise ValueError(f"row_luck: both must have the same rows, got {len(mine.numbers)} and {len(theirs.numbers)}.")
    replicates = [
        RowScores(mine.numbers, mine.scores - theirs.scores)
        for mine, theirs in zip(first, second, strict=True)
        if len(mine.numbers) > 1
    ]
    if not replicates:
        return NO_LUCK
    own = [float(one.scores.var(ddof=1)) / len(one.scores) for one in replicates]
    return RowLuck(_variance_of_mean(replicates), float(np.mean(own)), _shared(replicates))


class LuckByScores:
    """Tells the luck of rows in every difference, from the scores of rows; each is asked for once.

    Args:
        scores: From loss and noise to the rows of every replicate, by its number.
        seeds: The replicates that count; None for all.

    >>> rows = {"ce": np.array([1.0, 0, 0, 1]), "gce": np.array([1.0, 1, 0, 1])}
    >>> LuckByScores(lambda loss, noise: {0: RowScores(np.arange(4), rows[loss])})("gce", "ce", "none").mean
    0.0625
    """

    def __init__(self, scores: Callable[[str, str], Mapping[int, RowScores]], seeds: Collection[int] | None = None) -> None:
        self._scores = cache(scores)
        self._seeds = seeds
        self._of_pair = cache(self._luck)

    def __call__(self, loss: str, reference: str, noise: str) -> RowLuck:
        """Return :func:`row_luck` over the replicates that both have; none where they have none."""
        return self._of_pair(loss, reference, noise)

    def within(self, seeds: Collection[int]) -> "LuckByScores":
        """Return the same for some of the replicates.

        Args:
            seeds: Their numbers.

        Returns:
            What a study of these alone would know.
        """
        return LuckByScores(self._scores, seeds)

    def _luck(self, loss: str, reference: str, noise: str) -> RowLuck:
        first, second = self._scores(loss, noise), self._scores(reference, noise)
        both = [seed for seed in first if seed in second and (self._seeds is None or seed in self._seeds)]
        return row_luck([first[seed] for seed in both], [second[seed] for seed in both])


def _variance_of_mean(replicates: Sequence[RowScores]) -> float:
    """Return the variance over draws of rows: that of clusters, which the tests of a row are."""
    numbers = np.concatenate([one.numbers for one in replicates])
    scores = np.concatenate([one.scores for one in replicates])
    weights = np.concatenate([np.full(len(one.scores), 1 / (len(replicates) * len(one.scores))) for one in replicates])
    distinct, place = np.unique(numbers, return_inverse=True)
    of_row = np.bincount(place, weights * (scores - weights @ scores))
    return float(len(distinct) / (len(distinct) - 1) * (of_row**2).sum())


def _shared(replicates: Sequence[RowScores]) -> float:
    """Return the mean share of rows that two replicates have in common."""
    if len(replicates) < 2:
        return 0.0
    distinct = np.unique(np.concatenate([one.numbers for one in replicates]))
    tested = np.stack([np.isin(distinct, one.numbers) / np.sqrt(len(one.numbers)) for one in replicates])
    return min(1.0, float((tested @ tested.T)[np.triu_indices(len(replicates), 1)].mean()))
