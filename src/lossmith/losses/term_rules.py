"""Sums of functions of the target's probability, some of them divided by their sum over all classes, with their gradients.

A term is ``f(p_y)``; with the pull ``s = -df / dlog p_y``, its gradient with respect to the logits is ``s (p - onehot)``. A
normalised term divides by the sum of ``f(p_c)`` over all classes. All terms of a loss share one softmax.
"""

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lossmith.numerics.blocks import in_blocks_of
from lossmith.numerics.precision import rounded
from lossmith.numerics.probability import Probability
from lossmith.numerics.rules import DescentRule, Evaluation, IndexRule, Rule, evaluate_again
from lossmith.numerics.softmax import (
    LOWEST_LOG,
    ClassProbabilities,
    sum_of_other_surprises,
    target_and_others,
    target_softmax,
    values_are_at_hand,
)
from lossmith.numerics.temporaries import add, add_product, multiply, overwrite, scale_kept

__all__ = ["Curve", "Term", "rule_of_terms", "sum_of_surprises"]


class Curve(Protocol):
    """A function ``f`` of one probability."""

    @property
    def is_cross_entropy(self) -> bool:
        """Whether ``f(p) = -log p``, of which much is known in closed form."""
        ...

    def value_and_pull(self, target: Probability) -> tuple[Tensor, Tensor | float]:
        """Return ``f`` and the pull ``-df / dlog p``, each to full relative accuracy; a constant pull is one number."""
        ...


class Term(NamedTuple):
    """``factor * f(p_y)``, divided by the sum of ``f`` over the classes if ``normalized``."""

    factor: float
    curve: Curve
    normalized: bool = False


def rule_of_terms(terms: tuple[Term, ...], target: Tensor) -> Rule:
    """Return the rule for a sum of terms; ``target`` holds class indices, or a factor for every class."""
    if target.is_floating_point():
        is_surprise = all(term.curve.is_cross_entropy and not term.normalized for term in terms)
        return (_EverySurprise if is_surprise else _EveryClass)(terms)
    normalized = [term.curve.is_cross_entropy for term in terms if term.normalized]
    if not normalized:
        return _Target(terms)
    return _TargetAmongSurprises(terms) if all(normalized) else _TargetAmongClasses(terms)


class _Target(IndexRule):
    """Terms without normalisation, for class indices: keeps the direction and the pull apart."""

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        softmax = target_softmax(logits, target.unsqueeze(1))
        value, pull = _sum_of_terms(self.terms, softmax.target)
        losses = rounded(value.squeeze(1), logits)
        if isinstance(pull, Tensor):
            return losses, (softmax.direction, rounded(pull, logits))
        return losses, (softmax.direction if pull == 1 else multiply(softmax.direction, pull),)

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        direction, *pulls = saved
        return scale_kept(direction, grad * pulls[0] if pulls else grad)


class _TargetAmongSurprises(IndexRule):
    """Terms of which the normalised ones are cross-entropy, for class indices: all classes but the target are pulled alike.

    With the pull S at the target and -s at each other class, the gradient is ``p_j (S - (K - 1) s) + s``, and at the target
    ``-(S (1 - p_y) + (K - 1) s p_y)``, of which nothing cancels.
    """

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        index, others = target.unsqueeze(1), logits.shape[1] - 1
        prob, probs = target_and_others(logits, index)
        value, pull, share = self._value_and_pulls(logits, index, prob)
        entry = rounded(torch.addcmul(pull * prob.rest, share, prob.p, value=others).neg(), logits)
        if others == 1:
            gradient = overwrite((-entry).expand_as(logits).contiguous(), index, entry)
        else:
            total = torch.sub(pull, share, alpha=others)
            gradient = add(multiply(probs, rounded(total, logits)), rounded(share, logits))
            gradient = overwrite(gradient, index, entry)
        hard = _hard_rows(logits, prob.surprise, is_moderate=prob.least > 0)
        return evaluate_again(self, logits, target, hard, (rounded(value.squeeze(1), logits), (gradient,)))

    def _value_and_pulls(self, logits: Tensor, index: Tensor, target: Probability) -> tuple[Tensor, Tensor, Tensor]:
        """Return the sum of all terms, the pull at the target, and minus that at each other class."""
        own, rest = target.surprise, sum_of_other_surprises(logits, index, target)
        total = own + rest
        inverse = (_nonzero(total) if logits.shape[1] == 1 else total).reciprocal()
        factor = sum(term.factor for term in self.terms if term.normalized)
        value = _scaled(own * inverse, factor)
        # The quotient own / (own + rest) pulls at the target by rest / (own + rest)**2: no difference.
        pull = _scaled(rest * inverse * inverse, factor)
        share = value * inverse
        plain = tuple(term for term in self.terms if not term.normalized)
        if plain:
            plain_value, plain_pull = _sum_of_terms(plain, target)
            value, pull = value + plain_value, pull + plain_pull
        return value, pull, share


class _EveryClass(DescentRule):
    """Any terms, for a factor per class ``a_c``: the loss is ``sum_c a_c f(p_c)``.

    With ``s_c`` minus the derivative of the loss with respect to ``log p_c``, the gradient is ``p_j sum_c s_c - s_j``.
    """

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks_of(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, factors: Tensor, place: Tensor | None) -> Evaluation:
        classes = ClassProbabilities(logits)
        losses, pulls = [], []
        for factor, curve, normalized in self.terms:
            value, pull = curve.value_and_pull(classes)
            loss, weights = (factors * value).sum(1, keepdim=True), factors
            if normalized:
                inverse = 1 / _nonzero(value.sum(1, keepdim=True))
                loss = loss * inverse
                weights = (factors - loss) * inverse
            losses.append(_scaled(loss, factor))
            pulls.append(_scaled(weights * pull, factor))
        return _total(losses).squeeze(1), (_descent(classes, _total(pulls), place),)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        classes = ClassProbabilities(logits)
        gradient = torch.zeros_like(logits)
        for factor, curve, normalized in self.terms:
            value, _ = curve.value_and_pull(classes)
            gradient = gradient + value * (factor / _nonzero(value.sum(1, keepdim=True)) if normalized else factor)
        return gradient * grad


class _EverySurprise(_EveryClass):
    """Cross-entropy alone, for a factor per class: no logarithm for each of them."""

    def _evaluate_rows(self, logits: Tensor, factors: Tensor, place: Tensor | None) -> Evaluation:
        losses, descent = sum_of_surprises(logits, factors, place)
        factor = sum(term.factor for term in self.terms)
        return _scaled(losses, factor).squeeze(1), (_scaled(descent, factor),)


def sum_of_surprises(logits: Tensor, factors: Tensor, place: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the sum of ``a_c (-log p_c)``, ``(N, 1, ...)``, and minus its gradient, ``a_j - p_j sum_c a_c``."""
    classes, total = ClassProbabilities(logits), factors.sum(1, keepdim=True)
    if values_are_at_hand(logits):
        behind = (classes.highest - logits).mul_(factors).sum(1, keepdim=True)
        value = torch.addcmul(behind, total, classes.least_surprise)
    else:
        value = (factors * classes.surprise).sum(1, keepdim=True)
    return value, _balanced(classes, torch.addcmul(factors, classes.p, total, value=-1, out=place))


class _TargetAmongClasses(_EveryClass):
    """Terms of which some are normalised, for class indices: only the normalised ones look at all classes."""

    def _evaluate_rows(self, logits: Tensor, target: Tensor, place: Tensor | None) -> Evaluation:
        index = target.unsqueeze(1)
        classes = ClassProbabilities(logits)
        losses, pulls = [], []
        target_pull: Tensor | float = 0.0
        for factor, curve, normalized in self.terms:
            if not normalized:
                value, pull = curve.value_and_pull(classes.of(index))
                losses.append(_scaled(value, factor))
                target_pull = target_pull + factor * pull
                continue
            values, class_pulls = curve.value_and_pull(classes)
            own, others, total = _against_others(values, index)
            inverse = _nonzero(total).reciprocal()
            share = _scaled(inverse, factor)
            loss = own * share
            losses.append(loss)
            # The quotient own / (own + others) pulls at the target by others / (own + others)**2: no difference.
            own_pull = class_pulls.gather(1, index) if isinstance(class_pulls, Tensor) else class_pulls
            target_pull = target_pull + others * inverse * share * own_pull
            pulls.append(class_pulls * (inverse * -loss))
        descent = _descent(classes, overwrite(_total(pulls), index, target_pull), place)
        evaluation = _total(losses).squeeze(1), (descent,)
        behind = classes.highest - logits.gather(1, index)
        return evaluate_again(self, logits, target, _hard_rows(logits, behind, is_moderate=False), evaluation)


def _against_others(values: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the value at the target, the sum of the others, and that of all."""
    own, total = values.gather(1, index), values.sum(1, keepdim=True)
    if values_are_at_hand(values) and (own + own <= total).all():
        return own, total - own, total
    others = values.scatter(1, index, 0.0).sum(1, keepdim=True)
    return own, others, own + others


def _hard_rows(logits: Tensor, surprise: Tensor, is_moderate: bool) -> Tensor | None:
    """Return where single precision will not do: entries of the other classes nearly cancel if the target is very improbable.

    They are ``log p_y`` times ``1 - (K - 1) p_j``, beside the sum of the other logarithms, which is above ``(K - 1) log(K - 1)``.
    """
    others = logits.shape[1] - 1
    if logits.dtype != torch.float32 or others < 2 or not values_are_at_hand(logits):
        return None
    limit = 4 * others * math.log(others)
    return None if is_moderate and limit > -LOWEST_LOG else (surprise > limit).squeeze(1)


def _sum_of_terms(terms: tuple[Term, ...], target: Probability) -> tuple[Tensor, Tensor | float]:
    (factor, curve, _), *others = terms
    value, pull = curve.value_and_pull(target)
    if factor != 1:
        value, pull = factor * value, factor * pull
    for factor, curve, _ in others:
        next_value, next_pull = curve.value_and_pull(target)
        value, pull = value + factor * next_value, pull + factor * next_pull
    return value, pull


def _scaled(tensor: Tensor, factor: float) -> Tensor:
    return tensor if factor == 1 else factor * tensor


def _nonzero(denominator: Tensor) -> Tensor:
    """A single class, whose losses are all 0, costs nothing instead of 0 / 0."""
    return denominator.masked_fill(denominator == 0, 1.0)


def _total(parts: list[Tensor]) -> Tensor:
    return sum(parts[1:], start=parts[0])


def _descent(classes: ClassProbabilities, pull: Tensor, place: Tensor | None) -> Tensor:
    """Return minus the gradient with respect to the logits, ``s_j - p_j sum_c s_c``; the pull, a temporary, is used up."""
    if place is None:
        return _balanced(classes, add_product(pull, classes.p, -pull.sum(1, keepdim=True)))
    return _balanced(classes, torch.addcmul(pull, classes.p, pull.sum(1, keepdim=True), value=-1, out=place))


def _balanced(classes: ClassProbabilities, descent: Tensor) -> Tensor:
    """1 - p of a class with most of the mass cancels. Its entry is what makes the sum of all entries 0."""
    if classes.top is None:
        return descent
    entry = descent.gather(1, classes.top)
    others = overwrite(descent, classes.top, 0.0)
    balance = -others.sum(1, keepdim=True)
    return overwrite(others, classes.top, torch.where(classes.largest > 0.5, balance, entry))
