"""Weights of rows, sums of their powers and polynomials in them, walked over in blocks of rows that fit the cache."""

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from lossmith.numerics.precision import in_double

__all__ = ["SpreadRows", "TopAndRest", "polynomials", "power_sums", "split_top", "spread_rows"]

# Newton's identities and the polynomials in e_j lose up to k bits. Single precision can spare 4 of them for an error of 1e-5.
MOST_SINGLE_POWERS = 6
BLOCK_BYTES = 1 << 21
PROBED_ROWS = 8


class SpreadRows(NamedTuple):
    """Rows in which no small group of weights dominates."""

    largest: Tensor
    """The largest value, in double precision, ``(N, 1)``."""
    weights: Tensor
    """``exp((value - largest) / scale)``, ``(N, C)``."""
    power_sums: Tensor
    """Sums of the first k powers of the weights, in double precision, ``(N, k)``."""


class TopAndRest(NamedTuple):
    """Rows of which the k largest are split off."""

    top_index: Tensor
    """The k largest, ``(N, k)``."""
    top: Tensor
    """Their values in double precision, descending."""
    weights: Tensor
    """``exp((value - top_k) / scale)`` of the rest, 0 for the top, ``(N, C)``."""
    power_sums: Tensor
    """Sums of the first k powers of the weights, in double precision, ``(N, k)``."""


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
        block = _weights(others, reference, scale, out=others)
        first = block.sum(1)
        if not first.amin() >= enough:
            return None
        largest.append(reference)
        sums.append(power_sums(block, k, first))
    return SpreadRows(in_double(torch.cat(largest[len(probes) :])), weights, torch.cat(sums[len(probes) :]))


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
    if not _walks_in_blocks(values):
        return _split_top(values, index, k, scale)
    weights = torch.empty_like(values, dtype=_working_dtype(values, k))
    blocks = [_split_top(values[rows], index[rows], k, scale, out=weights[rows]) for rows in _blocks(weights)]
    top_index, top, power_sums = (torch.cat(parts) for parts in zip(*((a, b, d) for a, b, _, d in blocks), strict=True))
    return TopAndRest(top_index, top, weights, power_sums)


def _split_top(values: Tensor, index: Tensor, k: int, scale: float, *, out: Tensor | None = None) -> TopAndRest:
    others = values.scatter(1, index, -torch.inf)
    top, top_index = others.topk(k, 1)
    # Where fewer than k values are finite, the k-th is as low as a number can be.
    top = top.clamp(min=torch.finfo(top.dtype).min)
    rest = others.scatter_(1, top_index, -torch.inf)
    weights = _weights(rest.to(_working_dtype(values, k)), top[:, -1:], scale, out=out)
    return TopAndRest(top_index, in_double(top), weights, power_sums(weights, k, weights.sum(1)))


def _weights(values: Tensor, reference: Tensor, scale: float, *, out: Tensor | None = None) -> Tensor:
    """The difference is exact where it matters; dividing values by a small scale first would magnify their rounding."""
    gaps = torch.sub(values, reference.to(values.dtype), out=out)
    return gaps.mul_(1 / scale).exp_()


def power_sums(weights: Tensor, k: int, first: Tensor) -> Tensor:
    """Return the sums of the first k powers of weights ``(N, C)`` in double precision, ``(N, k)``, given the first."""
    sums = [first]
    power = weights
    for degree in range(2, k + 1):
        power = power * weights if degree == 2 else power.mul_(weights)
        sums.append(power.sum(1))
    return in_double(torch.stack(sums, 1))


def polynomials(weights: Tensor, coefficients: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``sum_m c_m e**m``, m = 1 .. k, of each weight, in the place of the weights where it can."""
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
        value.add_(coefficient).mul_(weights)
    return torch.mul(value.add_(lower[0]), weights, out=out)


def _working_dtype(values: Tensor, k: int) -> torch.dtype:
    return values.dtype if k <= MOST_SINGLE_POWERS else in_double(values[:0]).dtype


def _walks_in_blocks(values: Tensor) -> bool:
    return values.numel() * values.element_size() > BLOCK_BYTES


def _blocks(weights: Tensor) -> Iterator[slice]:
    rows = max(1, BLOCK_BYTES // (weights.shape[1] * weights.element_size()))
    return (slice(start, start + rows) for start in range(0, weights.shape[0], rows))
