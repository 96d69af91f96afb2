"""Which test rows replicates have in common, so that their runs can be compared with one another.

Every replicate is judged on test rows of its own, unless the user brought the test split. A model must not be compared on rows
that it was trained on, so that what two replicates can be compared on are the rows that are test rows of both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from lossmith.studies.study import Study

__all__ = ["FEWEST_SHARED", "ReplicateRows"]

FEWEST_SHARED = 50
"""Rows that every two replicates must share to be compared on them."""


@dataclass(frozen=True)
class ReplicateRows:
    """The test rows of some replicates of a study."""

    study: Study
    seeds: tuple[int, ...]

    def shared(self, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the rows that two replicates share, within the test split of either.

        Args:
            first: A replicate.
            second: Another one, or the same.

        Returns:
            Two arrays of equal length.
        """
        _, own, others = np.intersect1d(
            self.study.test_rows(first), self.study.test_rows(second), assume_unique=True, return_indices=True
        )
        return own, others

    @cached_property
    def are_same(self) -> bool:
        """Whether all have the same test rows, or there is one replicate only."""
        return all(np.array_equal(self.study.test_rows(first), self.study.test_rows(second)) for first, second in self._pairs)

    @cached_property
    def are_comparable(self) -> bool:
        """Whether runs of different replicates can be compared: there are several, and every two share enough rows."""
        return bool(self._pairs) and (self.are_same or self._counts[0] >= FEWEST_SHARED)

    @cached_property
    def note(self) -> str:
        """What to know about comparisons of runs, in words; nothing where all have the same rows."""
        if self.are_same:
            return ""
        fewest, most = self._counts
        counts = f"{fewest} to {most}" if fewest < most else f"{most}"
        own = "Every replicate has test rows of its own, so that there are no ensembles"
        if self.are_comparable:
            return f"{own}, and runs of two replicates are compared on the test rows of both, {counts} of them."
        few = f"two have {counts} in common, too few to compare their runs on" if most else "two have none in common"
        return f"{own}, and {few}: only runs of the same replicate are compared, and no loss with itself."

    @property
    def _pairs(self) -> Sequence[tuple[int, int]]:
        return tuple(combinations(self.seeds, 2))

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """The fewest and the most rows that two replicates share."""
        counts = [len(self.shared(*pair)[0]) for pair in self._pairs]
        return min(counts), max(counts)
