"""Random k-element subsets of a row, a subset being as likely as the product of its weights: sums over all of them.

The k largest weights are split off, and all are divided by the k-th largest. A subset is then the k largest without some of
them, the *holes* ``g_i = 1 / e_i <= 1``, and with as many of the *rest*, ``e_j <= 1``, instead. Up to a common factor

    ``sigma_(k-d) = A_d = sum_m sigma_(m+d)(holes) sigma_m(rest)``,

where ``A_0`` and ``A_1`` are at least 1: nothing overflows, and what underflows does not matter. The polynomials of the holes are
multiplied out, with positive terms only. Those of the rest come from power sums by Newton's identities, which cancel by up
to ``2**k / (k + 1)`` relative to ``A_0``, the worst case being one rest element as large as all of the k largest.
"""

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["SubsetSums", "alternating_signs", "rest_polynomials", "subset_sums"]


class SubsetSums(NamedTuple):
    """Sums over the subsets of rows."""

    totals: Tensor
    """``A_0 .. A_(k+1)``, of which the last is 0, ``(N, k + 2)``."""
    rest: Tensor
    """``sigma_0 .. sigma_k`` of the rest, ``(N, k + 1)``."""
    without: Tensor
    """``sigma_0 .. sigma_(k-1)`` of the holes without each of them, ``(N, k, k)``."""


def subset_sums(holes: Tensor, rest: Tensor) -> SubsetSums:
    """Return the sums for holes ``(N, k)`` and the polynomials of the rest ``(N, k + 1)``."""
    k = holes.shape[1]
    polynomials = _products_without_each(holes)
    padded = torch.nn.functional.pad(polynomials[:, k], (0, k + 1))
    shifted = padded[:, _shifts(k, holes.device)]
    return SubsetSums((shifted @ rest.unsqueeze(2)).squeeze(2), rest, polynomials[:, :k, :k])


@cache
def _shifts(k: int, device: torch.device) -> Tensor:
    """Return ``d + m`` for ``d = 0 .. k + 1`` and ``m = 0 .. k``."""
    return torch.arange(k + 2, device=device).unsqueeze(1) + torch.arange(k + 1, device=device)


def _products_without_each(holes: Tensor) -> Tensor:
    """Return the coefficients of ``prod_i (1 + g_i x)`` without each factor, and as the last one with all, ``(N, k + 1, k + 1)``."""
    k = holes.shape[1]
    kept = 1 - torch.eye(k + 1, k, dtype=holes.dtype, device=holes.device)
    factors = (holes.unsqueeze(1) * kept).unsqueeze(3).unbind(2)
    polynomial = torch.nn.functional.pad(torch.ones_like(factors[0]), (0, k))
    for factor in factors:
        shifted = torch.nn.functional.pad(polynomial[:, :, :-1], (1, 0))
        polynomial = torch.addcmul(polynomial, factor, shifted)
    return polynomial


def rest_polynomials(power_sums: Tensor) -> Tensor:
    """Return ``sigma_0 .. sigma_k`` from the power sums ``p_1 .. p_k``: ``m sigma_m = sum_i (-1)**(i-1) p_i sigma_(m-i)``."""
    k = power_sums.shape[1]
    signed = power_sums * alternating_signs(power_sums)
    descending = torch.ones_like(power_sums[:, :1])
    for m in range(1, k + 1):
        # Rounding can leave a sum of positive products a little below 0.
        largest = (signed[:, :m] * descending).sum(1, keepdim=True).clamp(min=0.0) / m
        descending = torch.cat([largest, descending], 1)
    return descending.flip(1)


def alternating_signs(rows: Tensor) -> Tensor:
    """Return 1, -1, 1, ... for the columns of ``rows``."""
    return 1 - 2 * (torch.arange(rows.shape[1], device=rows.device) % 2).to(rows.dtype)
