"""Functions of the target's probability: from a plain softmax where all rows are moderate, from log-odds where some are not.

A term is ``f(p_y)``; with the pull ``s = -df / dlog p_y``, its gradient with respect to the logits is ``s (p - onehot)``. All
terms of a loss share one softmax.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from lossmith.kernels.cpu.evaluation import Evaluation, Kernel
from lossmith.kernels.cpu.softmax import SHORT_SUM, is_off, softmax, sums_are_long
from lossmith.kernels.reference import Term
from lossmith.numerics.elementary import softplus
from lossmith.numerics.probability import Probability
from lossmith.numerics.softmax import log_odds, odds_against

__all__ = [
    "LARGEST",
    "LOWEST_LOG",
    "SMALLEST",
    "KnownProbability",
    "TargetSoftmax",
    "kernel_of_target",
    "mean_gap",
    "rounded",
    "sum_of_other_surprises",
    "sum_of_terms",
    "target_and_others",
    "target_softmax",
]

# Between these probabilities a plain softmax will do. The exponential function turns the rounding of a difference of
# logits into a relative error, which is below 2**-20 for differences below 16; beyond that, log-odds in double precision.
SMALLEST = 2**-24
LARGEST = 1 - 2**-20
LOWEST_LOG = math.log(SMALLEST)
# From this many classes on, and for logits below that, sums of logits are as good as sums of their differences.
_MANY = 12
_LARGEST_SUMMED = 16.0
_LEAST_SUMMED = math.exp(-_LARGEST_SUMMED)
# Where more than that is left beside p, -log p / (1 - p) is as good as its parts.
_MUCH = 2**-20
# exp(-1/4) is far enough from 1 to be subtracted from it.
_FAR = 0.25
# Of fewer numbers it takes longer to find the extremes than to do without.
_WORTH_A_LOOK = 4096


def kernel_of_target(terms: tuple[Term, ...]) -> Kernel:
    """Return the kernel for terms without normalisation, for class indices."""
    return lambda logits, target, _: _evaluate(terms, logits, target)


def _evaluate(terms: tuple[Term, ...], logits: Tensor, target: Tensor) -> Evaluation:
    """Terms without normalisation, for class indices: the pull is kept apart from the direction ``p - onehot``."""
    found = target_softmax(logits, target.unsqueeze(1))
    value, pull = sum_of_terms(terms, found.target)
    return Evaluation(
        rounded(value, logits).squeeze(1), found.direction, rounded(pull, logits) if isinstance(pull, Tensor) else pull
    )


def sum_of_terms(terms: tuple[Term, ...], probability: Probability) -> tuple[Tensor, Tensor | float]:
    """Return the value and the pull of a sum of terms."""
    (factor, curve, _), *others = terms
    value, pull = curve(probability)
    if factor != 1:
        value, pull = factor * value, factor * pull
    for factor, curve, _ in others:
        next_value, next_pull = curve(probability)
        value = torch.add(value, next_value, alpha=factor)
        pull = _added(pull, next_pull, factor)
    return value, pull


def _added(pull: Tensor | float, more: Tensor | float, factor: float) -> Tensor | float:
    if isinstance(pull, Tensor) and isinstance(more, Tensor):
        return torch.add(pull, more, alpha=factor)
    if isinstance(more, Tensor):
        return torch.rsub(more, pull, alpha=-factor)
    return pull + factor * more


class KnownProbability(Probability):
    """Probabilities of which bounds are known."""

    least = 0.0
    """A lower bound of all p, if one is known."""
    most = 1.0
    """An upper bound of all p, if one is known."""

    def __init__(self, p: Tensor, rest: Tensor, surprise: Tensor | None = None) -> None:
        self.p = p
        self.rest = rest
        self._surprise = surprise
        self._raised: tuple[float, Tensor] | None = None

    @classmethod
    def from_log_odds(cls, log_odds: Tensor) -> "KnownProbability":
        """Return the probability whose odds have these logarithms."""
        return cls(torch.sigmoid(log_odds), torch.sigmoid(-log_odds), softplus(-log_odds))

    @property
    def surprise_over_rest(self) -> Tensor:
        """``-log p / (1 - p)``."""
        return self.surprise / self.rest if self.most < 1 - _MUCH else super().surprise_over_rest

    def focal_growth(self, gamma: float) -> Tensor:
        """``1 - gamma p log p / (1 - p)``, in one buffer: a tenth of the time of the focal loss of many probabilities."""
        return self.surprise_over_rest.mul_(self.p).mul_(gamma).add_(1)

    def power(self, exponent: float) -> Tensor:
        """``p**exponent``, kept for the next time."""
        if self._raised is None or self._raised[0] != exponent:
            # A power of a moderate p is exact, and takes one pass where the logarithm is not needed.
            raised = self.p**exponent if self.least else _exp_of_multiple(self.surprise, -exponent)
            self._raised = exponent, raised
        return self._raised[1]

    def fall(self, exponent: float) -> Tensor:
        """``(1 - p**exponent) / exponent``: a difference where all p are far from 1."""
        if exponent == 0 or exponent * math.log(self.most) > -_FAR:
            return super().fall(exponent)
        return torch.rsub(self.power(exponent), 1 / exponent, alpha=1 / exponent)

    def box_cox(self, log_x: Tensor, power: float) -> Tensor:
        """``(x**power - 1) / power``: a difference where many x are all far from 1, a seventh of the time of agce."""
        if power == 0 or log_x.numel() < _WORTH_A_LOOK:
            return super().box_cox(log_x, power)
        ends = [power * end.item() for end in torch.aminmax(log_x)]
        if not (max(ends) < -_FAR or min(ends) > _FAR):
            return super().box_cox(log_x, power)
        return _exp_of_multiple(log_x, power).sub_(1).mul_(1 / power)

    def rest_power(self, exponent: float) -> Tensor:
        """``(1 - p)**exponent``; nothing is differentiated here."""
        return self.rest**exponent

    def log_shifted(self, shift: float) -> Tensor:
        """``log((p + shift) / (1 + shift))``, without a choice for each p where all are on one side."""
        if shift >= 1:
            return torch.log1p(self.rest * (-1 / (1 + shift)))
        if shift > 0 and self.most < (1 - shift) / 2:
            return torch.log((self.p + shift).mul_(1 / (1 + shift)))
        return super().log_shifted(shift)


class TargetSoftmax(NamedTuple):
    """The softmax as seen from one class of each row, for logits ``(N, C, ...)``."""

    target: KnownProbability
    """The probability of the target, ``(N, 1, ...)``, in the precision of the logits or better."""
    direction: Tensor
    """The gradient of ``-log p``, which is the probabilities less 1 at the target, ``(N, C, ...)``."""


def target_softmax(logits: Tensor, index: Tensor) -> TargetSoftmax:
    """Return the softmax as seen from the class ``index`` ``(N, 1, ...)`` of each row."""
    target, others = target_and_others(logits, index)
    return TargetSoftmax(target, others.scatter_(1, index, -rounded(target.rest, logits)))


def target_and_others(logits: Tensor, index: Tensor) -> tuple[KnownProbability, Tensor]:
    """Return the probability of one class of each row, and those of all others, ``(N, C, ...)``; its own place holds anything."""
    moderate = _moderate_softmax(logits, index) if logits.numel() else None
    if moderate is not None:
        return moderate
    odds, others, other_sum = odds_against(logits.gather(1, index), logits.scatter(1, index, -torch.inf), overwrite=True)
    target = KnownProbability.from_log_odds(odds)
    return target, others.mul_(rounded(target.rest, logits) / other_sum)


def _moderate_softmax(logits: Tensor, index: Tensor) -> tuple[KnownProbability, Tensor] | None:
    """Return the same from a plain softmax, or None where that will not do."""
    probs = softmax(logits)
    prob = probs.gather(1, index)
    smallest, largest = torch.aminmax(prob)
    least, most = smallest.item(), largest.item()
    if not (least > SMALLEST and most < LARGEST):
        return None
    total = None
    if most >= 0.5:
        rest = probs.scatter_(1, index, 0.0).sum(1, keepdim=True)
        total = prob + rest if logits.shape[1] > SHORT_SUM else None
    elif sums_are_long(logits):
        total = probs.sum(1, keepdim=True)
        rest = total - prob
    else:
        rest = 1 - prob
    if total is not None and is_off(total):
        probs, prob, rest = (part.mul_(1 / total) for part in (probs, prob, rest))
    target = KnownProbability(prob, rest)
    target.least, target.most = least, most
    return target, probs


def mean_gap(logits: Tensor, index: Tensor, target: KnownProbability) -> Tensor:
    """Return the mean of ``z_y - z_c`` over the classes, ``(N, 1, ...)``, where y has the probability ``target``.

    >>> logits, index = torch.tensor([[3.0, 1.0, 0.5]]), torch.tensor([[0]])
    >>> mean_gap(logits, index, target_softmax(logits, index).target)
    tensor([[1.5000]])
    """
    own = logits.gather(1, index)
    if logits.shape[1] > _MANY and _are_small(own, target):
        return torch.sub(own, logits.sum(1, keepdim=True), alpha=1 / logits.shape[1])
    return (own - logits).mean(1, keepdim=True)


def _are_small(own: Tensor, target: KnownProbability) -> bool:
    """Whether sums of logits round by less than ``2**-20 K log K``, the least sum of ``-log p`` over K classes, and by its share.

    ``|z_c - z_y|`` is at most the sum of both surprises, so that ``z_y`` and its own surprise tell how large all others can be.
    """
    if target.least < _LEAST_SUMMED:  # also where values are not at hand
        return False
    low, high = torch.aminmax(own)
    return low.item() > -_LARGEST_SUMMED and high.item() < _LARGEST_SUMMED


def sum_of_other_surprises(logits: Tensor, index: Tensor, target: KnownProbability) -> Tensor:
    """Return the sum of ``-log p_c`` over all classes but one, whose probability is given, ``(N, 1, ...)``.

    >>> logits, index = torch.tensor([[3.0, 1.0, 0.5]]), torch.tensor([[0]])
    >>> sum_of_other_surprises(logits, index, target_softmax(logits, index).target)
    tensor([[4.8935]])
    """
    num_classes, surprise = logits.shape[1], target.surprise
    if num_classes == 2:
        return torch.log1p(target.p / target.rest) if target.least else softplus(log_odds(logits, index))
    if num_classes > _MANY and target.least:
        # The gaps may cancel against the product, but not by more than a factor of surprise / log(others), which is below 7.
        return torch.add((num_classes - 1) * surprise, mean_gap(logits, index, target), alpha=num_classes)
    top = logits.amax(1, keepdim=True).detach()
    behind = (top - logits).sum(1, keepdim=True)
    if surprise.dtype == logits.dtype:
        log_total = (logits - top).exp().sum(1, keepdim=True).log()
        return (num_classes - 1) * log_total + behind - (top - logits.gather(1, index))
    # From the surprise, which is exact to the rounding of 1 however large it is; the exponentials are not needed again.
    own_behind = top.to(surprise.dtype) - logits.gather(1, index)
    return (num_classes - 1) * (surprise - own_behind) + (behind - own_behind)


def rounded(tensor: Tensor, like: Tensor) -> Tensor:
    """Return the tensor in the precision of another; converting one that already has it would cost as much as an addition."""
    return tensor if tensor.dtype == like.dtype else tensor.to(like.dtype)


def _exp_of_multiple(x: Tensor, factor: float) -> Tensor:
    """Return ``exp(factor * x)`` as a power of 2, which takes 0.4 times as long: the product has to be rounded anyway."""
    return (x * (factor * math.log2(math.e))).exp2_()
