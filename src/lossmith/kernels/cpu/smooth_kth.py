"""The smooth k-th largest value of a row, and its gradient.

``scale (log sigma_k - log sigma_(k-1))`` of the weights ``exp(value / scale)`` tends to the k-th largest value when the scale
tends to 0. Its gradient is ``pi_k - pi_(k-1)``, the probabilities of an element to be in a random subset of k or of k - 1.
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from lossmith.kernels.cpu.weight_powers import SpreadRows, polynomials, split_top, spread_rows
from lossmith.numerics.precision import in_double
from lossmith.numerics.subsets.frequencies import NEGLIGIBLE, SubsetSizes
from lossmith.numerics.subsets.marginals import MOST_POWER_SUMS
from lossmith.numerics.subsets.sums import alternating_signs, rest_polynomials, subset_sums

__all__ = ["KthByFrequencies", "KthByPowerSums", "KthOfSpreadRows", "SmoothKth", "smooth_kth_without"]


class SmoothKth(Protocol):
    """The smooth k-th largest value is ``reference + scale * excess``."""

    reference: Tensor
    """One of the values in double precision, ``(N, 1)``; kept apart because a small scale magnifies its rounding."""
    excess: Tensor
    """``(N, 1)``, in double precision."""

    def gradient(self, factor: Tensor) -> Tensor:
        """Return ``factor (N, 1)`` times the gradient, ``(N, C)``; to be called once."""
        ...


def smooth_kth_without(values: Tensor, index: Tensor, k: int, scale: float) -> SmoothKth:
    """Return the smooth k-th largest of the values ``(N, C)`` other than the one at ``index (N, 1)``."""
    rows = spread_rows(values, index, k, scale)
    if rows is not None:
        return KthOfSpreadRows(rows, values.dtype)
    return (KthByPowerSums if k <= MOST_POWER_SUMS else KthByFrequencies)(values, index, k, scale)


class KthOfSpreadRows:
    """The smooth k-th largest for small k, where no small group of weights dominates: all of a row can be treated alike."""

    def __init__(self, rows: SpreadRows, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._weights = rows.weights
        self._totals = F.pad(rest_polynomials(rows.power_sums).flip(1), (0, 1))
        self.reference = rows.largest
        self.excess = (self._totals[:, :1] / self._totals[:, 1:2]).log()

    def gradient(self, factor: Tensor) -> Tensor:
        """Return ``factor`` times the gradient."""
        first, second = factor / self._totals[:, :1], factor / self._totals[:, 1:2]
        return polynomials(self._weights, _coefficients(self._totals, first, second), self._dtype)


class KthByPowerSums:
    """The smooth k-th largest for small k and any weights, see :mod:`lossmith.numerics.subsets.sums`."""

    def __init__(self, values: Tensor, index: Tensor, k: int, scale: float) -> None:
        self._dtype = values.dtype
        self._top_index, top, self._weights, power_sums = split_top(values, index, k, scale)
        self.reference = top[:, -1:]
        self._gaps = (top - self.reference) / scale
        self._sums = subset_sums(self._gaps, rest_polynomials(power_sums))
        self.excess = (self._sums.totals[:, :1] / self._sums.totals[:, 1:2]).log()

    def gradient(self, factor: Tensor) -> Tensor:
        """Return ``factor`` times the gradient; the k largest lose what they are more often absent from k - 1 than from k."""
        totals, present, absent = self._sums
        first, second = factor / totals[:, :1], factor / totals[:, 1:2]
        gradient = polynomials(self._weights, _coefficients(totals, first, second), self._dtype)
        top_gradient = (-self._gaps).exp() * (present * second - absent * first)
        return gradient.scatter_(1, self._top_index, top_gradient.to(self._dtype))


class KthByFrequencies:
    """The smooth k-th largest of the values ``(N, C)`` other than the one at ``index``, for large k."""

    def __init__(self, values: Tensor, index: Tensor, k: int, scale: float) -> None:
        self._dtype = values.dtype
        others = values.scatter(1, index, -torch.inf)
        kth = others.detach().topk(k, 1).values[:, -1:]
        self.reference = in_double(kth.clamp(min=torch.finfo(kth.dtype).min))
        sizes = SubsetSizes((in_double(others) - self.reference) / scale, k - 0.5, NEGLIGIBLE[values.dtype])
        self._sizes = sizes
        self._likely, self._less = sizes.probability(k), sizes.probability(k - 1)
        self._k = k
        self.excess = sizes.tilt + (self._likely / self._less).log()

    def gradient(self, factor: Tensor) -> Tensor:
        """Return ``factor`` times the difference of the probabilities to be in a subset of k and of k - 1 elements."""
        weights = {self._k - 1: factor / self._likely, self._k - 2: -factor / self._less}
        return (self._sizes.chosen * self._sizes.probability_without_each(weights)).to(self._dtype)


def _coefficients(totals: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """``A_d = A_d(without j) + e_j A_(d+1)(without j)`` makes the probability of j a polynomial in ``e_j``."""
    return alternating_signs(totals[:, 2:]) * (totals[:, 1:-1] * first - totals[:, 2:] * second)
