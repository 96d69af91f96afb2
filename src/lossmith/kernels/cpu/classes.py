"""The probabilities of all classes in eager mode."""

import math

import torch
from torch import Tensor

from lossmith.kernels.cpu.softmax import is_off, softmax, sums_are_long
from lossmith.kernels.cpu.target import LARGEST, SMALLEST, KnownProbability
from lossmith.numerics.softmax import log_odds

__all__ = ["ClassProbabilities", "sum_of_surprises"]

# Where this little is left beside the largest probability, the others are so far behind that the rounding of the difference
# counts: a gradient whose entries are all that small needs them from double precision.
_LITTLE = math.exp(-16)


class ClassProbabilities(KnownProbability):
    """The probabilities of all classes, for logits ``(N, C, ...)``; ``1 - p`` and ``-log p`` when first asked for."""

    def __init__(self, logits: Tensor) -> None:
        self.p = _normalized_softmax(logits)
        self._rest: Tensor | None = None
        self._surprise = None
        self._raised = None
        self._logits = logits
        self._highest: Tensor | None = None
        self.largest = self.p.amax(1, keepdim=True)
        """The largest probability of each row, ``(N, 1, ...)``."""
        self.top = self._class_with_most()
        """Index of the class with most of the mass, ``(N, 1, ...)``; None where no class of any row has so much."""
        self._top = None if self.top is None else self._probability_of_top(self.top)
        if self._top is not None and logits.dtype == torch.float32:
            _round_from_double_(self.p, logits, self._top.rest.squeeze(1) < _LITTLE)

    def _class_with_most(self) -> Tensor | None:
        # Below 3/4 nothing cancels. To find out is cheaper than the index.
        if self.p.numel():
            self.most = min(1.0, self.largest.amax().item())  # 1 where some are not numbers
        return None if self.most < 0.75 else self.p.argmax(1, keepdim=True)

    def _probability_of_top(self, top: Tensor) -> KnownProbability:
        if self.most < LARGEST:
            return KnownProbability(self.largest, self.p.scatter(1, top, 0.0).sum(1, keepdim=True))
        return KnownProbability.from_log_odds(log_odds(self._logits, top))

    @property
    def rest(self) -> Tensor:  # type: ignore[override]  # of all classes, it is worth while only if it is used
        """``1 - p``."""
        if self._rest is None:
            self._rest = 1 - self.p
            if self.top is not None and self._top is not None:
                self._rest = self._rest.scatter_(1, self.top, self._top.rest.to(self.p.dtype))
        return self._rest

    @property
    def surprise(self) -> Tensor:
        """``-log p``."""
        if self._surprise is None:
            self._surprise = self._surprises()
            if self.top is not None and self._top is not None:
                self._surprise = self._surprise.scatter_(1, self.top, self._top.surprise.to(self.p.dtype))
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
        # The largest probability tells the logarithm of the sum: no exponentials once more.
        return (self.highest - self._logits).sub_(self.largest.log())

    def of(self, index: Tensor) -> KnownProbability:
        """Return the probability of one class of each row, ``index`` being ``(N, 1, ...)``."""
        prob = self.p.gather(1, index)
        rest = 1 - prob
        if self.top is not None and self._top is not None:
            rest = torch.where(index == self.top, self._top.rest.to(rest.dtype), rest)
        if _is_above(prob, SMALLEST):
            return KnownProbability(prob, rest)
        return KnownProbability(prob, rest, self.surprise.gather(1, index))

    def balanced(self, descent: Tensor) -> Tensor:
        """Return a gradient, whose entries add up to 0, with the entry of a class with most of the mass taken from the others.

        Its ``1 - p`` cancels in the entry itself.
        """
        if self.top is None:
            return descent
        entry = descent.gather(1, self.top)
        others = descent.scatter_(1, self.top, 0.0)
        balance = -others.sum(1, keepdim=True)
        return others.scatter_(1, self.top, torch.where(self.largest > 0.5, balance, entry))


def _normalized_softmax(logits: Tensor) -> Tensor:
    """Return the softmax of rows that add up to 1, also if there are many classes."""
    probs = softmax(logits)
    if sums_are_long(logits) and logits.numel():
        total = probs.sum(1, keepdim=True)
        probs = probs.mul_(1 / total) if is_off(total) else probs
    return probs


def _round_from_double_(probs: Tensor, logits: Tensor, rows: Tensor) -> None:
    """Replace rows, ``(N, ...)``, by the softmax in double precision."""
    if rows.any():
        probs.movedim(1, -1)[rows] = torch.softmax(logits.movedim(1, -1)[rows].double(), -1).to(probs.dtype)


def sum_of_surprises(logits: Tensor, factors: Tensor, place: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the sum of ``a_c (-log p_c)``, ``(N, 1, ...)``, and minus its gradient, ``a_j - p_j sum_c a_c``."""
    classes, total = ClassProbabilities(logits), factors.sum(1, keepdim=True)
    behind = (classes.highest - logits).mul_(factors).sum(1, keepdim=True)
    value = torch.addcmul(behind, total, classes.least_surprise)
    return value, classes.balanced(torch.addcmul(factors, classes.p, total, value=-1, out=place))


def _is_above(tensor: Tensor, bound: float) -> bool:
    return not tensor.numel() or tensor.amin().item() > bound
