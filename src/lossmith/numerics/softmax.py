"""Softmax probabilities that keep every digit where one class has nearly all of the mass.

``1 - p`` and ``log p`` of the dominating class are lost to rounding when computed from ``p`` itself. They are exact when
computed from the *other* classes: with the log-odds ``z = x_y - logsumexp(others)``, ``p`` is the sigmoid of z, ``1 - p`` that
of -z, and the gradient of ``-log p`` is ``1 - p`` times the softmax of the others, and ``-(1 - p)`` at the class itself.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from lossmith.numerics.temporaries import overwrite
from lossmith.numerics.tracing import is_traced

__all__ = [
    "ClassProbabilities",
    "Probability",
    "TargetSoftmax",
    "sum_of_gaps",
    "target_softmax",
    "values_are_at_hand",
]

# Between these probabilities a plain softmax will do. The exponential function turns the rounding of a difference of
# logits into a relative error, which is below 2**-20 for differences below 16; beyond that, log-odds in double precision.
_SMALLEST = 2**-24
_LARGEST = 1 - 2**-20
_LOWEST_LOG = math.log(_SMALLEST)
# torch's softmax adds up exponentials one after another, in 8 sums where classes are adjacent and else in one. If they are many
# and one is large, its rounding at each step is a common error of all probabilities: above 2**-19 in single precision for more.
_LONGEST_SUM = 32
# From this many classes on, and for logits below that, sums of logits are as good as sums of their differences.
_MANY = 12
_LARGEST_SUMMED = 16.0


class Probability:
    """Probabilities p with ``1 - p`` and ``log p``, each to full relative accuracy; the logarithm when first asked for."""

    def __init__(self, p: Tensor, rest: Tensor, log: Tensor | None = None) -> None:
        self.p = p
        self._rest: Tensor | None = rest
        self._log = log

    @property
    def rest(self) -> Tensor:
        """``1 - p``."""
        assert self._rest is not None
        return self._rest

    @property
    def log(self) -> Tensor:
        """``log p``."""
        if self._log is None:
            self._log = -torch.log1p(self.rest / self.p)
        return self._log

    @property
    def surprise(self) -> Tensor:
        """``-log p``."""
        return torch.log1p(self.rest / self.p) if self._log is None else -self._log

    @property
    def log_over_rest(self) -> Tensor:
        """``log p / (1 - p)``, which tends to -1 at p = 1."""
        return _log_over_rest(self.log, self.rest)


class ClassProbabilities(Probability):
    """The probabilities of all classes, for logits ``(N, C, ...)``; ``1 - p`` and ``log p`` when first asked for."""

    def __init__(self, logits: Tensor) -> None:
        self.p = _softmax(logits)
        self._rest = None
        self._log = None
        self._logits = logits
        self.largest = self.p.amax(1, keepdim=True)
        """The largest probability of each row, ``(N, 1, ...)``."""
        self.top = self._class_with_most()
        """Index of the class with most of the mass, ``(N, 1, ...)``; None where no class of any row has so much."""
        self._top = None if self.top is None else self._probability_of_top(self.top)

    def _class_with_most(self) -> Tensor | None:
        # Below 3/4 nothing cancels. To find out is cheaper than the index.
        if values_are_at_hand(self.p) and self.p.numel() and self.largest.amax().item() < 0.75:
            return None
        return self.p.argmax(1, keepdim=True)

    def _probability_of_top(self, top: Tensor) -> Probability:
        if values_are_at_hand(self.p) and self.p.numel() and self.largest.amax().item() < _LARGEST:
            return Probability(self.largest, self.p.scatter(1, top, 0.0).sum(1, keepdim=True))
        return _probability_by_log_odds(_log_odds(self._logits, top)[0])

    @property
    def rest(self) -> Tensor:
        """``1 - p``."""
        if self._rest is None:
            self._rest = 1 - self.p
            if self.top is not None and self._top is not None:
                self._rest = overwrite(self._rest, self.top, self._top.rest.to(self.p.dtype))
        return self._rest

    @property
    def log(self) -> Tensor:
        """``log p``."""
        if self._log is None:
            self._log = self._log_softmax()
            if self.top is not None and self._top is not None:
                self._log = overwrite(self._log, self.top, self._top.log.to(self.p.dtype))
        return self._log

    @property
    def surprise(self) -> Tensor:
        """``-log p``."""
        return -self.log

    def _log_softmax(self) -> Tensor:
        if not values_are_at_hand(self.p):
            return torch.log_softmax(self._logits, 1)
        # The largest probability tells the logarithm of the sum: no exponentials once more.
        return (self._logits - self._logits.amax(1, keepdim=True)).add_(self.largest.log())

    @property
    def log_over_rest(self) -> Tensor:
        """``log p / (1 - p)``, which tends to -1 at p = 1."""
        return self.log / self.rest if self.top is None else _log_over_rest(self.log, self.rest)

    def of(self, index: Tensor) -> Probability:
        """Return the probability of one class of each row, ``index`` being ``(N, 1, ...)``."""
        prob = self.p.gather(1, index)
        rest = 1 - prob
        if self.top is not None and self._top is not None:
            rest = torch.where(index == self.top, self._top.rest.to(rest.dtype), rest)
        if values_are_at_hand(prob) and _is_above(prob, _SMALLEST):
            return Probability(prob, rest)
        return Probability(prob, rest, self.log.gather(1, index))

    def sum_of_other_logs(self, index: Tensor, own_log: Tensor) -> Tensor:
        """Return the sum of ``log p`` over all classes but one, whose logarithm is given, ``(N, 1, ...)``."""
        others = self.p.shape[1] - 1
        if others < _MANY or not values_are_at_hand(own_log) or not _is_above(own_log, _LOWEST_LOG):
            return self.log.scatter(1, index, 0.0).sum(1, keepdim=True)
        # The gaps may cancel against the product, but not by more than a factor of own_log / log(others), which is below 7.
        return others * own_log - sum_of_gaps(self._logits, index, -own_log)


def _log_over_rest(log: Tensor, rest: Tensor) -> Tensor:
    """Where so little is left that the quotient overflows in derivatives, its series ends with the second term."""
    is_little = rest < torch.finfo(rest.dtype).eps
    return torch.where(is_little, -1 - rest / 2, log / torch.where(is_little, 1.0, rest))


class TargetSoftmax(NamedTuple):
    """The softmax as seen from one class of each row, for logits ``(N, C, ...)``."""

    target: Probability
    """The probability of the target, ``(N, 1, ...)``, in the precision of the logits or better."""
    direction: Tensor
    """The gradient of ``-log p``, which is the probabilities less 1 at the target, ``(N, C, ...)``."""


def target_softmax(logits: Tensor, index: Tensor) -> TargetSoftmax:
    """Return the softmax as seen from the class ``index`` ``(N, 1, ...)`` of each row."""
    moderate = _moderate_softmax(logits, index) if values_are_at_hand(logits) and logits.numel() else None
    if moderate is not None:
        return moderate
    log_odds, others, other_sum = _log_odds(logits, index)
    target = _probability_by_log_odds(log_odds)
    rest = target.rest.to(logits.dtype)
    return TargetSoftmax(target, overwrite(others * (rest / other_sum), index, -rest))


def _moderate_softmax(logits: Tensor, index: Tensor) -> TargetSoftmax | None:
    """Return the same from a plain softmax, or None where that will not do."""
    probs = torch.softmax(logits, 1)
    prob = probs.gather(1, index)
    smallest, largest = torch.aminmax(prob)
    most = largest.item()
    if not (smallest.item() > _SMALLEST and most < _LARGEST):
        return None
    if most < 0.5 and not _sums_are_long(logits):
        rest = 1 - prob
    else:
        rest = probs.scatter_(1, index, 0.0).sum(1, keepdim=True)
        total = prob + rest
        if _is_off(total):
            probs, prob, rest = (part.mul_(1 / total) for part in (probs, prob, rest))
    return TargetSoftmax(Probability(prob, rest), probs.scatter_(1, index, -rest))


def _softmax(logits: Tensor) -> Tensor:
    """Return the softmax of rows that add up to 1, also if there are many classes."""
    probs = torch.softmax(logits, 1)
    if _sums_are_long(logits) and values_are_at_hand(logits) and logits.numel():
        total = probs.sum(1, keepdim=True)
        probs = probs.mul_(1 / total) if _is_off(total) else probs
    return probs


def _sums_are_long(logits: Tensor) -> bool:
    return logits.shape[1] > _LONGEST_SUM * (8 if logits.dim() == 2 else 1)


def _is_off(total: Tensor) -> bool:
    smallest, largest = torch.aminmax(total)
    rounding = 4 * torch.finfo(total.dtype).eps
    return not (smallest.item() > 1 - rounding and largest.item() < 1 + rounding)


def sum_of_gaps(logits: Tensor, index: Tensor, surprise: Tensor) -> Tensor:
    """Return the sum over the classes of ``z_y - z_c``, ``(N, 1, ...)``, where ``surprise`` is ``-log p_y``.

    >>> logits, index = torch.tensor([[3.0, 1.0, 0.5]]), torch.tensor([[0]])
    >>> sum_of_gaps(logits, index, surprise=-torch.log_softmax(logits, 1).gather(1, index))
    tensor([[4.5000]])
    """
    own = logits.gather(1, index)
    if logits.shape[1] >= _MANY and _are_small(own, surprise):
        return torch.sub(logits.shape[1] * own, logits.sum(1, keepdim=True))
    return (own - logits).sum(1, keepdim=True)


def _are_small(own: Tensor, surprise: Tensor) -> bool:
    """Whether sums of logits round by less than ``2**-20 K log K``, the least sum of ``-log p`` over K classes, and by its share.

    ``|z_c - z_y|`` is at most the sum of both surprises, so that ``z_y`` and its own surprise tell how large all others can be.
    """
    if not values_are_at_hand(own) or not own.numel():
        return False
    return torch.maximum(own.abs(), surprise).amax().item() < _LARGEST_SUMMED


def values_are_at_hand(logits: Tensor) -> bool:
    """Whether a decision that depends on values costs nothing: not on accelerators, in graphs, recorded gradients or vmap."""
    if logits.device.type != "cpu" or torch.is_grad_enabled() or is_traced():
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


def _probability_by_log_odds(log_odds: Tensor) -> Probability:
    return Probability(torch.sigmoid(log_odds), torch.sigmoid(-log_odds), torch.nn.functional.logsigmoid(log_odds))
