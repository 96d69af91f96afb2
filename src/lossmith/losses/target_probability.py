"""One kernel for every loss that looks only at the target's probability, and for quotients and sums of such losses.

Such a loss is ``f(p_y)``; with the pull ``s = -df / dlog p_y``, its gradient with respect to the logits is
``s (p - onehot)``. A normalised loss divides by the sum of ``f(p_c)`` over all classes. A published combination is a weighted
sum of both kinds, and costs one softmax: the kernel works on a tuple of terms.
"""

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from lossmith.losses.contract import ClassificationLoss
from lossmith.numerics.rowwise import Evaluation, Rule, in_blocks, rowwise_loss
from lossmith.numerics.softmax import ClassProbabilities, Probability, target_softmax
from lossmith.numerics.temporaries import add, add_product, multiply, overwrite, scale_kept

__all__ = ["AgainstOthers", "TargetProbabilityLoss", "Term", "TermLoss", "term_losses"]


class Term(NamedTuple):
    """``factor * f(p_y)``, divided by the sum of ``f`` over the classes if ``normalized``."""

    factor: float
    curve: "TargetProbabilityLoss"
    normalized: bool = False


class AgainstOthers(NamedTuple):
    """``f`` at the target, and over the other classes."""

    value: Tensor
    """``f`` at the target, ``(N, 1, ...)``."""
    pull: Tensor
    """Its pull."""
    others: Tensor
    """The sum of ``f`` over the other classes, ``(N, 1, ...)``."""
    pulls: Tensor
    """The pull of every class, ``(N, C, ...)``, or ``(N, 1, ...)`` where all have the same."""


class TermLoss(ClassificationLoss):
    """A loss that is a sum of terms."""

    @abstractmethod
    def terms(self) -> tuple[Term, ...] | None:
        """Return the terms whose sum this loss is, or None where its parameters make it another function."""

    def example_losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the sum of the terms for each example."""
        terms = self.terms()
        assert terms is not None, "a loss without terms says itself what an example costs"
        return term_losses(terms, logits, target)


class TargetProbabilityLoss(TermLoss):
    """Base of the losses ``f(p_y)``: a subclass gives ``f`` and its pull."""

    @abstractmethod
    def value_and_pull(self, target: Probability) -> tuple[Tensor, Tensor]:
        """Return ``f`` and the pull ``-df / dlog p``, each to full relative accuracy; a constant pull may be one number."""

    def against_others(self, classes: ClassProbabilities, index: Tensor) -> "AgainstOthers":
        """Return what the quotient of ``f`` at one class of each row and its sum over all classes is made of."""
        values, pulls = self.value_and_pull(classes)
        pulls = pulls.expand_as(values)
        others = values.scatter(1, index, 0.0).sum(1, keepdim=True)
        return AgainstOthers(values.gather(1, index), pulls.gather(1, index), others, pulls)

    def terms(self) -> tuple[Term, ...]:
        """Return the loss itself, once."""
        return (Term(1.0, self),)


def term_losses(terms: tuple[Term, ...], logits: Tensor, target: Tensor) -> Tensor:
    """Return the sum of the terms for each row; ``target`` holds class indices, or a factor for every class."""
    rule: Rule
    if target.is_floating_point():
        rule = _EveryClass(terms)
    elif any(term.normalized for term in terms):
        rule = _NormalizedTarget(terms)
    else:
        rule = _Target(terms)
    return rowwise_loss(rule, logits, target)


class _Target:
    """Terms without normalisation, for class indices."""

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        softmax = target_softmax(logits, target.unsqueeze(1))
        value, pull = _sum_of_terms(self.terms, softmax.target)
        return value.squeeze(1).to(logits.dtype), (pull.to(logits.dtype).expand_as(value), softmax.direction)

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        pull, direction = saved
        return scale_kept(direction, pull * grad.unsqueeze(1))

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        raise NotImplementedError("class indices have no gradient")


class _EveryClass:
    """Any terms, for a factor per class ``a_c``: the loss is ``sum_c a_c f(p_c)``.

    With ``s_c`` minus the derivative of the loss with respect to ``log p_c``, the gradient is ``p_j sum_c s_c - s_j``.
    """

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, factors: Tensor) -> Evaluation:
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
        return _total(losses).squeeze(1), (_descent(classes, _total(pulls)),)

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        return scale_kept(saved[0], -grad.unsqueeze(1))

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        classes = ClassProbabilities(logits)
        gradient = torch.zeros_like(logits)
        for factor, curve, normalized in self.terms:
            value, _ = curve.value_and_pull(classes)
            gradient = gradient + value * (factor / _nonzero(value.sum(1, keepdim=True)) if normalized else factor)
        return gradient * grad.unsqueeze(1)


class _NormalizedTarget(_EveryClass):
    """Terms of which some are normalised, for class indices: only the normalised ones look at all classes."""

    def _evaluate_rows(self, logits: Tensor, target: Tensor) -> Evaluation:
        index = target.unsqueeze(1)
        classes = ClassProbabilities(logits)
        losses, target_pulls, pulls = [], [], []
        for factor, curve, normalized in self.terms:
            if not normalized:
                value, pull = curve.value_and_pull(classes.of(index))
                losses.append(_scaled(value, factor))
                target_pulls.append(_scaled(pull, factor))
                continue
            own, own_pull, others, class_pulls = curve.against_others(classes, index)
            inverse = _nonzero(own + others).reciprocal()
            share = _scaled(inverse, factor)
            loss = own * share
            losses.append(loss)
            # The quotient own / (own + others) pulls at the target by others / (own + others)**2: no difference.
            target_pulls.append(others * inverse * share * own_pull)
            pulls.append(class_pulls * (inverse * -loss))
        pull, target_pull = _total(pulls), _total(target_pulls)
        if pull.shape[1] < logits.shape[1]:
            descent = _descent_from_alike(classes, pull, index, target_pull)
        else:
            descent = _descent(classes, overwrite(pull, index, target_pull))
        return _total(losses).squeeze(1), (descent,)


def _sum_of_terms(terms: tuple[Term, ...], target: Probability) -> tuple[Tensor, Tensor]:
    (factor, curve, _), *others = terms
    value, pull = curve.value_and_pull(target)
    value, pull = _scaled(value, factor), _scaled(pull, factor)
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


def _descent(classes: ClassProbabilities, pull: Tensor) -> Tensor:
    """Return minus the gradient with respect to the logits, ``s_j - p_j sum_c s_c``."""
    descent = add_product(pull, classes.p, -pull.sum(1, keepdim=True))
    return _balanced(classes, descent)


def _descent_from_alike(classes: ClassProbabilities, pull: Tensor, index: Tensor, target_pull: Tensor) -> Tensor:
    """Return the same where all classes but the target have the same pull, ``(N, 1, ...)``; the probabilities are used up."""
    total = torch.add(target_pull, pull, alpha=classes.p.shape[1] - 1)
    entry = target_pull - classes.p.gather(1, index) * total
    descent = add(multiply(classes.p, -total), pull)
    return _balanced(classes, overwrite(descent, index, entry))


def _balanced(classes: ClassProbabilities, descent: Tensor) -> Tensor:
    """1 - p of a class with most of the mass cancels. Its entry is what makes the sum of all entries 0."""
    if classes.top is None:
        return descent
    entry = descent.gather(1, classes.top)
    others = overwrite(descent, classes.top, 0.0)
    balance = -others.sum(1, keepdim=True)
    return overwrite(others, classes.top, torch.where(classes.largest > 0.5, balance, entry))
