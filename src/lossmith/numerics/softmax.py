"""Softmax probabilities that keep every digit where one class has nearly all of the mass.

``1 - p`` and ``log p`` of the dominating class are lost to rounding when computed from ``p`` itself. They are exact when
computed from the *other* classes: with the log-odds ``z = x_y - logsumexp(others)``, ``p`` is the sigmoid of z, ``1 - p`` that
of -z, and the gradient of ``-log p`` is ``1 - p`` times the softmax of the others, and ``-(1 - p)`` at the class itself.
"""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "ClassProbabilities",
    "Probability",
    "TargetSoftmax",
    "add_number",
    "add_product",
    "overwrite",
    "target_softmax",
    "values_are_at_hand",
]

# Between these probabilities a plain softmax will do. The exponential function turns the rounding of a difference of
# logits into a relative error, which is below 2**-20 for differences below 16; beyond that, log-odds in double precision.
_SMALLEST = 2**-24
_LARGEST = 1 - 2**-20


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


class ClassProbabilities(Probability):
    """The probabilities of all classes, for logits ``(N, C, ...)``; ``1 - p`` and ``log p`` when first asked for."""

    def __init__(self, logits: Tensor) -> None:
        self.p = torch.softmax(logits, 1)
        self._rest = None
        self._log = None
        self._logits = logits
        self.top = self._class_with_most()
        """Index of the class with most of the mass, ``(N, 1, ...)``; None where no class of any row has so much."""
        self._top = None if self.top is None else _probability_by_log_odds(_log_odds(logits, self.top)[0])

    def _class_with_most(self) -> Tensor | None:
        # Below 3/4 nothing cancels. To find out is cheaper than the index.
        if values_are_at_hand(self.p) and self.p.numel() and self.p.amax().item() < 0.75:
            return None
        return self.p.argmax(1, keepdim=True)

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
            self._log = torch.log_softmax(self._logits, 1)
            if self.top is not None and self._top is not None:
                self._log = overwrite(self._log, self.top, self._top.log.to(self.p.dtype))
        return self._log

    def of(self, index: Tensor) -> Probability:
        """Return the probability of one class of each row, ``index`` being ``(N, 1, ...)``."""
        return Probability(self.p.gather(1, index), self.rest.gather(1, index), self.log.gather(1, index))


class TargetSoftmax(NamedTuple):
    """The softmax as seen from one class of each row, for logits ``(N, C, ...)``."""

    target: Probability
    """The probability of the target, ``(N, 1, ...)``, in the precision of the logits or better."""
    direction: Tensor
    """The gradient of ``-log p``, which is the probabilities less 1 at the target, ``(N, C, ...)``."""


def overwrite(tensor: Tensor, index: Tensor, value: Tensor | float) -> Tensor:
    """Write ``value`` at one class of each row of a temporary, in place where no gradient is recorded."""
    if torch.is_grad_enabled():
        return tensor.scatter(1, index, value)
    return tensor.scatter_(1, index, value)


def add_number(tensor: Tensor, number: float) -> Tensor:
    """Add a number to a temporary, in place where no gradient is recorded."""
    return tensor + number if torch.is_grad_enabled() else tensor.add_(number)


def add_product(tensor: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Add ``first * second`` to a temporary, in place where no gradient is recorded."""
    if torch.is_grad_enabled():
        return torch.addcmul(tensor, first, second)
    return tensor.addcmul_(first, second)


def target_softmax(logits: Tensor, index: Tensor) -> TargetSoftmax:
    """Return the softmax as seen from the class ``index`` ``(N, 1, ...)`` of each row."""
    if values_are_at_hand(logits):
        probs = torch.softmax(logits, 1)
        prob = probs.gather(1, index)
        if _is_moderate(prob):
            others = probs.scatter_(1, index, 0.0)
            rest = others.sum(1, keepdim=True)
            return TargetSoftmax(Probability(prob, rest), others.scatter_(1, index, -rest))
    log_odds, others, other_sum = _log_odds(logits, index)
    target = _probability_by_log_odds(log_odds)
    rest = target.rest.to(logits.dtype)
    return TargetSoftmax(target, overwrite(others * (rest / other_sum), index, -rest))


def values_are_at_hand(logits: Tensor) -> bool:
    """Whether a decision that depends on values costs nothing: not on accelerators, in graphs, recorded gradients or vmap."""
    if logits.device.type != "cpu" or torch.is_grad_enabled() or torch.compiler.is_compiling():
        return False
    return not torch._C._are_functorch_transforms_active()


def _is_moderate(prob: Tensor) -> bool:
    if not prob.numel():
        return True
    smallest, largest = torch.aminmax(prob)
    return smallest.item() > _SMALLEST and largest.item() < _LARGEST


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
