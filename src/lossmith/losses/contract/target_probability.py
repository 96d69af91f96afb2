"""Losses of the target's probability alone, the largest family: all that a formula needs is its terms."""

from abc import abstractmethod

from lossmith.kernels import Formula, Term, Terms
from lossmith.losses.contract.classification_loss import ClassificationLoss

__all__ = ["TargetProbabilityLoss"]


class TargetProbabilityLoss(ClassificationLoss):
    """A sum of terms ``f(p)``, each given by its value and its pull; such losses share one softmax in a sum."""

    @abstractmethod
    def terms(self) -> tuple[Term, ...]:
        """Return the terms whose sum this loss is, with the parameters as they are now."""

    def formula(self) -> Formula:
        """Return the sum of the terms."""
        return Terms(self.terms())
