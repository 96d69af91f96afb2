"""Random k-element subsets of a row, a subset being as likely as the product of its weights: sums over all of them.

The k largest weights are split off, and all are divided by the k-th largest. A subset is then the k largest without some of
them, the *holes* ``g_i = 1 / e_i <= 1``, and with as many of the *rest*, ``e_j <= 1``, instead. Up to a common factor

    ``sigma_(k-d) = A_d = sum_m sigma_(m+d)(holes) sigma_m(rest)``,

where ``A_0`` and ``A_1`` are at least 1: nothing overflows, and what underflows does not matter. The polynomials of the holes are
multiplied out, with positive terms only. Those of the rest come from power sums by Newton's identities, which cancel by up
to ``2**k / (k + 1)`` relative to ``A_0``, the worst case being one rest element as large as all of the k largest.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lossmith.torch_compat import are_transforms_active, is_traced

__all__ = ["SubsetSums", "alternating_signs", "rest_polynomials", "subset_sums"]

# With up to this many holes, all products of them are formed at once.
MOST_TABULATED = 8


class SubsetSums(NamedTuple):
    """Sums over the subsets of rows."""

    totals: Tensor
    """``A_0 .. A_(k+1)``, of which the last is 0, ``(N, k + 2)``."""
    present: Tensor
    """``sum_m sigma_m(holes without i) sigma_m(rest)``: subsets of k elements that contain i of the k largest, ``(N, k)``."""
    absent: Tensor
    """``sum_m sigma_m(holes without i) sigma_(m+1)(rest)``: those that do not, over ``g_i``, ``(N, k)``."""


def subset_sums(gaps: Tensor, rest: Tensor) -> SubsetSums:
    """Return the sums for holes ``exp(-gaps)``, ``(N, k)``, and ``sigma_0 .. sigma_k`` of the rest, ``(N, k + 1)``.

    Args:
        gaps: By how much each of the k largest is ahead of the k-th, >= 0.
        rest: Polynomials of the other elements.

    Returns:
        The sums.
    """
    k = gaps.shape[1]
    polynomials = (_tabulated_products if k <= MOST_TABULATED else _products)(gaps)
    sums = torch.bmm(polynomials, rest.unsqueeze(2)).squeeze(2)
    return SubsetSums(*torch.split(sums, [k + 2, k, k], 1))


def _tabulated_products(gaps: Tensor) -> Tensor:
    """Return what ``sigma_m(rest)``, m = 0 .. k, is multiplied by in all of the sums, ``(N, 3 k + 2, k + 1)``."""
    k = gaps.shape[1]
    products = torch.mm(gaps, _constant(_members, k, gaps)).exp()
    return torch.mm(products, _constant(_contributions, k, gaps)).view(-1, 3 * k + 2, k + 1)


def _members(k: int) -> Tensor:
    """Return -1 where a hole is in one of the ``2**k`` sets of holes, ``(k, 2**k)``."""
    sets = torch.arange(2**k)
    return -(sets >> torch.arange(k).unsqueeze(1) & 1).double()


def _contributions(k: int) -> Tensor:
    """Return which factors the product of a set of holes is part of, ``(2**k, (3 k + 2) (k + 1))``."""
    members = -_members(k)
    sizes = members.sum(0).view(-1, 1, 1)
    lacks = members.T.unsqueeze(2) == 0
    degrees = torch.arange(k + 1)
    parts = [sizes == _shifted_degrees(k), (sizes == degrees) & lacks, (sizes == degrees - 1) & lacks]
    return torch.cat(parts, 1).double().flatten(1)


def _shifted_degrees(k: int) -> Tensor:
    return torch.arange(k + 2).unsqueeze(1) + torch.arange(k + 1)


def _products(gaps: Tensor) -> Tensor:
    """Return the same, multiplied out one hole after the other."""
    k = gaps.shape[1]
    kept = 1 - torch.eye(k + 1, k, dtype=gaps.dtype, device=gaps.device)
    factors = ((-gaps).exp().unsqueeze(1) * kept).unsqueeze(3).unbind(2)
    polynomials = F.pad(torch.ones_like(factors[0]), (0, k))
    for factor in factors:
        polynomials = torch.addcmul(polynomials, factor, F.pad(polynomials[:, :, :-1], (1, 0)))
    of_all = F.pad(polynomials[:, k], (0, k + 1))[:, _constant(_shifted_degrees, k, gaps)]
    without_each = polynomials[:, :k]
    return torch.cat([of_all, without_each, F.pad(without_each[:, :, :-1], (1, 0))], 1)


def rest_polynomials(power_sums: Tensor) -> Tensor:
    """Return ``sigma_0 .. sigma_k`` from the power sums ``p_1 .. p_k``.

    Newton's identities ``m sigma_m = sum_i (-1)**(i-1) p_i sigma_(m-i)`` are a triangular system.

    Args:
        power_sums: ``(N, k)``.

    Returns:
        Polynomials ``(N, k + 1)``.
    """
    k = power_sums.shape[1]
    system, right = (_tabulated_newton_system if k <= MOST_TABULATED else _newton_system)(power_sums)
    solution = torch.linalg.solve_triangular(system, right, upper=False).squeeze(2)
    # Rounding can leave a sum of positive products a little below 0.
    return F.pad(solution.clamp(min=0.0), (1, 0), value=1.0)


def _tabulated_newton_system(power_sums: Tensor) -> tuple[Tensor, ...]:
    k = power_sums.shape[1]
    degrees, signs = _constant(_newton_degrees, k, power_sums), _constant(_newton_signs, k, power_sums)
    return torch.addmm(degrees, power_sums, signs).view(-1, k, k + 1).tensor_split((k,), 2)


def _newton_system(power_sums: Tensor) -> tuple[Tensor, ...]:
    k = power_sums.shape[1]
    signed = power_sums * alternating_signs(power_sums)
    off_diagonal = F.pad(signed, (1, 0))[:, _constant(_newton_distances, k, power_sums)]
    return _constant(_newton_diagonal, k, power_sums) - off_diagonal, signed.unsqueeze(2)


def _newton_diagonal(k: int) -> Tensor:
    return torch.arange(1.0, k + 1, dtype=torch.float64).diag()


def _newton_distances(k: int) -> Tensor:
    """Return how far below the diagonal an entry is, or 0, ``(k, k)``."""
    degrees = torch.arange(k)
    return (degrees.unsqueeze(1) - degrees).clamp(min=0)


def _newton_degrees(k: int) -> Tensor:
    """Return the factors of ``sigma_m``, a diagonal beside a column of zeros, flattened."""
    return F.pad(_newton_diagonal(k), (0, 1)).flatten()


def _newton_signs(k: int) -> Tensor:
    """Return where ``p_i`` stands in the system and its right-hand side, with its sign, ``(k, k (k + 1))``."""
    signs = torch.zeros(k, k, k + 1, dtype=torch.float64)
    for row in range(k):
        signs[row, row, k] = (-1.0) ** row
        for column in range(row):
            signs[row - column - 1, row, column] = -((-1.0) ** (row - column - 1))
    return signs.flatten(1)


def alternating_signs(rows: Tensor) -> Tensor:
    """Return 1, -1, 1, ... for the columns of ``rows``."""
    return _constant(_signs, rows.shape[1], rows)


def _signs(length: int) -> Tensor:
    return 1 - 2 * (torch.arange(length) % 2).double()


def _constant(build: Callable[[int], Tensor], k: int, like: Tensor) -> Tensor:
    """Return a table, which is kept for the next call, except under tracing and transforms: those make their own."""
    if is_traced() or are_transforms_active():
        table = build(k).to(like.device)
    else:
        table = _kept(build, k, like.device)
    return table.to(like.dtype) if table.is_floating_point() else table


@cache
def _kept(build: Callable[[int], Tensor], k: int, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # a table made in inference mode could not be used in training
        return build(k).to(device)
