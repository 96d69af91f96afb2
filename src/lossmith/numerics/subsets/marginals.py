"""How likely every element is to be in a random k-element subset, exact even where that is all but impossible or all but certain.

``log_odds_of_absence`` is ``log((1 - pi) / pi)``: a sigmoid of it or of its negative gives both probabilities with all digits.
"""

import torch
from torch import Tensor

from lossmith.numerics.one_operation import as_one_operation, is_stand_in
from lossmith.numerics.precision import in_double
from lossmith.numerics.softmax import zero_unless_diverged
from lossmith.numerics.subsets.frequencies import NEGLIGIBLE, SubsetSizes
from lossmith.numerics.subsets.sums import powers_of_step, rest_polynomials, subset_sums, with_alternating_signs

__all__ = ["MOST_POWER_SUMS", "absence_of_each", "log_odds_of_absence"]

# Power sums lose up to k bits: above this k they would give less than a user of double precision expects.
MOST_POWER_SUMS = 24


def log_odds_of_absence(values: Tensor, k: int, scale: float) -> Tensor:
    """Return ``log((1 - pi) / pi)`` in double precision for values ``(N, C)``, weights ``exp(value / scale)`` and ``k < C``.

    Args:
        values: Scores, ``(N, C)``.
        k: How many elements are chosen, 1 <= k < C.
        scale: What scores are divided by, > 0.

    Returns:
        Log-odds, ``(N, C)``, NaN in rows with fewer than k elements above -inf, or one that has diverged.
    """
    if is_stand_in(values):
        return as_one_operation(log_odds_of_absence, values, k, scale)
    return absence_of_each(values, k, scale)


def absence_of_each(values: Tensor, k: int, scale: float) -> Tensor:
    """Return the same, by operations that rows of any kind have.

    Args:
        values: Scores, ``(N, C)``.
        k: How many elements are chosen, 1 <= k < C.
        scale: What scores are divided by, > 0.

    Returns:
        Log-odds, ``(N, C)``.
    """
    top, top_index = in_double(values).topk(k + 1, 1)
    kth = top[:, -2:-1].detach()
    # NaN where fewer than k elements are possible, or one has diverged.
    nothing = kth - kth + zero_unless_diverged(top[:, :1].detach())
    top = top.clamp(min=torch.finfo(values.dtype).min)
    compute = _by_power_sums if k <= MOST_POWER_SUMS else _by_frequencies
    return compute(in_double(values), top, top_index, scale) + nothing


def _by_power_sums(values: Tensor, top: Tensor, top_index: Tensor, scale: float) -> Tensor:
    """See :mod:`lossmith.numerics.subsets.sums`; the rest is measured from the largest of it, so that it cannot underflow."""
    top, kth, next_one, top_index = top[:, :-1], top[:, -2:-1], top[:, -1:], top_index[:, :-1]
    weights = ((values - next_one) / scale).scatter(1, top_index, -torch.inf).exp()
    polynomials = rest_polynomials(_power_sums(weights, top.shape[1]))
    step = (next_one - kth) / scale
    steps = powers_of_step(step[:, 0], top.shape[1])
    holes = ((kth - top) / scale).exp().T
    totals, present, _ = subset_sums(holes, polynomials * steps)
    _, _, absent = subset_sums(holes, torch.nn.functional.pad(polynomials[1:] * steps[:-1], (0, 0, 1, 0)))
    rest_absent = _absence_in_rest((values - kth) / scale, weights * step.exp(), totals)
    # Nothing is absent where no more than k elements are possible.
    smallest = torch.finfo(absent.dtype).tiny
    top_absent = (next_one - top) / scale + (absent.clamp(min=smallest) / present).log().T
    return rest_absent.scatter(1, top_index, top_absent)


def _power_sums(weights: Tensor, k: int) -> Tensor:
    """Return the sums of the first k powers of weights ``(N, C)``, ``(k, N)``."""
    powers = [weights]
    while len(powers) < k:
        powers.append(powers[-1] * weights)
    return torch.stack([power.sum(1) for power in powers])


def _absence_in_rest(log_weights: Tensor, weights: Tensor, totals: Tensor) -> Tensor:
    """``A_1(without j)`` is ``sum_i (-e_j)**i A_(1+i)``, and ``A_0(without j)`` is ``A_0 - e_j A_1(without j)``."""
    *lower, present = with_alternating_signs(totals[1:-1]).unsqueeze(2).unbind(0)
    for coefficient in reversed(lower):
        present = torch.addcmul(coefficient, present, weights)
    return ((totals[0].unsqueeze(1) - weights * present) / present).log() - log_weights


def _by_frequencies(values: Tensor, top: Tensor, top_index: Tensor, scale: float) -> Tensor:
    """Leave each element out with the tilt that makes k - 1/2 about the expected number of the others."""
    k = top_index.shape[1] - 1
    below = _odds_without_each(values, top[:, -2:-1], scale, k, k - 0.5)
    above = _odds_without_each(values, top[:, -1:], scale, k, k + 0.5)
    (low_chosen, low_odds), (high_chosen, high_odds) = below, above
    return torch.where(low_chosen < 1 - high_chosen, low_odds, high_odds)


def _odds_without_each(values: Tensor, reference: Tensor, scale: float, k: int, expected: float) -> tuple[Tensor, Tensor]:
    log_weights = (values - reference.detach()) / scale
    sizes = SubsetSizes(log_weights, expected, NEGLIGIBLE[torch.float64])
    one = torch.ones_like(sizes.tilt)
    absent, present = (sizes.probability_without_each({size: one}) for size in (k, k - 1))
    smallest = torch.finfo(absent.dtype).tiny
    odds = absent.clamp(min=smallest).log() - present.clamp(min=smallest).log() - (log_weights - sizes.tilt)
    return sizes.chosen, odds
