"""Random k-element subsets of the classes: :mod:`lossmith.numerics.subsets.sums` in its recorded form, for one row.

The k largest scores of the other classes are split off one after the other. k is a constant, so that every sum over subsets is
written out.

What is made of single numbers of a row has double precision: a small scale magnifies how far the target is from the k-th largest,
and the margin takes most of that away again. Weights and their powers, a number for each class, have the precision of the kernel.
"""

from functools import reduce
from typing import Any, NamedTuple

import torch

from lossmith.kernels.row_operations import Call, call_of
from lossmith.kernels.symbols import Operation, Recording, UntraceableError

__all__ = ["absence", "absence_of_all", "call_in", "parts_of_all", "slope_of_absence"]

# Power sums lose up to k bits; see kernels/cpu/weight_powers.py.
MOST_CHOSEN = {torch.float32: 6, torch.float64: 8}

# The score of a class that is not possible, far enough from infinity to be divided by a scale.
IMPOSSIBLE = -1e300


def call_in(recording: Recording, operation: Operation) -> Call:
    """Return an operation as something on rows, where a recording may know more of subsets than others do.

    Args:
        recording: Where it is recorded.
        operation: A call as torch takes it.

    Returns:
        Its name, and the arguments that matter for rows.

    Raises:
        UntraceableError: If these arguments mean nothing for rows.
    """
    if operation.name == "log_odds_of_absence" and recording.sees_all_absences:
        return "log_odds_of_all_absences", operation.arguments
    return call_of(operation)


class _Split(NamedTuple):
    """The k largest of the scores other than the target's, and what there is beside them."""

    tops: list[Any]
    """Descending."""
    gap: Any
    """How far the target is below the k-th largest."""
    places: list[Any]
    weights: Any
    """``exp((score - k-th) / scale)``, 0 for the target and for the k largest."""
    rest: list[Any]
    """``sigma_0 .. sigma_k`` of the weights."""
    holes: list[Any]
    """``exp((k-th - top) / scale)`` of the k largest."""
    nothing: Any
    """0; NaN where fewer than k classes are possible, or a score has diverged."""


def _split(values: Any, index: Any, k: int, scale: Any) -> _Split:
    recording = values._recording
    _check_few(k, recording)
    others, tops, places = values.scatter(1, index, -torch.inf), [], []
    lowest = torch.finfo(recording.dtype).min
    own = values.gather(1, index).clamp_min(lowest)
    found: list[Any] = []
    for _ in range(k):
        found.append(others.amax(1, keepdim=True))
        # Where fewer than k values are finite, the k-th is as low as a number can be.
        tops.append(found[-1].clamp_min(lowest))
        places.append(others.argmax(1, keepdim=True))
        others = others.scatter(1, places[-1], -torch.inf)
    weights = torch.exp((others - tops[-1]) / scale)
    powers = [weights]
    while len(powers) < k:
        powers.append(powers[-1] * weights)
    rest = _newton([_wide(power.sum(1, keepdim=True)) for power in powers])
    # The k-th largest of all, with the target among them.
    target = values.gather(1, index)
    kth = torch.maximum(found[-1], target if k == 1 else torch.minimum(target, found[-2]))
    nothing = (kth - kth) + (tops[0] - tops[0]) + (own - own)
    holes = [torch.exp((_wide(tops[-1]) - _wide(top)) / scale) for top in tops]
    return _Split(tops, _wide(tops[-1]) - _wide(target), places, weights, rest, holes, nothing)


def _wide(number: Any) -> Any:
    """Return a number of a row, with which kernels compute in double precision from here on."""
    return number._recording.symbol_of("wide", number)


def _check_few(k: int, recording: Recording) -> None:
    if not isinstance(k, int) or k > MOST_CHOSEN[recording.dtype]:
        raise UntraceableError(f"has subsets of {k} classes, which are too many to be written out")


def _newton(sums: list[Any]) -> list[Any]:
    """Return the elementary symmetric polynomials from power sums; rounding can leave one a little below 0."""
    found: list[Any] = [1.0]
    for degree in range(1, len(sums) + 1):
        terms = [(-1.0) ** (i - 1) * sums[i - 1] * found[degree - i] for i in range(1, degree + 1)]
        found.append((_total(terms) / degree).clamp_min(0.0))
    return found


def _total(terms: list[Any]) -> Any:
    return reduce(lambda first, second: first + second, terms)


def _polynomials(numbers: list[Any]) -> list[Any]:
    """Return the elementary symmetric polynomials of a few numbers, of positive terms only."""
    found: list[Any] = [1.0]
    for number in numbers:
        found = [1.0, *(found[i] + number * found[i - 1] for i in range(1, len(found))), number * found[-1]]
    return found


def _totals(split: _Split) -> list[Any]:
    """Return ``A_0 .. A_k``: sums over the subsets of k, k - 1, .. elements."""
    holes, k = _polynomials(split.holes), len(split.tops)
    return [_total([holes[m + d] * split.rest[m] for m in range(k + 1 - d)]) for d in range(k + 1)]


def absence(values: Any, index: Any, k: int, scale: Any) -> Any:
    """Return the log-odds that a class is not among k.

    Args:
        values: The scores.
        index: The class.
        k: How many are chosen.
        scale: What scores are divided by.

    Returns:
        ``log((1 - pi) / pi)``.

    Raises:
        UntraceableError: If k is large.
    """
    split = _split(values, index, k, scale)
    totals = _totals(split)
    return split.gap / scale + torch.log(totals[0] / totals[1]) + split.nothing


def slope_of_absence(values: Any, index: Any, k: int, scale: Any, pull: Any) -> Any:
    """Return the gradient of :func:`absence` with respect to the scores, a row, times a number.

    The probability of one of the rest is a polynomial in its weight, and the k largest lose what they are more often absent from
    k - 1 than from k.
    """
    split = _split(values, index, k, scale)
    totals, factor = [*_totals(split), 0.0], pull / scale
    slope: Any = 0.0
    for m in range(k, 0, -1):
        coefficient = (-1.0) ** (m - 1) * factor * (totals[m] / totals[0] - totals[m + 1] / totals[1])
        slope = (slope + coefficient) * split.weights
    for place, entry in zip(split.places, _slopes_of_top(split, totals), strict=True):
        slope = slope.scatter(1, place, entry * factor)
    return slope.scatter(1, index, -factor)


def _slopes_of_top(split: _Split, totals: list[Any]) -> list[Any]:
    found = []
    for i, hole in enumerate(split.holes):
        without = _polynomials(split.holes[:i] + split.holes[i + 1 :])
        present = _total([without[m] * split.rest[m] for m in range(len(without))])
        absent = _total([without[m] * split.rest[m + 1] for m in range(len(without))])
        found.append(hole * (present / totals[1] - absent / totals[0]))
    return found


class PartsOfAll(NamedTuple):
    """Log-odds of all classes to be absent, and what they are made of: numbers for the k largest, a row for the others."""

    odds: Any
    tops: list[Any]
    places: list[Any]
    rest: Any
    """The scores, -inf for the k largest."""


def absence_of_all(values: Any, k: int, scale: Any) -> Any:
    """Return the log-odds of every class not to be among k, a row."""
    return parts_of_all(values, k, scale).odds


def parts_of_all(values: Any, k: int, scale: Any) -> PartsOfAll:
    """Return the log-odds of every class not to be among k, as :mod:`lossmith.numerics.subsets.marginals` has them.

    Args:
        values: The scores.
        k: How many are chosen.
        scale: What scores are divided by.

    Returns:
        Log-odds and their parts.

    Raises:
        UntraceableError: If k is large.
    """
    _check_few(k, values._recording)
    rest, tops, places = values, [], []
    for _ in range(k):
        tops.append(rest.amax(1, keepdim=True))
        places.append(rest.argmax(1, keepdim=True))
        rest = rest.scatter(1, places[-1], -torch.inf)
    # The rest is measured from the largest of it, so that it cannot underflow.
    reference = rest.amax(1, keepdim=True).clamp_min(IMPOSSIBLE).detach()
    nothing = (tops[-1] - tops[-1]).detach() + (tops[0] - tops[0]).detach()
    return PartsOfAll(_odds_of_all(tops, places, rest, reference, scale) + nothing, tops, places, rest)


def _odds_of_all(tops: list[Any], places: list[Any], rest: Any, reference: Any, scale: Any) -> Any:
    """The probability of one of the rest is a polynomial in its weight, those of the k largest are sums over the others."""
    k, kth = len(tops), tops[-1]
    weights = torch.exp((rest - reference) / scale)
    powers = [weights]
    while len(powers) < k:
        powers.append(powers[-1] * weights)
    polynomials = _newton([power.sum(1, keepdim=True) for power in powers])
    steps = _powers(torch.exp((reference - kth) / scale), k)
    scaled = [polynomial * step for polynomial, step in zip(polynomials, steps, strict=True)]
    holes = [torch.exp((kth - top) / scale) for top in tops]
    all_holes = _polynomials(holes)
    totals = [_total([all_holes[m + d] * scaled[m] for m in range(k + 1 - d)]) for d in range(k + 1)]
    present: Any = 0.0
    for m in range(k - 1, -1, -1):
        present = present * weights + (-1.0) ** m * totals[m + 1] * steps[m]
    absent = totals[0] - weights * present * steps[1]
    odds = torch.log(absent / present) - (rest - kth) / scale
    for i, place in enumerate(places):
        without = _polynomials(holes[:i] + holes[i + 1 :])
        is_present = _total([without[m] * scaled[m] for m in range(k)])
        # A power less of the step: measured from the reference, it cannot underflow. Nothing may be absent where k are possible.
        is_absent = _total([without[m] * polynomials[m + 1] * steps[m] for m in range(k)])
        least = torch.finfo(torch.float64).tiny
        entry = (reference - tops[i]) / scale + torch.log(is_absent.clamp_min(least) / is_present)
        odds = odds.scatter(1, place, entry)
    return odds


def _powers(number: Any, highest: int) -> list[Any]:
    found: list[Any] = [1.0, number]
    while len(found) <= highest:
        found.append(found[-1] * number)
    return found
