"""Sums of functions of the target's probability in plain operations of torch: short, correct, differentiable by autograd.

The target's probability comes from its log-odds against the other classes, so that nothing is lost where it is close to 1.
Everything here works on every device, under ``torch.compile``, ``torch.export`` and ``torch.func``.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lossmith.numerics.entries import entry, with_entry
from lossmith.numerics.known_slope import with_slope
from lossmith.numerics.one_operation import is_stand_in
from lossmith.numerics.probability import Probability
from lossmith.numerics.softmax import surprises, target_probability

__all__ = ["Curve", "Term", "cross_entropy", "sum_of_terms", "terms_of_every", "terms_of_one"]

Curve = Callable[[Probability], tuple[Tensor, Tensor | float]]
"""A function ``f`` of one probability: returns ``f`` and its pull ``-df / dlog p``, each to full relative accuracy."""


def cross_entropy(p: Probability) -> tuple[Tensor, float]:
    """Return ``-log p`` and its pull, which is 1 everywhere; engines know more about it than about other curves.

    Args:
        p: The probability.

    Returns:
        The value and its pull.
    """
    return p.surprise, 1.0


class Term(NamedTuple):
    """``factor * f(p_y)``, divided by the sum of ``f`` over the classes if ``normalized``."""

    factor: float
    curve: Curve
    normalized: bool = False


def sum_of_terms(terms: tuple[Term, ...], logits: Tensor, target: Tensor) -> Tensor:
    """Return the sum of the terms for each row ``(N, ...)``; ``target`` holds class indices, or a factor for every class.

    Args:
        terms: The functions with their factors, at least one.
        logits: ``(N, C, ...)``, in single or double precision.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.

    Returns:
        Losses ``(N, ...)``, in the precision of the logits.
    """
    if target.is_floating_point():
        losses = terms_of_every(terms, Probability.from_surprise(surprises(logits)), target)
    else:
        losses = _for_indices(terms, logits, target.unsqueeze(1))
    return losses.squeeze(1).to(logits.dtype)


def _for_indices(terms: tuple[Term, ...], logits: Tensor, index: Tensor) -> Tensor:
    own = target_probability(logits, index)
    losses = []
    for factor, curve, normalized in terms:
        value = _differentiable(curve, own)
        losses.append(factor * (_share(value, _sum_of_others(curve, logits, index, own)) if normalized else value))
    return sum(losses[1:], start=losses[0])


def _differentiable(curve: Curve, p: Probability) -> Tensor:
    """Return the value of a curve, whose slope along ``-log p`` is its pull: autograd would lose it for p close to 0 or 1."""
    value, pull = curve(p)
    return value if value is p.surprise else with_slope(p.surprise, value, pull)


def _sum_of_others(curve: Curve, logits: Tensor, index: Tensor, own: Probability) -> Tensor:
    """Return the sum of ``f(p_c)`` over all classes but one, whose probability is given, ``(N, 1, ...)``."""
    # Of two classes the other may be all but certain, and its surprise would be what is left of two nearly equal numbers.
    if curve is not cross_entropy or is_stand_in(logits) or logits.shape[1] == 2:
        values = _differentiable(curve, Probability.from_surprise(surprises(logits)))
        return with_entry(values, index, 0.0).sum(1, keepdim=True)
    # -log p_c is how far c is behind the largest logit, and the logarithm of one sum, which the surprise of the target tells, in
    # double precision. A recorded formula may run in single precision, and in a kernel that has every surprise at hand.
    top = logits.detach().amax(1, keepdim=True)
    behind = (top - logits).sum(1, keepdim=True)
    own_behind = top - entry(logits, index)
    return (logits.shape[1] - 1) * (own.surprise - own_behind) + (behind - own_behind)


def _share(own: Tensor, others: Tensor) -> Tensor:
    """Return ``own / (own + others)`` for numbers >= 0, from the smaller of the two, so that no derivative cancels.

    For a single class, which has nothing to be divided by, it is 0.
    """
    total = own + others
    total = torch.where(total == 0, 1.0, total)
    return torch.where(own > others, 1 - others / total, own / total)


def terms_of_one(terms: tuple[Term, ...], own: Probability) -> Tensor:
    """Return the sum of terms that look at the target's probability alone, whatever that comes from.

    Args:
        terms: The functions with their factors, at least one, none of them normalized.
        own: The probability of the target.

    Returns:
        Losses of the shape of the probability.
    """
    losses = [term.factor * _differentiable(term.curve, own) for term in terms]
    return sum(losses[1:], start=losses[0])


def terms_of_every(terms: tuple[Term, ...], every: Probability, factors: Tensor) -> Tensor:
    """Return the sum of the terms under every class, times the factor of the class, from the probabilities of all classes.

    Args:
        terms: The functions with their factors, at least one.
        every: The probabilities of all classes, ``(N, C, ...)``.
        factors: A factor for every class, ``(N, C, ...)``.

    Returns:
        Losses ``(N, 1, ...)``.
    """
    losses = []
    for factor, curve, normalized in terms:
        value = _differentiable(curve, every)
        loss = (factors * value).sum(1, keepdim=True)
        if normalized:
            total = value.sum(1, keepdim=True)
            loss = loss / torch.where(total == 0, 1.0, total)
        losses.append(factor * loss)
    return sum(losses[1:], start=losses[0])
