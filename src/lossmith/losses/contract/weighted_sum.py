"""Weighted sums of losses."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Sum, Term, Terms
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.composite import CompositeLoss

__all__ = ["WeightedSum", "sum_of"]


class WeightedSum(CompositeLoss):
    """A weighted sum of losses: what ``1.0 * NormalizedCrossEntropyLoss() + 20.0 * MAELoss()`` makes.

    The parts are added example by example, so that weights, ignored targets and the reduction act on the sum. Parts that
    look only at the target's probability share one softmax.

    >>> import torch
    >>> from lossmith import CrossEntropyLoss, ExpectationLoss
    >>> loss = CrossEntropyLoss() + 2 * ExpectationLoss()
    >>> loss
    1.0*ce + 2.0*el
    >>> loss(torch.zeros(2), torch.tensor(0))
    tensor(1.6931)

    Args:
        losses: The parts, whose options must be equal.
        factors: A finite number for each part.
    """

    name = "sum"

    def __init__(self, losses: Sequence[ClassificationLoss], factors: Sequence[float]) -> None:
        super().__init__(*losses)
        if len(losses) != len(factors) or not losses:
            raise ValueError(f"WeightedSum: needs as many factors as losses, got {len(factors)} and {len(losses)}.")
        self.factors = tuple(factors)

    @property
    def factors(self) -> tuple[float, ...]:
        """What each part is multiplied by; to change one, assign all of them."""
        if torch.compiler.is_dynamo_compiling() and self._has_tensor(_factor(0)):
            return tuple(self._input_of_graph(_factor(place)) for place in range(len(self.parts)))
        return self._factors

    @factors.setter
    def factors(self, factors: Sequence[float]) -> None:
        if len(factors) != len(self.parts):
            raise ValueError(f"WeightedSum: factors must be {len(self.parts)} numbers, one for each part, got {len(factors)}.")
        self._factors = tuple(map(_checked, factors))
        for place, factor in enumerate(self._factors):
            self._keep_tensor(_factor(place), factor)

    def formula(self) -> Formula:
        """Return the weighted sum of the formulas of the parts; the terms of all parts become one sum."""
        terms: list[Term] = []
        others: list[tuple[float, Formula]] = []
        for factor, loss in zip(self.factors, self.parts, strict=True):
            formula = loss.formula()
            if isinstance(formula, Terms):
                terms += [Term(factor * term.factor, term.curve, term.normalized) for term in formula.terms]
            else:
                others.append((factor, formula))
        if not others:
            return Terms(tuple(terms))
        return Sum([(1.0, Terms(tuple(terms))), *others] if terms else others)

    def weighted_soft_losses(self, logits: Tensor, probabilities: Tensor, weight: Tensor | None) -> Tensor:
        """Return the weighted sum of the parts, each with its own meaning of a label distribution."""
        if all(type(loss).weighted_soft_losses is ClassificationLoss.weighted_soft_losses for loss in self.parts):
            return super().weighted_soft_losses(logits, probabilities, weight)
        parts = [
            factor * loss.weighted_soft_losses(logits, probabilities, weight)
            for factor, loss in zip(self.factors, self.parts, strict=True)
        ]
        return sum(parts[1:], start=parts[0])

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the probabilities that belong to all parts; parts that disagree on what they are have none together.

        Args:
            logits: Logits ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.

        Returns:
            Probabilities of the same shape.

        Raises:
            ValueError: If the parts have different probabilities.
        """
        if len({loss.kind_of_probabilities() for loss in self.parts}) > 1:
            raise ValueError(f"WeightedSum: the parts of {self} have different probabilities; call predict_proba of one of them.")
        return self.parts[0].predict_proba(logits)

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return that of all parts, or that there is none."""
        kind, *others = {loss.kind_of_probabilities() for loss in self.parts}
        return ("none",) if others else kind

    def summands(self) -> list[tuple[float, ClassificationLoss]]:
        """Return the parts with their factors."""
        return list(zip(self.factors, self.parts, strict=True))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the tensors of the factors anew, too."""
        super().__setstate__(state)
        self.factors = state["_factors"]

    def __repr__(self) -> str:
        """Return the sum as ``lossmith.make_loss`` reads it."""
        return " + ".join(f"{factor}*{loss}" for factor, loss in zip(self.factors, self.parts, strict=True))


def sum_of(summands: Sequence[tuple[float, ClassificationLoss]]) -> WeightedSum:
    """Return the sum of factors times losses.

    Args:
        summands: Pairs of a factor and a loss, at least one.

    Returns:
        The sum, in the same order.

    Raises:
        ValueError: If the options of the losses differ.
    """
    return WeightedSum([loss for _, loss in summands], [factor for factor, _ in summands])


ClassificationLoss._sum_of = staticmethod(sum_of)


def _factor(place: int) -> str:
    return f"factors.{place}"


def _checked(factor: float) -> float:
    number = Limits().check("factor", factor, owner="WeightedSum")
    assert number is not None
    return number
