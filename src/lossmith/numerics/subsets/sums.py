"""Random k-element subsets of a row, a subset being as likely as the product of its weights: sums over all of them.

The k largest weights are split off, and all are divided by the k-th largest. A subset is then the k largest without some of
them, the *holes* ``g_i = 1 / e_i <= 1``, and with as many of the *rest*, ``e_j <= 1``, instead. Up to a common factor

    ``sigma_(k-d) = A_d = sum_m sigma_(m+d)(holes) sigma_m(rest)``,

where ``A_0`` and ``A_1`` are at least 1: nothing overflows, and what underflows does not matter. The polynomials of the holes are
multiplied out, with positive terms only. Those of the rest come from power sums by Newton's identities, which cancel by up
to ``2**k / (k + 1)`` relative to ``A_0``, the worst case being one rest element as large as all of the k largest.

All of it is arithmetic of a few numbers for each row. It takes tensors, and arrays of numpy, whose operations on so few numbers
take a fraction of the time of torch's.
"""

from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "Doubles",
    "Numbers",
    "SubsetSums",
    "holes_of_others",
    "powers_of_step",
    "rest_polynomials",
    "subset_sums",
    "with_alternating_signs",
    "with_holes",
]

Doubles = np.ndarray[Any, np.dtype[np.float64]]
Numbers = TypeVar("Numbers", Tensor, Doubles)

# Its exponential is 0, as is that of everything below.
_VANISHING = -1000.0


class SubsetSums(NamedTuple, Generic[Numbers]):
    """Sums over the subsets of rows."""

    totals: Numbers
    """``A_0 .. A_(k+1)``, of which the last is 0, ``(k + 2, N)``."""
    present: Numbers
    """``sum_m sigma_m(holes without i) sigma_m(rest)``: subsets of k elements that contain i of the k largest, ``(k, N)``."""
    absent: Numbers
    """``sum_m sigma_m(holes without i) sigma_(m+1)(rest)``: those that do not, over ``g_i``, ``(k, N)``."""


def subset_sums(holes: Numbers, rest: Numbers) -> SubsetSums[Numbers]:
    """Return the sums for holes ``(k, N)`` and ``sigma_0 .. sigma_k`` of the rest, ``(k + 1, N)``.

    Args:
        holes: The k-th largest over each of the k largest, in [0, 1].
        rest: Polynomials of the other elements.

    Returns:
        The sums.
    """
    library = _library(holes)
    descending = library.flip(rest, (0,))
    totals = with_holes(library.concatenate([descending, library.zeros_like(rest)]), holes)
    absent, present = with_holes(descending[:, None], holes_of_others(holes))
    return SubsetSums(totals, present, absent)


def with_holes(sums: Numbers, holes: Numbers) -> Numbers:
    """Return ``A_d`` of more holes, from the highest to the lowest degree: another hole makes ``A_d + g A_(d-1)`` of ``A_d``.

    Without holes ``A_(-m)`` is ``sigma_m(rest)``.

    Args:
        sums: ``A_d`` before, for successive d, ``(D, ...)``.
        holes: The holes, ``(k, ...)``.

    Returns:
        Sums ``(D - k, ...)``: the lowest d are lost.
    """
    for hole in holes:
        sums = sums[1:] + hole * sums[:-1]
    return sums


def holes_of_others(holes: Numbers) -> Numbers:
    """Return the holes without each of them, ``(k - 1, k, N)``."""
    k = holes.shape[0]
    is_later = torch.ones(k - 1, k, device=holes.device).tril()[:, :, None] > 0 if isinstance(holes, Tensor) else _are_later(k)
    others: Numbers = _library(holes).where(is_later, holes[1:, None], holes[:-1, None])
    return others


@cache
def _are_later(k: int) -> Any:
    """Return whether each of the holes without one comes after that one, ``(k - 1, k, 1)``."""
    return np.tril(np.ones((k - 1, k), dtype=bool))[:, :, None]


def rest_polynomials(power_sums: Numbers) -> Numbers:
    """Return ``sigma_0 .. sigma_k`` from the power sums ``p_1 .. p_k``.

    Newton's identities are ``m sigma_m = sum_i (-1)**(i-1) p_i sigma_(m-i)``: as soon as a polynomial is known, its part of all
    later ones is added.

    Args:
        power_sums: ``(k, N)``.

    Returns:
        Polynomials ``(k + 1, N)``.
    """
    k, library = power_sums.shape[0], _library(power_sums)
    signed = later = with_alternating_signs(power_sums)
    found = [library.ones_like(power_sums[:1])]
    for degree in range(1, k + 1):
        found.append(later[:1] / degree)
        later = later[1:] + signed[: k - degree] * found[-1]
    # Rounding can leave a sum of positive products a little below 0.
    polynomials: Numbers = library.concatenate(found)
    return polynomials.clamp_min(0.0) if isinstance(polynomials, Tensor) else np.maximum(polynomials, 0.0)


def powers_of_step(step: Numbers, k: int) -> Numbers:
    """Return ``exp(m step)``, m = 0 .. k.

    The step to a class that is not possible may overflow, and infinity times 0 is not a number.

    Args:
        step: How far the largest of the rest is below the k-th largest, over the scale, ``(N,)``.
        k: The highest power.

    Returns:
        Powers ``(k + 1, N)``, the first of which is 1 unless the step is not a number.
    """
    degrees: Any = torch.arange(k + 1, dtype=step.dtype, device=step.device) if isinstance(step, Tensor) else np.arange(k + 1.0)
    powers: Numbers = _library(step).exp(degrees[:, None] * step.clip(_VANISHING))
    return powers


def with_alternating_signs(rows: Numbers) -> Numbers:
    """Return the numbers times 1, -1, 1, ... from row to row."""
    if not isinstance(rows, Tensor):
        return rows * _signs(rows.shape[0]).reshape(-1, *[1] * (rows.ndim - 1))
    parts = [-rows[i : i + 1] if i % 2 else rows[i : i + 1] for i in range(rows.shape[0])]
    return torch.cat(parts)


@cache
def _signs(count: int) -> Doubles:
    return np.array([-1.0 if i % 2 else 1.0 for i in range(count)])


def _library(numbers: Tensor | Doubles) -> Any:
    return torch if isinstance(numbers, Tensor) else np
