"""The smooth k-th largest value of a row, and its gradient.

``scale (log sigma_k - log sigma_(k-1))`` of the weights ``exp(value / scale)`` tends to the k-th largest value when the scale
tends to 0. Its gradient is ``pi_k - pi_(k-1)``, the probabilities of an element to be in a random subset of k or of k - 1.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lossmith.numerics.precision import in_double
from lossmith.numerics.softmax import overwrite
from lossmith.numerics.subset_frequencies import KthByFrequencies
from lossmith.numerics.subsets import alternating_signs, rest_polynomials, subset_sums

__all__ = ["MOST_POWER_SUMS", "KthByPowerSums", "SmoothKth", "power_sums", "smooth_kth_without"]

# Newton's identities and the polynomials in e_j lose up to k bits. Single precision can spare 4 of them for an error of 1e-5;
# above the second limit double precision would give less than a user of double precision expects.
MOST_SINGLE_POWER_SUMS = 6
MOST_POWER_SUMS = 24
# Rows are walked over in blocks of about this many elements, which fit the cache three times.
BLOCK_ELEMENTS = 1 << 18


class SmoothKth(Protocol):
    """The smooth k-th largest value is ``reference + scale * excess``."""

    reference: Tensor
    """The k-th largest value in double precision, ``(N, 1)``; kept apart because a small scale magnifies its rounding."""
    excess: Tensor
    """``(N, 1)``, in double precision."""

    def gradient(self, factor: Tensor) -> Tensor:
        """Return ``factor (N, 1)`` times the gradient, ``(N, C)``; to be called once."""
        ...


def smooth_kth_without(values: Tensor, index: Tensor, k: int, scale: float) -> SmoothKth:
    """Return the smooth k-th largest of the values ``(N, C)`` other than the one at ``index (N, 1)``."""
    return (KthByPowerSums if k <= MOST_POWER_SUMS else KthByFrequencies)(values, index, k, scale)


class KthByPowerSums:
    """The smooth k-th largest for small k, see :mod:`lossmith.numerics.subsets`.

    Row blocks small enough for the cache are walked over twice; between the walks a few numbers are computed for all rows.
    """

    def __init__(self, values: Tensor, index: Tensor, k: int, scale: float) -> None:
        self._dtype = values.dtype
        self._top_index, top, self._weights, power_sums = _split_rows(values, index, k, scale)
        self.reference = top[:, -1:]
        self._gaps = (top - self.reference) / scale
        self._sums = subset_sums(self._gaps, rest_polynomials(power_sums))
        self._ends = self._sums.totals[:, :1], self._sums.totals[:, 1:2]
        self.excess = (self._ends[0] / self._ends[1]).log()

    def gradient(self, factor: Tensor) -> Tensor:
        """Return ``factor`` times the gradient, in the place of the weights where it can."""
        totals, present, absent = self._sums
        first, second = factor / self._ends[0], factor / self._ends[1]
        coefficients = alternating_signs(present) * (totals[:, 1:-1] * first - totals[:, 2:] * second)
        gradient = _polynomials(self._weights, coefficients, self._dtype)
        top_gradient = (-self._gaps).exp() * (present * second - absent * first)
        return overwrite(gradient, self._top_index, top_gradient.to(self._dtype))


class _Split(NamedTuple):
    top_index: Tensor
    """The k largest, ``(N, k)``."""
    top: Tensor
    """Their values in double precision, descending."""
    weights: Tensor
    """``exp((value - top_k) / scale)`` of the others, 0 for the top, ``(N, C)``."""
    power_sums: Tensor
    """Sums of the first k powers of the weights, in double precision, ``(N, k)``."""


def _split_rows(values: Tensor, index: Tensor, k: int, scale: float) -> _Split:
    dtype = torch.float32 if values.dtype == torch.float32 and k <= MOST_SINGLE_POWER_SUMS else torch.float64
    if not _walks_in_blocks(values):
        return _split(values, index, k, scale, dtype)
    weights = torch.empty_like(values, dtype=dtype)
    blocks = [_split(values[rows], index[rows], k, scale, dtype, out=weights[rows]) for rows in _blocks(values)]
    top_index, top, power_sums = (torch.cat(parts) for parts in zip(*((a, b, d) for a, b, _, d in blocks), strict=True))
    return _Split(top_index, top, weights, power_sums)


def _split(values: Tensor, index: Tensor, k: int, scale: float, dtype: torch.dtype, out: Tensor | None = None) -> _Split:
    others = values.scatter(1, index, -torch.inf)
    top, top_index = others.topk(k, 1)
    # Where fewer than k values are finite, the k-th is as low as a number can be.
    top = top.clamp(min=torch.finfo(top.dtype).min)
    # The difference is exact where it matters. Dividing the values by a small scale first would magnify their rounding.
    gaps = torch.sub(others.to(dtype), top[:, -1:].to(dtype), out=out)
    weights = _in_place(overwrite(_in_place(gaps, "mul", 1 / scale), top_index, -torch.inf), "exp")
    return _Split(top_index, in_double(top), weights, power_sums(weights, k))


def power_sums(weights: Tensor, k: int) -> Tensor:
    """Return the sums of the first k powers of the weights ``(N, C)``, in double precision ``(N, k)``."""
    sums = [weights.sum(1)]
    power = weights
    for degree in range(2, k + 1):
        power = power * weights if degree == 2 else _in_place(power, "mul", weights)
        sums.append(power.sum(1))
    return in_double(torch.stack(sums, 1))


def _polynomials(weights: Tensor, coefficients: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``sum_m c_m e**m``, m = 1 .. k, of each weight, in a given precision."""
    coefficients = coefficients.to(weights.dtype)
    if not _walks_in_blocks(weights):
        return _polynomial(weights, coefficients).to(dtype)
    result = weights if weights.dtype == dtype else torch.empty_like(weights, dtype=dtype)
    for rows in _blocks(weights):
        _polynomial(weights[rows], coefficients[rows], out=result[rows])
    return result


def _polynomial(weights: Tensor, coefficients: Tensor, out: Tensor | None = None) -> Tensor:
    *lower, factor = coefficients.unsqueeze(2).unbind(1)
    if not lower:
        return torch.mul(weights, factor, out=out)
    value = weights * factor
    for coefficient in reversed(lower[1:]):
        value = _in_place(_in_place(value, "add", coefficient), "mul", weights)
    return torch.mul(_in_place(value, "add", lower[0]), weights, out=out)


def _in_place(tensor: Tensor, name: str, *arguments: Tensor | float) -> Tensor:
    """Apply an operation to a temporary, in place where no gradient is recorded."""
    method = getattr(tensor, name if torch.is_grad_enabled() else f"{name}_")
    result: Tensor = method(*arguments)
    return result


def _walks_in_blocks(values: Tensor) -> bool:
    plain = values.device.type != "cpu" or torch.compiler.is_compiling() or torch.is_grad_enabled()
    return not plain and values.numel() > BLOCK_ELEMENTS


def _blocks(values: Tensor) -> Iterator[slice]:
    rows = max(1, BLOCK_ELEMENTS // values.shape[1])
    return (slice(start, start + rows) for start in range(0, values.shape[0], rows))
