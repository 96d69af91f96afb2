"""The smooth k-th largest value of a row, and its gradient.

``scale (log sigma_k - log sigma_(k-1))`` of the weights ``exp(value / scale)`` tends to the k-th largest value when the scale
tends to 0. Its gradient is ``pi_k - pi_(k-1)``, the probabilities of an element to be in a random subset of k or of k - 1.
"""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lossmith.kernels.cpu.subsets.largest import largest_others
from lossmith.kernels.cpu.subsets.weight_powers import (
    MOST_SINGLE_POWERS,
    SpreadRows,
    doubles,
    polynomials,
    split_top,
    spread_rows,
)
from lossmith.numerics.subsets.frequencies import NEGLIGIBLE, SubsetSizes
from lossmith.numerics.subsets.marginals import MOST_POWER_SUMS
from lossmith.numerics.subsets.sums import Doubles, rest_polynomials, subset_sums, with_alternating_signs

__all__ = ["KthByFrequencies", "KthByPowerSums", "KthOfSpreadRows", "SmoothKth", "smooth_kth_without"]


class SmoothKth(Protocol):
    """The smooth k-th largest value is ``reference + scale * excess``."""

    reference: Doubles
    """One of the values, ``(N,)``; kept apart because a small scale magnifies its rounding."""
    excess: Doubles
    """``(N,)``."""

    def gradient(self, factor: Doubles) -> Tensor:
        """Return ``factor (N,)`` times the gradient, ``(N, C)``; to be called once."""
        ...


def smooth_kth_without(values: Tensor, index: Tensor, k: int, scale: float) -> SmoothKth:
    """Return the smooth k-th largest of the values ``(N, C)`` other than the one at ``index (N, 1)``."""
    # For few, splitting them off costs no more than finding out whether that is necessary.
    rows = spread_rows(values, index, k, scale) if k > MOST_SINGLE_POWERS else None
    if rows is not None:
        return KthOfSpreadRows(rows, values.dtype)
    return (KthByPowerSums if k <= MOST_POWER_SUMS else KthByFrequencies)(values, index, k, scale)


class KthOfSpreadRows:
    """The smooth k-th largest where no small group of weights dominates: all of a row can be treated alike."""

    def __init__(self, rows: SpreadRows, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._weights = rows.weights
        polynomials = rest_polynomials(rows.power_sums)
        self._totals = np.concatenate([polynomials[::-1], np.zeros_like(polynomials[:1])])
        self.reference = rows.largest
        self.excess = np.log(self._totals[0] / self._totals[1])

    def gradient(self, factor: Doubles) -> Tensor:
        """Return ``factor`` times the gradient."""
        return polynomials(self._weights, _coefficients(self._totals, *(factor / self._totals[:2])), self._dtype)


class KthByPowerSums:
    """The smooth k-th largest for small k and any weights, see :mod:`lossmith.numerics.subsets.sums`."""

    def __init__(self, values: Tensor, index: Tensor, k: int, scale: float) -> None:
        self._dtype = values.dtype
        self._top_index, top, self._weights, power_sums = split_top(values, index, k, scale)
        self.reference = top[-1]
        self._holes = np.exp((self.reference - top) / scale)
        self._sums = subset_sums(self._holes, rest_polynomials(power_sums))
        self.excess = np.log(self._sums.totals[0] / self._sums.totals[1])

    def gradient(self, factor: Doubles) -> Tensor:
        """Return ``factor`` times the gradient; the k largest lose what they are more often absent from k - 1 than from k."""
        totals, present, absent = self._sums
        first, second = factor / totals[:2]
        gradient = polynomials(self._weights, _coefficients(totals, first, second), self._dtype)
        top_gradient = torch.from_numpy(self._holes * (present * second - absent * first))
        return gradient.scatter_(1, self._top_index, top_gradient.T.to(self._dtype))


class KthByFrequencies:
    """The smooth k-th largest of the values ``(N, C)`` other than the one at ``index``, for large k."""

    def __init__(self, values: Tensor, index: Tensor, k: int, scale: float) -> None:
        self._dtype = values.dtype
        kth = largest_others(values, index, k)[0][:, -1:].double()
        self.reference = doubles(kth[:, 0])
        log_weights = (values.scatter(1, index, -torch.inf).double() - kth) / scale
        sizes = SubsetSizes(log_weights, k - 0.5, NEGLIGIBLE[values.dtype])
        self._sizes = sizes
        # Where only k - 1 of the values are possible, rounding can leave the probability of k a little below 0.
        self._likely = sizes.probability(k).clamp_(min=torch.finfo(torch.float64).tiny)
        self._less = sizes.probability(k - 1)
        self._k = k
        self.excess = doubles((sizes.tilt + (self._likely / self._less).log())[:, 0])

    def gradient(self, factor: Doubles) -> Tensor:
        """Return ``factor`` times the difference of the probabilities to be in a subset of k and of k - 1 elements."""
        column = torch.from_numpy(factor).unsqueeze(1)
        weights = {self._k - 1: column / self._likely, self._k - 2: -column / self._less}
        return (self._sizes.chosen * self._sizes.probability_without_each(weights)).to(self._dtype)


def _coefficients(totals: Doubles, first: Doubles, second: Doubles) -> Doubles:
    """``A_d = A_d(without j) + e_j A_(d+1)(without j)`` makes the probability of j a polynomial in ``e_j``."""
    return with_alternating_signs(totals[1:-1] * first - totals[2:] * second)
