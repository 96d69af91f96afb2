"""How far a mean difference may be from the truth, where one part of its variance is known well and another from few replicates.

The luck of test rows is told by hundreds of rows. What differs between replicates beyond that, the luck of training and tuning,
is told by a handful of replicates, and may be larger than it looks. The mean difference is then normal with a variance that is
itself uncertain; where nothing but replicates tells it, this is Student's t. For variances made of parts it is the generalised
p-value of Tsui and Weerahandi (1989).
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt

import numpy as np
from scipy import optimize, special, stats

__all__ = ["MeanError"]

_POINTS = 301
_RANGE = 1e-12  # the probability that is left out at either end of the distribution of a variance


@dataclass(frozen=True)
class MeanError:
    """The distribution of a mean difference around the truth, with variance ``known + factor * max(0, s^2 - explained)``.

    ``s^2``, the variance between replicates, was estimated as ``variance`` with so many degrees of ``freedom``.

    >>> error = MeanError(known=0.0, factor=1 / 5, variance=0.05, explained=0.0, freedom=4)
    >>> error.standard, round(error.p(0.2777), 4), round(error.half_width(0.95), 4)
    (0.1, 0.05, 0.2776)
    """

    known: float
    """Variance that many rows tell."""
    factor: float
    """How much of what is left of the variance between replicates is in their mean."""
    variance: float
    explained: float
    """The part of the variance between replicates that is known already, since it is that of their test rows."""
    freedom: float

    @property
    def standard(self) -> float:
        """The standard error, with the variance as it was estimated."""
        return sqrt(self.known + self.factor * max(0.0, self.variance - self.explained))

    @property
    def deviation(self) -> float:
        """The standard deviation, which is wider: the variance may be larger than it looks; infinite where too few tell it."""
        if self.freedom <= 2:
            return inf if self.variance > 0 else sqrt(self.known)
        if self._is_t:
            return self.standard * sqrt(self.freedom / (self.freedom - 2))
        chances, variances = self._variances
        return sqrt(float(chances @ variances))

    def p(self, mean: float) -> float:
        """Return how often chance alone gives a mean difference as large, in either direction.

        Args:
            mean: The difference.

        Returns:
            A probability; 1 where the difference is 0.
        """
        if mean == 0:
            return 1.0
        if self._is_t:
            return 2 * float(stats.t.sf(abs(mean) / self.standard, self.freedom)) if self.standard > 0 else 0.0
        chances, variances = self._variances
        return float(2 * chances @ special.ndtr(-abs(mean) / np.sqrt(variances)))

    def half_width(self, confidence: float) -> float:
        """Return half the width of the interval of a confidence: it reaches to 0 from where the p-value is ``1 - confidence``.

        Args:
            confidence: In (0, 1).

        Returns:
            A distance from the mean.
        """
        if self._is_t:
            return float(stats.t.ppf((1 + confidence) / 2, self.freedom)) * self.standard
        widest = stats.t.ppf((1 + confidence) / 2, min(self.freedom, 1)) * sqrt(self.known + self.factor * self.variance) + 1e-300
        return float(optimize.brentq(lambda half: self.p(half) - (1 - confidence), 0.0, 10 * widest, xtol=1e-300, rtol=1e-12))

    @property
    def _is_t(self) -> bool:
        return self.known == 0 and self.explained == 0

    @cached_property
    def _variances(self) -> tuple[np.ndarray, np.ndarray]:
        """The variances that the mean may have, with their chances."""
        # Even steps of the logarithm of a chi-square variable: what is summed is smooth there, and falls off at both ends.
        lowest, highest = (float(np.log(stats.chi2.ppf(chance, self.freedom))) for chance in (_RANGE, 1 - _RANGE))
        logarithms = np.linspace(lowest, highest, _POINTS)
        chances = np.exp(stats.chi2.logpdf(np.exp(logarithms), self.freedom) + logarithms)
        between = self.freedom * self.variance / np.exp(logarithms)
        return chances / chances.sum(), self.known + self.factor * np.maximum(0.0, between - self.explained)
