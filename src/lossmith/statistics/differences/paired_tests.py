"""Differences between two losses that were run in the same replicates, and corrections for looking at many of them."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import stats

from lossmith.statistics.differences.luck import NO_LUCK, RowLuck
from lossmith.statistics.differences.mean_error import MeanError
from lossmith.statistics.differences.pooled_spread import Spread

__all__ = [
    "Difference",
    "benjamini_hochberg",
    "by_holm",
    "holm",
    "paired_difference",
    "replicates_needed",
]

_UNKNOWN = float("nan")


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences with its confidence interval, and how often chance alone gives one as large."""

    pairs: int
    mean: float
    """NaN where there are no pairs."""
    low: float
    """Lower end of the confidence interval; NaN with fewer than two pairs, which say nothing about the spread."""
    high: float
    spread: float
    """Standard deviation of the differences; NaN with fewer than two pairs."""
    p: float
    """Two-sided, not corrected; NaN with fewer than two pairs."""
    error: float = _UNKNOWN
    """Standard error of the mean, all corrections included."""
    law: MeanError | None = field(default=None, repr=False, compare=False)
    """How far the mean may be from the truth: interval and p-value are made of it; where there is none, as in a t-test."""

    @property
    def deviation(self) -> float:
        """The standard deviation of the mean, wider than its error where few replicates tell it; NaN with fewer than two."""
        return self._law.deviation if self.error > 0 else self.error

    @property
    def _law(self) -> MeanError:
        return self.law or MeanError(0.0, 1.0, self.error**2, 0.0, self.pairs - 1)

    def at(self, confidence: float) -> "Difference":
        """Return the same difference with an interval of another confidence, in (0, 1).

        >>> paired_difference(np.array([0.91, 0.90, 0.93]), np.array([0.88, 0.89, 0.90])).at(0.9).low > 0
        True
        """
        if not self.error > 0:
            return self
        half = self._law.half_width(confidence)
        return replace(self, low=self.mean - half, high=self.mean + half)


def paired_difference(
    values: np.ndarray,
    reference: np.ndarray,
    confidence: float = 0.95,
    *,
    overlap_ratio: float = 0.0,
    rows: RowLuck = NO_LUCK,
    spread: Spread | None = None,
) -> Difference:
    """Return the difference ``values - reference`` of paired runs with its interval.

    Replicates that draw their splits from the same rows are not independent. By Nadeau and Bengio the variance of the mean of
    ``J`` differences with variance ``s^2`` is ``(1/J + overlap_ratio) s^2``, by a t-test with ``J - 1`` degrees of freedom. Where
    the scores of test rows are known, their part of it is taken from them, and only what replicates differ by beyond that is
    treated so, see :class:`lossmith.statistics.differences.mean_error.MeanError`.

    Pairs with a NaN are left out. Where all differences are the same number there is no spread to compare with: the t-test would
    call any such difference certain, even from two replicates. All that the data can say is that all ``J`` signs agree, which
    chance gives with probability ``2^(1-J)``; the interval is the one of a t-test with this p-value. Where all differences are
    zero, ``p`` is 1.

    Args:
        values: A number for each replicate, NaN where there is none.
        reference: The same of what is compared with, in the same order.
        confidence: That of the interval, in (0, 1).
        overlap_ratio: Test rows to training rows where replicates draw both from the same rows, see
            :class:`lossmith.statistics.differences.overlapping.Overlap`; 0 for independent replicates.
        rows: The luck of the test rows in the difference.
        spread: The variance between replicates, where more than these differences tell it.

    Returns:
        Mean, interval, spread, p-value and standard error.

    Raises:
        ValueError: If the ratio or a variance of rows is negative.

    >>> difference = paired_difference(np.array([0.91, 0.90, 0.93]), np.array([0.88, 0.89, 0.90]))
    >>> print(f"{difference.mean:.4f} from {difference.low:.4f} to {difference.high:.4f}, p = {difference.p:.3f}")
    0.0233 from -0.0054 to 0.0520, p = 0.073
    >>> paired_difference(np.array([0.9]), np.array([0.8])).p
    nan
    """
    for name, number in (("overlap_ratio", overlap_ratio), ("rows.mean", rows.mean), ("rows.between", rows.between)):
        if not number >= 0:
            raise ValueError(f"paired_difference: {name} must be at least 0, got {number}.")
    differences = _paired(values, reference)
    pairs = len(differences)
    mean = float(differences.mean()) if pairs else _UNKNOWN
    if pairs < 2:
        return Difference(pairs, mean, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN)
    deviation = float(differences.std(ddof=1)) if np.ptp(differences) else 0.0
    told = spread or Spread(deviation**2, pairs - 1)
    law = MeanError(rows.mean, 1 / pairs + overlap_ratio, told.variance, rows.between, told.freedom)
    if deviation == 0 and spread is None:
        law = MeanError(0.0, 1.0, max(rows.mean, _variance_of_equal_signs(mean, pairs)), 0.0, pairs - 1)
    return Difference(pairs, mean, mean, mean, deviation, law.p(mean), law.standard, law).at(confidence)


def _paired(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the differences of pairs without a NaN, all the same number where only rounding sets them apart."""
    values, reference = np.asarray(values, np.float64), np.asarray(reference, np.float64)
    both = np.isfinite(values) & np.isfinite(reference)
    differences: np.ndarray = (values - reference)[both]
    if not len(differences):
        return differences
    # Subtraction rounds, which leaves differences that are equal in truth apart by a few units in the last place.
    rounding = 4 * np.finfo(np.float64).eps * float(max(np.abs(values[both]).max(), np.abs(reference[both]).max()))
    if len(differences) > 1 and differences.std(ddof=1) <= rounding:
        mean = float(differences.mean())
        return np.full_like(differences, mean if abs(mean) > rounding else 0.0)
    return differences


def holm(p: np.ndarray) -> np.ndarray:
    """Return p-values corrected so that a single false alarm among all of them is as rare as promised (Holm's step-down).

    NaN stands for a comparison that could not be made: it stays NaN and does not count.

    Args:
        p: The p-values of all comparisons.

    Returns:
        The corrected ones, in the same order.

    >>> holm(np.array([0.01, 0.04, 0.03, np.nan]))
    array([0.03, 0.06, 0.06,  nan])
    """
    return _corrected(p, lambda ordered, n: np.maximum.accumulate(ordered * (n - np.arange(n))))


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Return p-values corrected so that false alarms are as rare among the alarms as promised (Benjamini and Hochberg).

    NaN stands for a comparison that could not be made: it stays NaN and does not count.

    Args:
        p: The p-values of all comparisons.

    Returns:
        The corrected ones, in the same order.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03, np.nan]))
    array([0.03, 0.04, 0.04,  nan])
    """
    return _corrected(p, lambda ordered, n: np.minimum.accumulate((ordered * n / np.arange(1, n + 1))[::-1])[::-1])


def by_holm(differences: Sequence[Difference], level: float = 0.05) -> list[Difference]:
    """Return differences with the intervals by which Holm's procedure decides, so that an interval says what its verdict says.

    Holm looks at the smallest of ``m`` p-values at ``level / m``, at the next at ``level / (m - 1)``, and so on to the first
    that is not small enough; it and all others are not told from 0. Every interval is the one of the level at which its
    difference was decided. It leaves out 0 where, and only where, the p-value corrected by :func:`holm` is below the level.

    Args:
        differences: All comparisons that are made together.
        level: How often one of them may be a false alarm, in (0, 1).

    Returns:
        The differences in the same order; those with fewer than two pairs as they are.

    >>> pair = [Difference(9, 1.0, 0, 0, 1.2, 0.0369, 0.4), Difference(9, 3.0, 0, 0, 1.2, 0.0001, 0.4)]
    >>> [round(one.low, 2) for one in by_holm(pair)]
    [0.08, 1.9]
    """
    p = np.array([one.p for one in differences])
    order = [index for index in np.argsort(p, kind="stable") if not np.isnan(p[index])]
    decided, rejects, at = list(differences), True, level
    for place, index in enumerate(order):
        at = level / (len(order) - place) if rejects else at
        rejects = rejects and bool(p[index] < at)
        decided[index] = differences[index].at(1 - at)
    return decided


def replicates_needed(
    difference: Difference,
    level: float = 0.05,
    power: float = 0.8,
    most: int = 1000,
    *,
    overlap_ratio: float = 0.0,
    rows: RowLuck = NO_LUCK,
) -> int | None:
    """Return how many replicates would show a difference of this size and spread, if it is real, with the given power.

    None where it cannot be told, or where even ``most`` would not do: with overlapping rows the error of the mean does not go
    to 0 however many replicates there are. Further replicates lessen the luck of rows until all have been tested once.

    Args:
        difference: What was found so far.
        level: The p-value that is to be reached.
        power: How often it is to be reached, in (0, 1).
        most: The number of replicates to give up at.
        overlap_ratio: As in :func:`paired_difference`.
        rows: As in :func:`paired_difference`.

    Returns:
        The number of replicates, at least 2.

    >>> found = Difference(pairs=5, mean=0.01, low=-0.002, high=0.022, spread=0.01, p=0.09)
    >>> replicates_needed(found), replicates_needed(found, overlap_ratio=0.05), replicates_needed(found, overlap_ratio=0.3)
    (10, 17, None)
    """
    if not difference.spread > 0 or difference.mean == 0:
        return None
    all_tested = 1 + 1 / overlap_ratio if overlap_ratio and not rows.shared else 0.0
    told = difference.law.freedom / (difference.pairs - 1) if difference.law else 1.0

    def shows(pairs: int) -> bool:
        known = rows.mean * difference.pairs / min(max(pairs, difference.pairs), max(all_tested, difference.pairs))
        law = MeanError(known, 1 / pairs + overlap_ratio, difference.spread**2, rows.between, told * (pairs - 1))
        threshold = law.half_width(1 - level) / law.standard
        return bool(stats.nct.sf(threshold, law.freedom, abs(difference.mean) / law.standard) >= power)

    needed = bisect_left(range(2, most + 1), x=True, key=shows) + 2  # power grows with the number of pairs
    return needed if needed <= most else None


def _variance_of_equal_signs(mean: float, pairs: int) -> float:
    """Return the squared error with which a t-test has the p-value of ``pairs`` equal signs, ``2^(1 - pairs)``."""
    return (mean / float(stats.t.isf(2.0**-pairs, pairs - 1))) ** 2


def _corrected(p: np.ndarray, correct: Callable[[np.ndarray, int], np.ndarray]) -> np.ndarray:
    p = np.asarray(p, np.float64)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    corrected = np.full(p.shape, np.nan)
    corrected[order] = np.minimum(correct(p[order], len(order)), 1.0)
    return corrected
