"""Base of every loss that looks only at the target's probability, and of quotients and sums of such losses."""

from abc import abstractmethod
from typing import ClassVar

from torch import Tensor

from lossmith.losses.contract import ClassificationLoss
from lossmith.losses.term_rules import Term, rule_of_terms
from lossmith.numerics.probability import Probability
from lossmith.numerics.rules import Rule

__all__ = ["TargetProbabilityLoss", "TermLoss"]


class TermLoss(ClassificationLoss):
    """A loss that is a sum of terms."""

    @abstractmethod
    def terms(self) -> tuple[Term, ...] | None:
        """Return the terms whose sum this loss is, or None where its parameters make it another function."""

    def rule(self, logits: Tensor, target: Tensor) -> Rule | None:
        """Return the rule for the sum of the terms."""
        terms = self.terms()
        return None if terms is None else rule_of_terms(terms, target)


class TargetProbabilityLoss(TermLoss):
    """Base of the losses ``f(p_y)``: a subclass gives ``f`` and its pull."""

    is_cross_entropy: ClassVar[bool] = False

    @abstractmethod
    def value_and_pull(self, target: Probability) -> tuple[Tensor, Tensor | float]:
        """Return ``f`` and the pull ``-df / dlog p``, each to full relative accuracy; a constant pull is one number."""

    def terms(self) -> tuple[Term, ...]:
        """Return the loss itself, once."""
        return (Term(1.0, self),)
