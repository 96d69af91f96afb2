"""Softmax probabilities that keep every digit where one class has nearly all of the mass.

``1 - p`` and ``log p`` of the dominating class are lost to rounding when computed from ``p`` itself. They are exact when
computed from the *other* classes: with the log-odds ``z = x_y - logsumexp(others)``, ``p`` is the sigmoid of z, ``1 - p`` that
of -z, and the gradient of ``-log p`` is ``1 - p`` times the softmax of the others, and ``-(1 - p)`` at the class itself.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from lossmith.numerics.precision import rounded
from lossmith.numerics.probability import Probability
from lossmith.numerics.temporaries import overwrite
from lossmith.numerics.tracing import is_traced

__all__ = [
    "LOWEST_LOG",
    "ClassProbabilities",
    "TargetSoftmax",
    "mean_gap",
    "sum_of_other_surprises",
    "target_and_others",
    "target_softmax",
    "values_are_at_hand",
]

# Between these probabilities a plain softmax will do. The exponential function turns the rounding of a difference of
# logits into a relative error, which is below 2**-20 for differences below 16; beyond that, log-odds in double precision.
_SMALLEST = 2**-24
_LARGEST = 1 - 2**-20
LOWEST_LOG = math.log(_SMALLEST)
# torch's softmax adds up exponentials one after another, in 8 sums where classes are adjacent and else in one. If they are many
# and one is large, its rounding at each step is a common error of all probabilities: above 2**-21 in single precision for more.
_LONGEST_SUM = 8
_ROUNDING = {dtype: 4 * torch.finfo(dtype).eps for dtype in (torch.float32, torch.float64)}
# Where so little is left beside the largest probability, all others are behind by so much that the rounding of the difference
# counts: gradients of which every entry is as small have to have them from double precision.
_LITTLE = math.exp(-16)
# From this many classes on, and for logits below that, sums of logits are as good as sums of their differences.
_MANY = 12
_LARGEST_SUMMED = 16.0
_LEAST_SUMMED = math.exp(-_LARGEST_SUMMED)


class ClassProbabilities(Probability):
    """The probabilities of all classes, for logits ``(N, C, ...)``; ``1 - p`` and ``-log p`` when first asked for."""

    def __init__(self, logits: Tensor) -> None:
        self.p = _softmax(logits)
        self._rest = None
        self._surprise = None
        self._logits = logits
        self._highest: Tensor | None = None
        self.largest = self.p.amax(1, keepdim=True)
        """The largest probability of each row, ``(N, 1, ...)``."""
        self.top = self._class_with_most()
        """Index of the class with most of the mass, ``(N, 1, ...)``; None where no class of any row has so much."""
        self._top = None if self.top is None else self._probability_of_top(self.top)
        if self._top is not None and values_are_at_hand(logits) and logits.dtype == torch.float32:
            _round_from_double_(self.p, logits, self._top.rest.squeeze(1) < _LITTLE)

    def _class_with_most(self) -> Tensor | None:
        # Below 3/4 nothing cancels. To find out is cheaper than the index.
        if values_are_at_hand(self.p) and self.p.numel():
            self.most = min(1.0, self.largest.amax().item())  # 1 where some are no numbers
        return None if self.most < 0.75 else self.p.argmax(1, keepdim=True)

    def _probability_of_top(self, top: Tensor) -> Probability:
        if self.most < _LARGEST:
            return Probability(self.largest, self.p.scatter(1, top, 0.0).sum(1, keepdim=True))
        return Probability.from_log_odds(_log_odds(self._logits, top)[0])

    @property
    def rest(self) -> Tensor:
        """``1 - p``."""
        if self._rest is None:
            self._rest = 1 - self.p
            if self.top is not None and self._top is not None:
                self._rest = overwrite(self._rest, self.top, self._top.rest.to(self.p.dtype))
        return self._rest

    @property
    def surprise(self) -> Tensor:
        """``-log p``."""
        if self._surprise is None:
            self._surprise = self._surprises()
            if self.top is not None and self._top is not None:
                self._surprise = overwrite(self._surprise, self.top, self._top.surprise.to(self.p.dtype))
        return self._surprise

    @property
    def highest(self) -> Tensor:
        """The largest logit of each row, ``(N, 1, ...)``."""
        if self._highest is None:
            self._highest = self._logits.amax(1, keepdim=True)
        return self._highest

    @property
    def least_surprise(self) -> Tensor:
        """``-log p`` of the largest p of each row, ``(N, 1, ...)``."""
        return -self.largest.log() if self._top is None else self._top.surprise.to(self.p.dtype)

    def _surprises(self) -> Tensor:
        if not values_are_at_hand(self.p):
            return -torch.log_softmax(self._logits, 1)
        # The largest probability tells the logarithm of the sum: no exponentials once more.
        return (self.highest - self._logits).sub_(self.largest.log())

    def of(self, index: Tensor) -> Probability:
        """Return the probability of one class of each row, ``index`` being ``(N, 1, ...)``."""
        prob = self.p.gather(1, index)
        rest = 1 - prob
        if self.top is not None and self._top is not None:
            rest = torch.where(index == self.top, self._top.rest.to(rest.dtype), rest)
        if values_are_at_hand(prob) and _is_above(prob, _SMALLEST):
            return Probability(prob, rest)
        return Probability(prob, rest, self.surprise.gather(1, index))


class TargetSoftmax(NamedTuple):
    """The softmax as seen from one class of each row, for logits ``(N, C, ...)``."""

    target: Probability
    """The probability of the target, ``(N, 1, ...)``, in the precision of the logits or better."""
    direction: Tensor
    """The gradient of ``-log p``, which is the probabilities less 1 at the target, ``(N, C, ...)``."""


def target_softmax(logits: Tensor, index: Tensor) -> TargetSoftmax:
    """Return the softmax as seen from the class ``index`` ``(N, 1, ...)`` of each row."""
    target, others = target_and_others(logits, index)
    return TargetSoftmax(target, overwrite(others, index, -rounded(target.rest, logits)))


def target_and_others(logits: Tensor, index: Tensor) -> tuple[Probability, Tensor]:
    """Return the probability of one class of each row, and those of all others, ``(N, C, ...)``; in its own place is anything."""
    moderate = _moderate_softmax(logits, index) if values_are_at_hand(logits) and logits.numel() else None
    if moderate is not None:
        return moderate
    log_odds, others, other_sum = _log_odds(logits, index)
    target = Probability.from_log_odds(log_odds)
    return target, others * (rounded(target.rest, logits) / other_sum)


def _moderate_softmax(logits: Tensor, index: Tensor) -> tuple[Probability, Tensor] | None:
    """Return the same from a plain softmax, or None where that will not do."""
    probs = torch.softmax(logits, 1)
    prob = probs.gather(1, index)
    smallest, largest = torch.aminmax(prob)
    least, most = smallest.item(), largest.item()
    if not (least > _SMALLEST and most < _LARGEST):
        return None
    if most < 0.5 and not _sums_are_long(logits):
        rest = 1 - prob
    else:
        if most < 0.5:
            total = probs.sum(1, keepdim=True)
            rest = total - prob
        else:
            rest = probs.scatter_(1, index, 0.0).sum(1, keepdim=True)
            total = prob + rest
        if _is_off(total):
            probs, prob, rest = (part.mul_(1 / total) for part in (probs, prob, rest))
    target = Probability(prob, rest)
    target.least, target.most = least, most
    return target, probs


def _softmax(logits: Tensor) -> Tensor:
    """Return the softmax of rows that add up to 1, also if there are many classes."""
    probs = torch.softmax(logits, 1)
    if _sums_are_long(logits) and values_are_at_hand(logits) and logits.numel():
        total = probs.sum(1, keepdim=True)
        probs = probs.mul_(1 / total) if _is_off(total) else probs
    return probs


def _round_from_double_(probs: Tensor, logits: Tensor, rows: Tensor) -> None:
    """Replace rows, ``(N, ...)``, by the softmax in double precision."""
    if rows.any():
        probs.movedim(1, -1)[rows] = torch.softmax(logits.movedim(1, -1)[rows].double(), -1).to(probs.dtype)


def _sums_are_long(logits: Tensor) -> bool:
    return logits.shape[1] > _LONGEST_SUM * (8 if logits.dim() == 2 else 1)


def _is_off(total: Tensor) -> bool:
    smallest, largest = torch.aminmax(total)
    rounding = _ROUNDING[total.dtype]
    return not (smallest.item() > 1 - rounding and largest.item() < 1 + rounding)


def mean_gap(logits: Tensor, index: Tensor, target: Probability) -> Tensor:
    """Return the mean of ``z_y - z_c`` over the classes, ``(N, 1, ...)``, where y has the probability ``target``.

    >>> logits, index = torch.tensor([[3.0, 1.0, 0.5]]), torch.tensor([[0]])
    >>> mean_gap(logits, index, target_softmax(logits, index).target)
    tensor([[1.5000]])
    """
    own = logits.gather(1, index)
    if logits.shape[1] > _MANY and _are_small(own, target):
        return torch.sub(own, logits.sum(1, keepdim=True), alpha=1 / logits.shape[1])
    return (own - logits).mean(1, keepdim=True)


def _are_small(own: Tensor, target: Probability) -> bool:
    """Whether sums of logits round by less than ``2**-20 K log K``, the least sum of ``-log p`` over K classes, and by its share.

    ``|z_c - z_y|`` is at most the sum of both surprises, so that ``z_y`` and its own surprise tell how large all others can be.
    """
    if target.least < _LEAST_SUMMED:  # also where values are not at hand
        return False
    low, high = torch.aminmax(own)
    return low.item() > -_LARGEST_SUMMED and high.item() < _LARGEST_SUMMED


def sum_of_other_surprises(logits: Tensor, index: Tensor, target: Probability) -> Tensor:
    """Return the sum of ``-log p_c`` over all classes but one, whose probability is given, ``(N, 1, ...)``.

    >>> logits, index = torch.tensor([[3.0, 1.0, 0.5]]), torch.tensor([[0]])
    >>> sum_of_other_surprises(logits, index, target_softmax(logits, index).target)
    tensor([[4.8935]], dtype=torch.float64)
    """
    num_classes, surprise = logits.shape[1], target.surprise
    if num_classes == 2:
        return target.rest_surprise
    if num_classes > _MANY and target.least:
        # The gaps may cancel against the product, but not by more than a factor of surprise / log(others), which is below 7.
        return torch.add((num_classes - 1) * surprise, mean_gap(logits, index, target), alpha=num_classes)
    top = logits.amax(1, keepdim=True).detach()
    behind = (top - logits).sum(1, keepdim=True)
    if surprise.dtype == logits.dtype:
        log_total = (logits - top).exp().sum(1, keepdim=True).log()
        return (num_classes - 1) * log_total + behind - (top - logits.gather(1, index))
    # From the surprise, which is exact to the rounding of 1 however large it is: no exponentials once more.
    own_behind = top.to(surprise.dtype) - logits.gather(1, index)
    return (num_classes - 1) * (surprise - own_behind) + (behind - own_behind)


def values_are_at_hand(logits: Tensor) -> bool:
    """Whether a decision that depends on values costs nothing: not on accelerators, in graphs, recorded gradients or vmap."""
    if torch.is_grad_enabled() or not logits.is_cpu or is_traced():
        return False
    return not torch._C._are_functorch_transforms_active()


def _is_above(tensor: Tensor, bound: float) -> bool:
    return not tensor.numel() or tensor.amin().item() > bound


def _log_odds(logits: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log-odds of one class of each row, the exponentials of the others less their largest, and their sum.

    The log-odds are in double precision: their absolute error is the relative error of what they are exponents of.
    """
    own = logits.gather(1, index)
    others = logits.scatter(1, index, -torch.inf)
    shift = others.amax(1, keepdim=True).detach()
    shift = torch.where(shift == -torch.inf, 0.0, shift)
    exponentials = torch.exp(others - shift)
    total = exponentials.sum(1, keepdim=True)
    alone = total == 0  # no other class, or none with a finite logit
    total = torch.where(alone, 1.0, total)
    wide = torch.float64 if logits.device.type != "mps" else logits.dtype
    log_odds = own.to(wide) - shift.to(wide) - torch.log(total)
    # Certain of a class that is alone, but of nothing where its logit is no number.
    certain = torch.where(own.isfinite(), torch.inf, torch.nan)
    return torch.where(alone | (own == torch.inf), certain, log_odds), exponentials, total
