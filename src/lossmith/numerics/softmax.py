"""Softmax probabilities that keep every digit where one class has nearly all of the mass.

``1 - p`` and ``log p`` of the dominating class are lost to rounding when computed from ``p`` itself. They are exact when
computed from the sum of the *other* classes' probabilities, and so is the gradient of whatever is built on them.
"""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["ClassProbabilities", "Probability", "TargetSoftmax", "overwrite", "target_softmax"]

# Probabilities above these are normal numbers, and so are quotients of them.
_SMALLEST = {dtype: torch.finfo(dtype).tiny * 2**20 for dtype in (torch.float32, torch.float64)}


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

    def _class_with_most(self) -> Tensor | None:
        # Below 3/4 nothing cancels. To find out is cheaper than the index.
        if _values_are_at_hand(self.p) and self.p.numel() and self.p.amax().item() < 0.75:
            return None
        return self.p.argmax(1, keepdim=True)

    def _top_rest(self, top: Tensor) -> Tensor:
        return self.p.scatter(1, top, 0.0).sum(1, keepdim=True)

    @property
    def rest(self) -> Tensor:
        """``1 - p``."""
        if self._rest is None:
            rest = 1 - self.p
            self._rest = rest if self.top is None else overwrite(rest, self.top, self._top_rest(self.top))
        return self._rest

    @property
    def log(self) -> Tensor:
        """``log p``."""
        if self._log is None:
            log = torch.log_softmax(self._logits, 1)
            if self.top is not None:
                quotient = self._top_rest(self.top) / self.p.gather(1, self.top)
                log = overwrite(log, self.top, -torch.log1p(quotient))
            self._log = log
        return self._log

    def of(self, index: Tensor) -> Probability:
        """Return the probability of one class of each row, ``index`` being ``(N, 1, ...)``."""
        return Probability(self.p.gather(1, index), self.rest.gather(1, index), self.log.gather(1, index))


class TargetSoftmax(NamedTuple):
    """The softmax as seen from one class of each row, for logits ``(N, C, ...)``."""

    target: Probability
    """The probability of the target, ``(N, 1, ...)``."""
    direction: Tensor
    """The gradient of ``-log p``, which is the probabilities less 1 at the target, ``(N, C, ...)``."""


def overwrite(tensor: Tensor, index: Tensor, value: Tensor | float) -> Tensor:
    """Write ``value`` at one class of each row of a temporary, in place where no gradient is recorded."""
    if torch.is_grad_enabled():
        return tensor.scatter(1, index, value)
    return tensor.scatter_(1, index, value)


def target_softmax(logits: Tensor, index: Tensor) -> TargetSoftmax:
    """Return the softmax as seen from the class ``index`` ``(N, 1, ...)`` of each row."""
    if _values_are_at_hand(logits):
        probs = torch.softmax(logits, 1)
        prob = probs.gather(1, index)
        if prob.numel() and prob.amin().item() > _SMALLEST[prob.dtype]:
            others = probs.scatter_(1, index, 0.0)
            rest = others.sum(1, keepdim=True)
            return TargetSoftmax(Probability(prob, rest), others.scatter_(1, index, -rest))
    return _target_softmax_of_any_logits(logits, index)


def _values_are_at_hand(logits: Tensor) -> bool:
    """Whether a decision that depends on values costs nothing: not on accelerators, in graphs, or in recorded gradients."""
    return logits.device.type == "cpu" and not torch.is_grad_enabled() and not torch.compiler.is_compiling()


def _target_softmax_of_any_logits(logits: Tensor, index: Tensor) -> TargetSoftmax:
    gap = logits - logits.amax(1, keepdim=True).detach()
    target_gap = gap.gather(1, index)
    others = overwrite(gap.exp(), index, 0.0)
    other_sum = others.sum(1, keepdim=True)
    # The sum of all exponentials less 1. Where the target is the largest, target_gap is 0 and this is the others' sum
    # to the last digit; elsewhere the others contain a 1, and log p <= target_gap is far from 0 whenever this cancels.
    excess = other_sum + torch.expm1(target_gap)
    log_prob = target_gap - torch.log1p(excess)
    scale = 1 / (1 + excess)
    rest = other_sum * scale
    return TargetSoftmax(Probability(torch.exp(log_prob), rest, log_prob), overwrite(others * scale, index, -rest))
