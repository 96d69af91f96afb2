"""One kernel for every loss that looks only at the target's probability, and for quotients and sums of such losses.

Such a loss is ``f(log p_y)``; its gradient with respect to the logits is ``f'(log p_y) (onehot - p)``. A normalised loss
divides by the sum of ``f(log p_c)`` over all classes. A published combination is a weighted sum of both kinds, and costs
one softmax: the kernel works on a tuple of terms.
"""

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from lossmith.losses.contract import ClassificationLoss
from lossmith.numerics.rowwise import Evaluation, Rule, in_blocks, rowwise_loss
from lossmith.numerics.softmax import ClassSoftmax, class_softmax, overwrite, target_softmax

__all__ = ["TargetProbabilityLoss", "Term", "TermLoss", "term_losses"]


class Term(NamedTuple):
    """``factor * f(log p_y)``, divided by the sum of ``f`` over the classes if ``normalized``."""

    factor: float
    curve: "TargetProbabilityLoss"
    normalized: bool = False


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
    """Base of the losses ``f(log p_y)``: a subclass gives ``f`` and its slope."""

    @abstractmethod
    def value_and_slope(self, log_p: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``f(log p)`` and its derivative with respect to ``log p``, each to full relative accuracy."""

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
    """Terms without normalisation, for class indices: the gradient is a multiple of ``onehot - p``."""

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        softmax = target_softmax(logits, target.unsqueeze(1))
        value, slope = _sum_of_curves(self.terms, softmax.log_prob)
        return value.squeeze(1), (slope, softmax.rest, softmax.other_probs)

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        slope, rest, other_probs = saved
        pull = grad.unsqueeze(1) * slope
        return overwrite(other_probs * -pull, target.unsqueeze(1), pull * rest)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        raise NotImplementedError("class indices have no gradient")


class _EveryClass:
    """Any terms, for a factor per class ``a_c``: the loss is ``sum_c a_c f(log p_c)``.

    With ``h_c`` the derivative of the loss with respect to ``log p_c``, the gradient is ``h_j - p_j sum_c h_c``.
    """

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, factors: Tensor) -> Evaluation:
        softmax = class_softmax(logits)
        losses: Tensor | float = 0.0
        slopes: Tensor | float = 0.0
        for factor, curve, normalized in self.terms:
            value, slope = curve.value_and_slope(softmax.log_probs)
            total = (factors * value).sum(1, keepdim=True)
            if normalized:
                scale, share = _quotient(total, value.sum(1, keepdim=True), factor)
                losses, slopes = losses + total * scale, slopes + slope * (factors * scale - share)
            else:
                losses, slopes = losses + factor * total, slopes + factor * factors * slope
        assert isinstance(losses, Tensor)
        assert isinstance(slopes, Tensor)
        return losses.squeeze(1), (_logit_gradient(softmax, slopes),)

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        return grad.unsqueeze(1) * saved[0]

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        log_probs = class_softmax(logits).log_probs
        gradient = torch.zeros_like(log_probs)
        for factor, curve, normalized in self.terms:
            value, _ = curve.value_and_slope(log_probs)
            scale = _quotient(value, value.sum(1, keepdim=True), factor)[0] if normalized else factor
            gradient = gradient + scale * value
        return grad.unsqueeze(1) * gradient


class _NormalizedTarget(_EveryClass):
    """Terms of which some are normalised, for class indices."""

    def _evaluate_rows(self, logits: Tensor, target: Tensor) -> Evaluation:
        factors = torch.zeros_like(logits).scatter_(1, target.unsqueeze(1), 1.0)
        return super()._evaluate_rows(logits, factors)


def _sum_of_curves(terms: tuple[Term, ...], log_p: Tensor) -> tuple[Tensor, Tensor]:
    (factor, curve, _), *others = terms
    value, slope = curve.value_and_slope(log_p)
    if factor != 1:
        value, slope = factor * value, factor * slope
    for factor, curve, _ in others:
        next_value, next_slope = curve.value_and_slope(log_p)
        value, slope = value + factor * next_value, slope + factor * next_slope
    return value, slope


def _quotient(numerator: Tensor, denominator: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    """Return ``factor / denominator`` and ``factor * numerator / denominator**2``; a single class costs nothing."""
    inverse = 1 / torch.where(denominator == 0, 1.0, denominator)
    return factor * inverse, factor * inverse * (numerator * inverse)


def _logit_gradient(softmax: ClassSoftmax, slopes: Tensor) -> Tensor:
    gradient = slopes - softmax.probs * slopes.sum(1, keepdim=True)
    # 1 - p of a class with most of the mass cancels. Its entry is what makes the sum of all entries 0.
    others = gradient.scatter(1, softmax.top, 0.0).sum(1, keepdim=True)
    has_most = softmax.probs.gather(1, softmax.top) > 0.5
    top_entry = torch.where(has_most, -others, gradient.gather(1, softmax.top))
    return overwrite(gradient, softmax.top, top_entry)
