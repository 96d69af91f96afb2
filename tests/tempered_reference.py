"""Tempered probabilities and losses with 120 digits, written down as the paper has them and solved by another method."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import mpmath as mp


class Reference(NamedTuple):
    """What belongs to distinct logits, each of which stands for ``counts`` classes."""

    probs: list[mp.mpf]
    escort: list[mp.mpf]
    condition: list[mp.mpf]
    """Change of each probability when every logit's distance from the largest changes by a part in one."""


def exp_t(x: mp.mpf, t: mp.mpf) -> mp.mpf:
    if t == 1:
        return mp.exp(x)
    base = 1 + (1 - t) * x
    return base ** (1 / (1 - t)) if base > 0 else mp.mpf(0)


def log_t(x: mp.mpf, t: mp.mpf) -> mp.mpf:
    if t == 1:
        return mp.log(x)
    return (x ** (1 - t) - 1) / (1 - t)


def tempered_softmax(logits: Sequence[float], t: float, counts: Sequence[int] | None = None) -> Reference:
    return _solved(tuple(logits), t, tuple(counts or [1] * len(logits)))


@cache
def _solved(logits: tuple[float, ...], t: float, counts: tuple[int, ...]) -> Reference:
    """Bisection and secants on the logarithm of the sum, as a function of the logarithm of the largest probability."""
    t = mp.mpf(t)
    exact = [mp.mpf(logit) for logit in logits]
    gaps = [max(exact) - logit for logit in exact]

    def terms(log_peak: mp.mpf) -> list[mp.mpf]:
        scale = mp.exp((t - 1) * log_peak)
        return [exp_t(-gap * scale, t) for gap in gaps]

    def log_sum(log_peak: mp.mpf) -> mp.mpf:
        return log_peak + mp.log(mp.fsum(n * term for n, term in zip(counts, terms(log_peak), strict=True)))

    peak = _root(log_sum, -mp.log(sum(counts)), mp.mpf(0))
    probs = [mp.exp(peak) * term for term in terms(peak)]
    weights = [p**t if p > 0 else mp.mpf(0) for p in probs]
    total = mp.fsum(n * w for n, w in zip(counts, weights, strict=True))
    escort = [w / total for w in weights]
    mean_gap = mp.fsum(n * e * gap for n, e, gap in zip(counts, escort, gaps, strict=True))
    return Reference(probs, escort, [w * (gap + mean_gap) for w, gap in zip(weights, gaps, strict=True)])


def _root(function: Callable[[mp.mpf], mp.mpf], low: mp.mpf, high: mp.mpf) -> mp.mpf:
    """Illinois method with a bisection every third step."""
    value_low, value_high = function(low), function(high)
    if value_high <= 0:
        return high
    if value_low >= 0:
        return low
    for step in range(4000):
        middle = (low + high) / 2 if step % 3 == 2 else high - value_high * (high - low) / (value_high - value_low)
        value = function(middle)
        if value > 0:
            high, value_high, value_low = middle, value, value_low / 2
        else:
            low, value_low, value_high = middle, value, value_high / 2
        if abs(value) < mp.mpf(10) ** -110 or high - low < mp.mpf(10) ** -115:
            return middle
    raise ArithmeticError("no root")


def divergence(target: Sequence[float], probs: Sequence[mp.mpf], t1: float) -> mp.mpf:
    """Equation 5 of the paper."""
    t = mp.mpf(t1)
    total = mp.mpf(0)
    for y, p in zip(map(mp.mpf, target), probs, strict=True):
        total += p ** (2 - t) / (2 - t)
        if y > 0:
            total += y * (log_t(y, t) - log_t(p, t)) - y ** (2 - t) / (2 - t)
    return total


def divergence_gradient(target: Sequence[float], reference: Reference, t1: float, t2: float) -> list[mp.mpf]:
    """Chain rule with the derivative ``p_i**t2 (1[i=j] - E_j)`` of the tempered softmax."""
    t1, t2 = mp.mpf(t1), mp.mpf(t2)
    pulls = [p ** (t2 - t1) * (p - mp.mpf(y)) if p > 0 else mp.mpf(0) for y, p in zip(target, reference.probs, strict=True)]
    total = mp.fsum(pulls)
    return [pull - e * total for pull, e in zip(pulls, reference.escort, strict=True)]
