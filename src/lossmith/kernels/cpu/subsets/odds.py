"""Log-odds of every class to be absent from a random k-element subset, and their derivatives: the few numbers of a row.

A row is its k largest values, the *rest*, and a reference that the weights ``exp((value - reference) / scale)`` of the rest are
measured from. The log-odds of one of the rest, whose weight is w, are ``log(absent / present) - (value - k-th) / scale``, where
``present = sum_i a_i w**i`` and ``absent = A_0 - q w present``.
"""

from itertools import accumulate
from typing import NamedTuple

import numpy as np

from lossmith.numerics.subsets.sums import (
    Doubles,
    holes_of_others,
    powers_of_step,
    rest_polynomials,
    with_alternating_signs,
    with_holes,
)

__all__ = ["OddsOfRows", "Slopes"]


class Slopes(NamedTuple):
    """Derivatives of some function of the log-odds."""

    total: Doubles
    """With respect to ``A_0``, ``(N,)``."""
    coefficients: Doubles
    """With respect to a, ``(k, N)``."""
    ratio: Doubles
    """With respect to q, ``(N,)``."""
    top: Doubles
    """With respect to the log-odds of the k largest, ``(k, N)``."""
    kth: Doubles
    """With respect to the k-th largest value, ``(N,)``."""


class OddsOfRows:
    """The numbers of rows with the k largest values ``top (k, N)``, and sums of powers of the weights of the rest, ``(k, N)``."""

    def __init__(self, top: Doubles, reference: Doubles, power_sums: Doubles, scale: float) -> None:
        self._scale = scale
        self._steps = powers_of_step((reference - top[-1]) / scale, len(top))
        self._rest = rest_polynomials(power_sums)
        self._holes = np.exp((top[-1] - top) / scale)
        self._others = holes_of_others(self._holes)
        self._totals = with_holes(self._all_degrees(), self._holes)
        self._present = with_holes(self._degrees_of_present(), self._others)[0]
        # Nothing is absent where no more than k elements are possible.
        self._absent = np.maximum(with_holes(self._degrees_of_absent(), self._others)[0], np.finfo(np.float64).tiny)
        self.total = self._totals[0]
        self.coefficients = with_alternating_signs(self._totals[1:-1]) * self._steps[:-1]
        self.ratio = self._steps[1]
        self.of_top = (reference - top) / scale + np.log(self._absent / self._present)

    def _all_degrees(self) -> Doubles:
        descending = (self._rest * self._steps)[::-1]
        return np.concatenate([descending, np.zeros_like(descending)])

    def _degrees_of_present(self) -> Doubles:
        degrees: Doubles = (self._rest * self._steps)[-2::-1, None]
        return degrees

    def _degrees_of_absent(self) -> Doubles:
        """A power of q less: the log-odds are measured from the reference, so that they cannot underflow."""
        degrees: Doubles = (self._rest[1:] * self._steps[:-1])[::-1, None]
        return degrees

    def slopes(self, slopes: Slopes) -> tuple[Doubles, Doubles]:
        """Return the derivatives with respect to the k largest values and to the power sums, each ``(k, N)``."""
        k = len(self._holes)
        of_steps = np.zeros_like(self._steps)
        of_steps[:-1] = slopes.coefficients * with_alternating_signs(self._totals[1:-1])
        of_steps[1] += slopes.ratio
        of_totals = np.zeros_like(self._totals)
        of_totals[0], of_totals[1:-1] = slopes.total, with_alternating_signs(slopes.coefficients * self._steps[:-1])

        of_all, of_holes = _slopes_with_holes(self._all_degrees(), self._holes, of_totals)
        of_present, first = _slopes_with_holes(self._degrees_of_present(), self._others, -(slopes.top / self._present)[None])
        of_absent, second = _slopes_with_holes(self._degrees_of_absent(), self._others, (slopes.top / self._absent)[None])
        of_holes += _slopes_of_holes(first + second)
        # What is multiplied by steps: all polynomials for the totals and but the last for presence, and all but the first.
        of_scaled = of_all[k::-1]
        of_scaled[:-1] += of_present[::-1].sum(1)
        of_shifted = of_absent[::-1].sum(1)
        of_steps += of_scaled * self._rest
        of_steps[:-1] += of_shifted * self._rest[1:]
        of_rest = of_scaled * self._steps
        of_rest[1:] += of_shifted * self._steps[:-1]

        of_gaps = of_holes * self._holes / self._scale
        of_step = (np.arange(k + 1.0)[:, None] * of_steps * self._steps).sum(0) / self._scale
        of_top = -slopes.top / self._scale - of_gaps
        of_top[-1] += of_gaps.sum(0) - of_step + slopes.kth
        return of_top, _slopes_of_power_sums(self._rest, of_rest)


def _slopes_with_holes(sums: Doubles, holes: Doubles, slopes: Doubles) -> tuple[Doubles, Doubles]:
    """Return the derivatives of ``with_holes`` with respect to both of its arguments, given those with respect to its result."""
    before = list(accumulate(holes, lambda found, hole: with_holes(found, hole[None]), initial=sums))
    of_holes = np.zeros_like(holes)
    for i in reversed(range(len(holes))):
        of_holes[i] = (slopes * before[i][:-1]).sum(0)
        grown = np.zeros((len(slopes) + 1, *slopes.shape[1:]))
        grown[1:] = slopes
        grown[:-1] += holes[i] * slopes
        slopes = grown
    return slopes, of_holes


def _slopes_of_holes(of_others: Doubles) -> Doubles:
    """Return the derivatives with respect to holes, given those with respect to the holes without each of them."""
    fewer, k, rows = of_others.shape
    of_holes = np.zeros((k, rows))
    is_later = np.tril(np.ones((fewer, k)))[:, :, None]
    of_holes[1:] += (is_later * of_others).sum(1)
    of_holes[:-1] += ((1 - is_later) * of_others).sum(1)
    return of_holes


def _slopes_of_power_sums(polynomials: Doubles, slopes: Doubles) -> Doubles:
    """The derivative of ``sigma_m`` with respect to ``p_i`` is ``(-1)**(i-1) sigma_(m-i) / i``."""
    k = len(polynomials) - 1
    found = [(slopes[i:] * polynomials[: k + 1 - i]).sum(0) / i for i in range(1, k + 1)]
    return with_alternating_signs(np.stack(found))
