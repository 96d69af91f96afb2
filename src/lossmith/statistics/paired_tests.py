"""Differences between two losses that were run with the same seeds, and corrections for looking at many of them."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import stats

__all__ = ["Difference", "benjamini_hochberg", "holm", "paired_difference", "seeds_needed"]

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


def paired_difference(values: np.ndarray, reference: np.ndarray, confidence: float = 0.95) -> Difference:
    """Return the difference ``values - reference`` of paired runs, by the paired t-test and its interval.

    Pairs with a NaN are left out. Where all differences are the same number there is no spread to compare with: the t-test would
    call any such difference certain, even from two seeds. All that the data can say is that all ``n`` signs agree, which
    chance gives with probability ``2^(1-n)``; where all differences are zero, ``p`` is 1.

    Args:
        values: A number for each seed, NaN where there is none.
        reference: The same of what is compared with, in the same order.
        confidence: That of the interval, in (0, 1).

    Returns:
        Mean, interval, spread and p-value.

    >>> difference = paired_difference(np.array([0.91, 0.90, 0.93]), np.array([0.88, 0.89, 0.90]))
    >>> print(f"{difference.mean:.4f} from {difference.low:.4f} to {difference.high:.4f}, p = {difference.p:.3f}")
    0.0233 from -0.0054 to 0.0520, p = 0.073
    >>> paired_difference(np.array([0.9]), np.array([0.8])).p
    nan
    """
    values, reference = np.asarray(values, np.float64), np.asarray(reference, np.float64)
    both = np.isfinite(values) & np.isfinite(reference)
    differences = (values - reference)[both]
    pairs = len(differences)
    mean = float(differences.mean()) if pairs else _UNKNOWN
    if pairs < 2:
        return Difference(pairs, mean, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN)
    spread = float(differences.std(ddof=1))
    # Subtraction rounds, which leaves differences that are equal in truth apart by a few units in the last place.
    rounding = 4 * np.finfo(np.float64).eps * float(max(np.abs(values[both]).max(), np.abs(reference[both]).max()))
    if spread <= rounding:
        return Difference(pairs, mean, mean, mean, 0.0, 1.0 if abs(mean) <= rounding else 2.0 ** (1 - pairs))
    error = spread / sqrt(pairs)
    half = float(stats.t.ppf((1 + confidence) / 2, pairs - 1)) * error
    return Difference(pairs, mean, mean - half, mean + half, spread, 2 * float(stats.t.sf(abs(mean) / error, pairs - 1)))


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


def seeds_needed(difference: Difference, level: float = 0.05, power: float = 0.8, most: int = 1000) -> int | None:
    """Return how many pairs would show a difference of this size and spread, if it is real, with the given power.

    None where it cannot be told, or where even ``most`` pairs would not do.

    Args:
        difference: What was found so far.
        level: The p-value that is to be reached.
        power: How often it is to be reached, in (0, 1).
        most: The number of pairs to give up at.

    Returns:
        The number of pairs, at least 2.

    >>> seeds_needed(Difference(pairs=5, mean=0.01, low=-0.002, high=0.022, spread=0.01, p=0.09))
    10
    """
    if not difference.spread > 0 or difference.mean == 0:
        return None
    effect = abs(difference.mean) / difference.spread

    def shows(pairs: int) -> bool:
        threshold = stats.t.ppf(1 - level / 2, pairs - 1)
        return bool(stats.nct.sf(threshold, pairs - 1, effect * sqrt(pairs)) >= power)

    needed = bisect_left(range(2, most + 1), x=True, key=shows) + 2  # power grows with the number of pairs
    return needed if needed <= most else None


def _corrected(p: np.ndarray, correct: Callable[[np.ndarray, int], np.ndarray]) -> np.ndarray:
    p = np.asarray(p, np.float64)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    corrected = np.full(p.shape, np.nan)
    corrected[order] = np.minimum(correct(p[order], len(order)), 1.0)
    return corrected
