"""Weights of rows, sums of their powers and polynomials in them, walked over in blocks of rows that fit the cache."""

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lossmith.kernels.cpu.subsets.largest import largest_others
from lossmith.numerics.subsets.sums import Doubles

__all__ = [
    "MOST_SINGLE_POWERS",
    "SpreadRows",
    "TopAndRest",
    "doubles",
    "polynomials",
    "power_sums",
    "split_top",
    "spread_rows",
]

# Newton's identities and the polynomials in e_j lose up to k bits. Single precision can spare 4 of them for an error of 1e-5.
MOST_SINGLE_POWERS = 6
BLOCK_BYTES = 1 << 21
PROBED_ROWS = 8


class SpreadRows(NamedTuple):
    """Rows in which no small group of weights dominates."""

    largest: Doubles
    """The largest value, ``(N,)``."""
    weights: Tensor
    """``exp((value - largest) / scale)``, ``(N, C)``."""
    power_sums: Doubles
    """Sums of the first k powers of the weights, ``(k, N)``."""


class TopAndRest(NamedTuple):
    """Rows of which the k largest are split off."""

    top_index: Tensor
    """The k largest, ``(N, k)``."""
    top: Doubles
    """Their values, descending, ``(k, N)``."""
    weights: Tensor
    """``exp((value - top_k) / scale)`` of the rest, 0 for the top, ``(N, C)``."""
    power_sums: Doubles
    """Sums of the first k powers of the weights, ``(k, N)``."""


def spread_rows(values: Tensor, index: Tensor, k: int, scale: float) -> SpreadRows | None:
    """Return the rows without the value at ``index``, or None where a few weights of a row dominate."""
    if values.numel() == 0:
        return None
    enough = _enough(k)
    if values.shape[1] < enough or _polynomials_overflow(k, values.shape[1]):
        return None
    weights = torch.empty_like(values, dtype=_working_dtype(values, k))
    largest, sums = [], []
    # Rows tend to be alike: a few of many tell early whether it is worthwhile to look at all of them.
    probes = [slice(0, PROBED_ROWS)] if _walks_in_blocks(values) else []
    for rows in (*probes, *_blocks(weights)):
        others = weights[rows].copy_(values[rows]).scatter_(1, index[rows], -torch.inf)
        reference = others.amax(1, keepdim=True)
        block = _weights(others, reference, scale, others)
        first = block.sum(1)
        if not first.amin() >= enough:
            return None
        largest.append(doubles(reference[:, 0]))
        sums.append(power_sums(block, k, first))
    return SpreadRows(np.concatenate(largest[len(probes) :]), weights, np.concatenate(sums[len(probes) :], 1))


@cache
def _enough(k: int) -> float:
    """Return how many times the largest the weights of a row must sum to, to be treated alike.

    Newton's identities then lose a factor of at most ``prod_i (total + i) / (total - i)``, i < k, which is 5 for k = 6 and may be
    1e7 in double precision. No element is in more than half of the subsets, so the polynomials lose nothing.
    """
    total = 3.0 * k
    while sum(math.log((total + i) / (total - i)) for i in range(k)) > math.log(1e7):
        total *= 1.1
    return total


def _polynomials_overflow(k: int, size: int) -> bool:
    return k * math.log(size) > 600


def split_top(values: Tensor, index: Tensor, k: int, scale: float) -> TopAndRest:
    """Return the rows without the value at ``index``."""
    top, top_index = largest_others(values, index, k)
    weights = torch.empty_like(values, dtype=_working_dtype(values, k))
    parts = (values, index, top_index, top, weights)
    sums = [_rest(*(part[rows] for part in parts), scale=scale) for rows in _blocks(weights)]
    return TopAndRest(top_index, doubles(top.T), weights, np.concatenate(sums, 1))


def _rest(values: Tensor, index: Tensor, top_index: Tensor, top: Tensor, weights: Tensor, *, scale: float) -> Doubles:
    """Write the weights of the rest and return the sums of their powers."""
    _weights(values, top[:, -1:], scale, weights)
    # The weights of what is not in the rest may be infinite for a moment.
    weights.scatter_(1, index, 0.0).scatter_(1, top_index, 0.0)
    return power_sums(weights, top.shape[1], weights.sum(1))


def _weights(values: Tensor, reference: Tensor, scale: float, out: Tensor) -> Tensor:
    """The difference is exact where it matters; dividing values by a small scale first would magnify their rounding."""
    gaps = torch.sub(values.to(out.dtype), reference.to(out.dtype), out=out)
    # A power of 2 takes 0.4 times as long as the exponential function, and a thirtieth where results are subnormal numbers.
    return gaps.mul_(math.log2(math.e) / scale).exp2_()


def doubles(numbers: Tensor) -> Doubles:
    """Return a few numbers in double precision, as an array."""
    found: Doubles = numbers.numpy().astype(np.float64)
    return found


def power_sums(weights: Tensor, k: int, first: Tensor) -> Doubles:
    """Return the sums of the first k powers of weights ``(N, C)``, ``(k, N)``, given the first."""
    sums = [first]
    power = weights
    for degree in range(2, k + 1):
        power = power * weights if degree == 2 else power.mul_(weights)
        sums.append(power.sum(1))
    return doubles(torch.stack(sums))


def polynomials(weights: Tensor, coefficients: Doubles, dtype: torch.dtype) -> Tensor:
    """Return ``sum_m c_m e**m``, m = 1 .. k, of each weight, in its place where it can, for coefficients ``(k, N)``."""
    columns = torch.from_numpy(coefficients).to(weights.dtype).unsqueeze(2)
    result = weights if weights.dtype == dtype else torch.empty_like(weights, dtype=dtype)
    for rows in _blocks(weights):
        _polynomial(weights[rows], columns[:, rows], out=result[rows])
    return result


def _polynomial(weights: Tensor, columns: Tensor, out: Tensor) -> Tensor:
    *lower, factor = columns.unbind(0)
    if not lower:
        return torch.mul(weights, factor, out=out)
    # One operation for a product and a sum takes less time than two, unless two of its arguments are columns.
    value = (weights * factor).add_(lower.pop())
    for coefficient in reversed(lower):
        torch.addcmul(coefficient, value, weights, out=value)
    return torch.mul(value, weights, out=out)


def _working_dtype(values: Tensor, k: int) -> torch.dtype:
    return values.dtype if k <= MOST_SINGLE_POWERS else torch.float64


def _walks_in_blocks(values: Tensor) -> bool:
    return values.numel() * values.element_size() > BLOCK_BYTES


def _blocks(weights: Tensor) -> Iterator[slice]:
    """Return blocks of rows, at least one."""
    rows = max(1, BLOCK_BYTES // (weights.shape[1] * weights.element_size()))
    return (slice(start, start + rows) for start in range(0, max(1, weights.shape[0]), rows))
