"""What the losses of a batch of rows are, with their gradient in closed form; ``rowwise`` makes operations of it."""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from lossmith.numerics.blocks import Evaluation, in_blocks
from lossmith.numerics.temporaries import add_multiple, add_scaled, scale_kept

__all__ = ["DescentRule", "Evaluation", "GradientRule", "IndexRule", "Rule", "SumRule", "evaluate_again", "times"]


class Rule(Protocol):
    """The losses of rows of logits ``(N, C, ...)``, classes along dimension 1, and their gradient.

    Every method uses differentiable operations only, so that the gradient can be differentiated again.
    """

    takes_share: bool
    """Whether to multiply what is kept by a number costs nothing."""
    share: float
    """That number, which each loss counts with in a mean; it is set only where it costs nothing."""

    @property
    def factor(self) -> float:
        """What the gradient with respect to the logits is :meth:`pullback` times, but for the share."""
        ...

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        """Return the losses ``(N, ...)`` and what :meth:`pullback` needs, each with one row per row of logits."""
        ...

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        """Return the gradient of ``sum(grad * losses)`` with respect to the logits, but for the factor.

        ``grad`` is ``(N, 1, ...)`` or one number.
        """
        ...

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        """Return the gradient of ``sum(grad * losses)`` with respect to probability targets."""
        ...


class GradientRule:
    """Base of rules that keep the gradient itself: ``evaluate`` returns the losses and ``(gradient,)``."""

    factor: float = 1.0
    """What the gradient is the kept one times."""
    takes_share: bool = False
    share: float = 1.0

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        """Return what was kept times ``grad``."""
        return scale_kept(saved[0], grad)


class DescentRule(GradientRule):
    """Base of rules that keep minus the gradient, where that is what their formula gives."""

    factor = -1.0


class IndexRule(GradientRule):
    """Base of such rules for class indices."""

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        """Raise an error: nothing asks for this."""
        raise NotImplementedError("class indices have no gradient")


class SumRule(GradientRule):
    """A weighted sum of what other rules give, as one operation."""

    def __init__(self, parts: Sequence[tuple[float, Rule]]) -> None:
        self.parts = parts

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        """Return the sum of the losses and that of the gradients."""
        return in_blocks(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, target: Tensor) -> Evaluation:
        evaluations = [rule.evaluate(logits, target) for _, rule in self.parts]
        losses = self._weighted_sum([part for part, _ in evaluations], add_scaled)
        slopes = [_slopes(rule, logits, target, saved) for (_, rule), (_, saved) in zip(self.parts, evaluations, strict=True)]
        return losses, (self._weighted_sum(slopes, add_multiple),)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        """Return the sum of what they pull at the targets."""
        return self._weighted_sum([rule.target_pullback(grad, logits, target) for _, rule in self.parts], add_scaled)

    def _weighted_sum(self, terms: Sequence[Tensor], add: Callable[[Tensor, Tensor, float], Tensor]) -> Tensor:
        total = times(terms[0], self.parts[0][0])
        for term, (factor, _) in zip(terms[1:], self.parts[1:], strict=True):
            total = add(total, term, factor)
        return total


def _slopes(rule: Rule, logits: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
    """Return the gradient of each loss, which may be what the rule kept."""
    if isinstance(rule, GradientRule) and type(rule).pullback is GradientRule.pullback:
        return times(saved[0], rule.factor)
    return rule.pullback(torch.ones_like(logits.narrow(1, 0, 1)) * rule.factor, target, saved)


def times(tensor: Tensor, factor: float) -> Tensor:
    """Return the product, without an operation where the factor is 1.

    A compiled graph would be one for this factor alone if it looked.
    """
    return tensor if not torch.compiler.is_compiling() and factor == 1 else tensor * factor


def evaluate_again(rule: Rule, logits: Tensor, target: Tensor, rows: Tensor | None, evaluation: Evaluation) -> Evaluation:
    """Replace what was evaluated for certain rows, ``(N, ...)``, by what double precision gives."""
    if rows is None or not rows.any():
        return evaluation
    losses, saved = evaluation
    exact_losses, exact_saved = rule.evaluate(logits.movedim(1, -1)[rows].double(), target[rows])
    losses[rows] = exact_losses.to(losses.dtype)
    for whole, part in zip(saved, exact_saved, strict=True):
        whole.movedim(1, -1)[rows] = part.to(whole.dtype)
    return losses, saved
