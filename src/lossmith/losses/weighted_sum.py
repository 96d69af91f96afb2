"""Weighted sums of losses, and the published combinations of an active with a passive loss."""

from collections.abc import Sequence
from typing import Any, Unpack

from torch import Tensor

from lossmith.losses.composite import CompositeLoss
from lossmith.losses.contract import ClassificationLoss, Options, check_option_names
from lossmith.losses.expectation import MAELoss
from lossmith.losses.generalized import AsymmetricGeneralizedCrossEntropyLoss
from lossmith.losses.limits import Limits
from lossmith.losses.normalized import NormalizedCrossEntropyLoss, NormalizedFocalLoss
from lossmith.losses.target_probability import TermLoss
from lossmith.losses.term_rules import Term, rule_of_terms
from lossmith.numerics.rowwise import rowwise_loss
from lossmith.numerics.rules import Rule, SumRule

__all__ = [
    "NormalizedCrossEntropyAGCELoss",
    "NormalizedCrossEntropyMAELoss",
    "NormalizedFocalMAELoss",
    "WeightedSum",
]


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
    """

    name = "sum"

    def __init__(self, losses: Sequence[ClassificationLoss], factors: Sequence[float]) -> None:
        super().__init__(*losses)
        if len(losses) != len(factors) or not losses:
            raise ValueError(f"WeightedSum: needs as many factors as losses, got {len(factors)} and {len(losses)}.")
        self.factors = [_checked(factor) for factor in factors]

    def rule(self, logits: Tensor, target: Tensor) -> Rule | None:
        """Return the rule for the sum, where every part has one."""
        terms, apart = self._terms_and_others()
        if not apart:
            return rule_of_terms(terms, target)
        rules: list[tuple[float, Rule]] = [(1.0, rule_of_terms(terms, target))] if terms else []
        for factor, loss in apart:
            rule = loss.rule(logits, target)
            if rule is None:
                return None
            rules.append((factor, rule))
        return SumRule(rules)

    def example_losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the weighted sum of the parts for each example."""
        rule = self.rule(logits, target)
        if rule is not None:
            return rowwise_loss(rule, logits, target)
        terms, apart = self._terms_and_others()
        losses = [factor * loss.example_losses(logits, target) for factor, loss in apart]
        if terms:
            losses.append(rowwise_loss(rule_of_terms(terms, target), logits, target))
        return sum(losses[1:], start=losses[0])

    def _terms_and_others(self) -> tuple[tuple[Term, ...], list[tuple[float, ClassificationLoss]]]:
        terms: list[Term] = []
        apart: list[tuple[float, ClassificationLoss]] = []
        for factor, loss in zip(self.factors, self.parts, strict=True):
            part = loss.terms() if isinstance(loss, TermLoss) else None
            if part is None:
                apart.append((factor, loss))
            else:
                terms += [Term(factor * term.factor, term.curve, term.normalized) for term in part]
        return tuple(terms), apart

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
        """Return the probabilities that belong to all parts; parts that disagree on what they are have none together."""
        if len({loss.kind_of_probabilities() for loss in self.parts}) > 1:
            raise ValueError(f"WeightedSum: the parts of {self} have different probabilities; call predict_proba of one of them.")
        return self.parts[0].predict_proba(logits)

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return that of all parts, or that there is none."""
        kind, *others = {loss.kind_of_probabilities() for loss in self.parts}
        return ("none",) if others else kind

    def __repr__(self) -> str:
        """Return the sum as ``lossmith.make_loss`` reads it."""
        return " + ".join(f"{factor}*{loss}" for factor, loss in zip(self.factors, self.parts, strict=True))


def scaled(loss: ClassificationLoss, factor: float) -> WeightedSum:
    """Return ``factor * loss``."""
    losses, factors = _parts(loss)
    return WeightedSum(losses, [_checked(factor) * own for own in factors])


def added(first: ClassificationLoss, second: ClassificationLoss) -> WeightedSum:
    """Return ``first + second``."""
    losses, factors = _parts(first)
    more_losses, more_factors = _parts(second)
    return WeightedSum([*losses, *more_losses], [*factors, *more_factors])


def _parts(loss: ClassificationLoss) -> tuple[list[ClassificationLoss], list[float]]:
    if isinstance(loss, WeightedSum) and type(loss) is WeightedSum:
        return loss.parts, loss.factors
    return [loss], [1.0]


def _checked(factor: float) -> float:
    number = Limits().check("factor", factor, owner="WeightedSum")
    assert number is not None
    return number


def _factor(position: int) -> Any:
    def get(self: WeightedSum) -> float:
        return self.factors[position]

    def set_(self: WeightedSum, value: float) -> None:
        self.factors[position] = value

    return property(get, set_, doc="Factor of one part.")


def _parameter_of(position: int, name: str) -> Any:
    def get(self: WeightedSum) -> Any:
        return getattr(self.parts[position], name)

    def set_(self: WeightedSum, value: Any) -> None:
        setattr(self.parts[position], name, value)

    return property(get, set_, doc=f"The ``{name}`` of one part.")


class _ActivePassive(WeightedSum):
    """``alpha`` times an active loss plus ``beta`` times a passive one."""

    limits = {"alpha": Limits(0.0), "beta": Limits(0.0)}
    alpha = _factor(0)
    beta = _factor(1)

    def __init__(self, active: ClassificationLoss, passive: ClassificationLoss, alpha: float, beta: float) -> None:
        super().__init__([active, passive], [1.0, 1.0])
        self.alpha = alpha
        self.beta = beta

    __repr__ = ClassificationLoss.__repr__


class NormalizedCrossEntropyMAELoss(_ActivePassive):
    """Normalised cross-entropy and mean absolute error, ``alpha NCE + beta MAE``, for noisy labels.

    The active first part learns, the passive second resists. alpha, beta >= 0. MAE is ``2 (1 - p)`` here, as in the
    paper whose weights these are; gradients are large, so that the learning rate must be small.

    >>> NormalizedCrossEntropyMAELoss.for_classes(100)
    nce-mae(alpha=1.0, beta=20.0)

    Reference: Ma et al. 2020; NCE-MAE of Staats, Thamm and Rosenow, "Noise-robust loss functions", appendix table 1.
    """

    name = "nce-mae"
    presets = {10: {"alpha": 1.0, "beta": 20.0}, 100: {"alpha": 1.0, "beta": 20.0}, 1000: {"alpha": 1.0, "beta": 20.0}}

    def __init__(self, alpha: float = 1.0, beta: float = 20.0, **options: Unpack[Options]) -> None:
        check_option_names(type(self), options)
        super().__init__(NormalizedCrossEntropyLoss(**options), MAELoss(**options), alpha, beta)


class NormalizedFocalMAELoss(_ActivePassive):
    """Normalised focal loss and mean absolute error, ``alpha NF + beta MAE``, for noisy labels.

    alpha, beta >= 0; see ``nce-mae``. With a hundred classes and more the published beta is 0.2.

    >>> NormalizedFocalMAELoss.for_classes(100)
    nf-mae(alpha=1.0, beta=0.2)

    Reference: Ma et al. 2020; NF-MAE of Staats, Thamm and Rosenow, "Noise-robust loss functions", appendix table 1.
    """

    name = "nf-mae"
    presets = {10: {"alpha": 1.0, "beta": 20.0}, 100: {"alpha": 1.0, "beta": 0.2}, 1000: {"alpha": 1.0, "beta": 0.2}}

    def __init__(self, alpha: float = 1.0, beta: float = 20.0, **options: Unpack[Options]) -> None:
        check_option_names(type(self), options)
        super().__init__(NormalizedFocalLoss(**options), MAELoss(**options), alpha, beta)


class NormalizedCrossEntropyAGCELoss(_ActivePassive):
    """Normalised and asymmetric generalised cross-entropy, ``alpha NCE + beta AGCE``, for noisy labels.

    alpha, beta, b, q >= 0. The preset for a thousand classes is the one computed without training.

    >>> NormalizedCrossEntropyAGCELoss.for_classes(1000)
    nce-agce(alpha=100.0, beta=0.7, b=0.05, q=0.05)

    Reference: Zhou et al. 2021; NCE-AGCE of Staats, Thamm and Rosenow, "Noise-robust loss functions", appendix 1 and 4.
    """

    name = "nce-agce"
    b = _parameter_of(1, "b")
    q = _parameter_of(1, "q")
    presets = {
        10: {"alpha": 1.0, "beta": 4.0, "b": 6.0, "q": 1.5},
        100: {"alpha": 10.0, "beta": 0.1, "b": 1.8, "q": 3.0},
        1000: {"alpha": 100.0, "beta": 0.7, "b": 0.05, "q": 0.05},
    }

    def __init__(self, alpha: float = 1.0, beta: float = 4.0, b: float = 6.0, q: float = 1.5, **options: Unpack[Options]) -> None:
        check_option_names(type(self), options)
        passive = AsymmetricGeneralizedCrossEntropyLoss(b, q, **options)
        super().__init__(NormalizedCrossEntropyLoss(**options), passive, alpha, beta)
