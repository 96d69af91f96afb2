"""Sums of functions of a probability that look at all classes, with their gradients in closed form."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from lossmith.kernels.cpu.classes import ClassProbabilities, sum_of_surprises
from lossmith.kernels.cpu.evaluation import Evaluation, Kernel, in_blocks
from lossmith.kernels.cpu.target import (
    LOWEST_LOG,
    KnownProbability,
    rounded,
    sum_of_other_surprises,
    sum_of_terms,
    target_and_others,
)
from lossmith.kernels.reference import Term, cross_entropy

__all__ = ["kernel_of_classes"]

Terms = tuple[Term, ...]


def kernel_of_classes(terms: Terms, target: Tensor) -> Kernel:
    """Return the kernel for terms of all classes: some are normalised, or the target has a factor for every class."""
    if target.is_floating_point():
        is_surprise = all(term.curve is cross_entropy and not term.normalized for term in terms)
        return _with_terms(_every_surprise if is_surprise else _every_class, terms)
    if all(term.curve is cross_entropy for term in terms if term.normalized):
        return lambda logits, target, _: _target_among_surprises(terms, logits, target)
    return _with_terms(_target_among_classes, terms)


def _with_terms(evaluate: Callable[[Terms, Tensor, Tensor, Tensor | None], Evaluation], terms: Terms) -> Kernel:
    return lambda logits, target, _: in_blocks(lambda *rows: evaluate(terms, *rows), logits, target)


def _target_among_surprises(terms: Terms, logits: Tensor, target: Tensor) -> Evaluation:
    """Terms of which the normalised ones are cross-entropy, for class indices: all classes but the target are pulled alike.

    With the pull S at the target and -s at each other class, the gradient is ``p_j (S - (K - 1) s) + s``, and at the target
    ``-(S (1 - p_y) + (K - 1) s p_y)``, of which nothing cancels.
    """
    index, others = target.unsqueeze(1), logits.shape[1] - 1
    prob, probs = target_and_others(logits, index)
    value, pull, share = _value_and_pulls(terms, logits, index, prob)
    entry = rounded(torch.addcmul(pull * prob.rest, share, prob.p, value=others).neg(), logits)
    if others == 1:
        gradient = (-entry).expand_as(logits).contiguous().scatter_(1, index, entry)
    else:
        total = torch.sub(pull, share, alpha=others)
        gradient = probs.mul_(rounded(total, logits)).add_(rounded(share, logits)).scatter_(1, index, entry)
    hard = _hard_rows(logits, prob.surprise, is_moderate=prob.least > 0)
    found = Evaluation(rounded(value, logits).squeeze(1), gradient)
    return _evaluated_again(lambda rows, labels: _target_among_surprises(terms, rows, labels), logits, target, hard, found)


def _value_and_pulls(terms: Terms, logits: Tensor, index: Tensor, target: KnownProbability) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sum of all terms, the pull at the target, and minus that at each other class."""
    own, rest = target.surprise, sum_of_other_surprises(logits, index, target)
    total = own + rest
    inverse = (_nonzero(total) if logits.shape[1] == 1 else total).reciprocal()
    factor = sum(term.factor for term in terms if term.normalized)
    value = _times(own * inverse, factor)
    # The quotient own / (own + rest) pulls at the target by rest / (own + rest)**2: no difference.
    pull = _times(rest * inverse * inverse, factor)
    share = value * inverse
    plain = tuple(term for term in terms if not term.normalized)
    if plain:
        plain_value, plain_pull = sum_of_terms(plain, target)
        value, pull = value + plain_value, pull + plain_pull
    return value, pull, share


def _every_class(terms: Terms, logits: Tensor, factors: Tensor, place: Tensor | None) -> Evaluation:
    """Any terms, for a factor per class ``a_c``: the loss is ``sum_c a_c f(p_c)``.

    With ``s_c`` minus the derivative of the loss with respect to ``log p_c``, the gradient is ``p_j sum_c s_c - s_j``.
    """
    # The factor of a single term is that of the gradient, which costs nothing.
    common, terms = (terms[0].factor, (terms[0]._replace(factor=1.0),)) if len(terms) == 1 else (1.0, terms)
    classes = ClassProbabilities(logits)
    plain = tuple(term for term in terms if not term.normalized)
    losses, pulls = [], []
    if plain:
        value, pull = sum_of_terms(plain, classes)
        losses.append((factors * value).sum(1, keepdim=True))
        pulls.append(factors * pull)
    for factor, curve, _ in (term for term in terms if term.normalized):
        value, pull = curve(classes)
        inverse = 1 / _nonzero(value.sum(1, keepdim=True))
        loss = (factors * value).sum(1, keepdim=True).mul_(inverse)
        losses.append(_times(loss, factor))
        weights = (factors - loss).mul_(_times(inverse, factor))
        pulls.append(weights if isinstance(pull, float) and pull == 1 else weights.mul_(pull))
    return Evaluation(_times(_total(losses), common).squeeze(1), _descent(classes, _total(pulls), place), -common)


def _every_surprise(terms: Terms, logits: Tensor, factors: Tensor, place: Tensor | None) -> Evaluation:
    """Cross-entropy alone, for a factor per class, which takes no logarithm per class."""
    losses, descent = sum_of_surprises(logits, factors, place)
    factor = sum(term.factor for term in terms)
    return Evaluation(_times(losses, factor).squeeze(1), descent, -factor)


def _target_among_classes(terms: Terms, logits: Tensor, target: Tensor, place: Tensor | None) -> Evaluation:
    """Terms of which some are normalised, for class indices: only the normalised ones look at all classes."""
    index, classes = target.unsqueeze(1), ClassProbabilities(logits)
    losses, pulls = [], []
    target_pull: Tensor | float = 0.0
    for factor, curve, normalized in terms:
        if not normalized:
            value, pull = curve(classes.of(index))
            losses.append(_times(value, factor))
            target_pull = target_pull + factor * pull
            continue
        values, class_pulls = curve(classes)
        own, others, total = _against_others(values, index)
        inverse = _nonzero(total).reciprocal()
        share = _times(inverse, factor)
        loss = own * share
        losses.append(loss)
        # The quotient own / (own + others) pulls at the target by others / (own + others)**2: no difference.
        own_pull = class_pulls.gather(1, index) if isinstance(class_pulls, Tensor) else class_pulls
        target_pull = target_pull + others * inverse * share * own_pull
        pulls.append(class_pulls * (inverse * -loss))
    descent = _descent(classes, _total(pulls).scatter_(1, index, target_pull), place)
    hard = _hard_rows(logits, classes.highest - logits.gather(1, index), is_moderate=False)
    found = Evaluation(_total(losses).squeeze(1), descent, -1.0)
    return _evaluated_again(lambda rows, labels: _target_among_classes(terms, rows, labels, None), logits, target, hard, found)


def _against_others(values: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the value at the target, the sum of the others, and that of all."""
    own, total = values.gather(1, index), values.sum(1, keepdim=True)
    if (own + own <= total).all():
        return own, total - own, total
    others = values.scatter(1, index, 0.0).sum(1, keepdim=True)
    return own, others, own + others


def _hard_rows(logits: Tensor, surprise: Tensor, is_moderate: bool) -> Tensor | None:
    """Return where single precision will not do: entries of the other classes nearly cancel if the target is very improbable.

    They are ``log p_y`` times ``1 - (K - 1) p_j``, beside the sum of the other logarithms, which is above ``(K - 1) log(K - 1)``.
    """
    others = logits.shape[1] - 1
    if logits.dtype != torch.float32 or others < 2:
        return None
    limit = 4 * others * math.log(others)
    return None if is_moderate and limit > -LOWEST_LOG else (surprise > limit).squeeze(1)


def _evaluated_again(
    evaluate: Callable[[Tensor, Tensor], Evaluation], logits: Tensor, target: Tensor, rows: Tensor | None, found: Evaluation
) -> Evaluation:
    """Replace what was found for certain rows, ``(N, ...)``, by what double precision gives."""
    if rows is not None and rows.any():
        exact = evaluate(logits.movedim(1, -1)[rows].double(), target[rows])
        found.losses[rows] = exact.losses.to(logits.dtype)
        found.direction.movedim(1, -1)[rows] = exact.direction.to(logits.dtype)
    return found


def _times(tensor: Tensor, factor: float) -> Tensor:
    return tensor if factor == 1 else factor * tensor


def _nonzero(denominator: Tensor) -> Tensor:
    """A single class, whose losses are all 0, costs nothing instead of 0 / 0."""
    return denominator.masked_fill(denominator == 0, 1.0)


def _total(parts: list[Tensor]) -> Tensor:
    return sum(parts[1:], start=parts[0])


def _descent(classes: ClassProbabilities, pull: Tensor, place: Tensor | None) -> Tensor:
    """Return minus the gradient with respect to the logits, ``s_j - p_j sum_c s_c``; the pull is used up."""
    total = pull.sum(1, keepdim=True)
    return classes.balanced(torch.addcmul(pull, classes.p, total, value=-1, out=pull if place is None else place))
