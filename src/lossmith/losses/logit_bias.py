"""The logit bias, which lets bounded losses learn with many classes."""

from typing import Unpack

import torch
from torch import Tensor

from lossmith.losses.composite import CompositeLoss
from lossmith.losses.contract import ClassificationLoss, Options, check_option_names
from lossmith.losses.expectation import MAELoss
from lossmith.losses.limits import Limits
from lossmith.numerics.mean_activation import bias_for_mean_activation
from lossmith.numerics.rules import Evaluation, IndexRule, Rule

__all__ = ["MEAN_ACTIVATION", "LogitBias"]

DEFAULT_EPSILON = 0.5
MEAN_ACTIVATION = 0.15
"""The mean probability of the target in a fresh network with the bias, of the paper's equation 4."""


class LogitBias(CompositeLoss):
    """Any loss, with ``epsilon`` added to the logit of the target: in training mode only, never when predicting.

    A bounded loss has no gradient where the target is improbable, and with many classes every target is, at first. The
    bias moves a fresh network to where the loss learns. Give ``num_classes`` to have it computed, such that the target starts
    with a mean probability of 0.15, see ``lossmith.solve_logit_bias``; or give ``epsilon``, 0.5 unless said otherwise.
    Without a loss it wraps the mean absolute error. A probability target adds epsilon times the probability to each logit.
    The wrapped loss itself when epsilon = 0, or after ``.eval()``.

    >>> import torch
    >>> loss = LogitBias(MAELoss(), epsilon=1.0)
    >>> loss(torch.zeros(2), torch.tensor(0))
    tensor(0.5379)
    >>> loss.eval()(torch.zeros(2), torch.tensor(0))
    tensor(1.)
    >>> round(LogitBias(MAELoss(), num_classes=1000).epsilon, 3)
    5.358

    Reference: Staats, Thamm and Rosenow, "Noise-robust loss functions", section 3.2 (there marked with an asterisk).
    """

    name = "logit-bias"
    limits = {"epsilon": Limits()}
    presets = {10: {"epsilon": 0.5}, 100: {"epsilon": 3.0}, 1000: {"epsilon": 5.2}}
    epsilon: float

    def __init__(
        self,
        loss: ClassificationLoss | None = None,
        epsilon: float | None = None,
        *,
        num_classes: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        if loss is not None and options:
            raise TypeError(f"LogitBias: {', '.join(options)} must be given to the loss that it wraps.")
        check_option_names(type(self), options)
        super().__init__(MAELoss(**options) if loss is None else loss)
        self.epsilon = _epsilon(epsilon, num_classes)

    @property
    def loss(self) -> ClassificationLoss:
        """The wrapped loss."""
        return self.parts[0]

    def rule(self, logits: Tensor, target: Tensor) -> Rule | None:
        """Return the rule of the wrapped loss, for biased logits; none for probabilities, whose gradient knows the bias."""
        rule = None if target.is_floating_point() else self.loss.rule(logits, target)
        return rule if rule is None or not self._has_bias() else _BiasedRule(rule, self.epsilon)

    def example_losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the wrapped loss of the biased logits."""
        return self.loss.example_losses(self._biased(logits, target), target)

    def weighted_soft_losses(self, logits: Tensor, probabilities: Tensor, weight: Tensor | None) -> Tensor:
        """Return the wrapped loss of the biased logits."""
        return self.loss.weighted_soft_losses(self._biased(logits, probabilities), probabilities, weight)

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the probabilities of the wrapped loss, without bias."""
        return self.loss.predict_proba(logits)

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return that of the wrapped loss."""
        return self.loss.kind_of_probabilities()

    def parameters_in_order(self) -> dict[str, object]:
        """Return the loss and its bias; the number of classes was only a way to say which bias."""
        return {"loss": self.loss, "epsilon": self.epsilon}

    def changed_options(self) -> dict[str, object]:
        """Return nothing: the wrapped loss prints the options."""
        return {}

    def _has_bias(self) -> bool:
        return self.training and self.epsilon != 0

    def _biased(self, logits: Tensor, target: Tensor) -> Tensor:
        if not self._has_bias():
            return logits
        return logits + self.epsilon * target if target.is_floating_point() else _biased_at(target, logits, self.epsilon)


def _biased_at(target: Tensor, logits: Tensor, epsilon: float) -> Tensor:
    index = target.unsqueeze(1)
    if not torch.compiler.is_compiling():
        return logits.scatter_add(1, index, torch.full_like(index, epsilon, dtype=logits.dtype))
    # Multiplied, and not filled in, because a compiled multiplication serves every epsilon that a schedule sets.
    return logits.scatter_add(1, index, epsilon * torch.ones_like(index, dtype=logits.dtype))


class _BiasedRule(IndexRule):
    """A rule for logits with a bias, which is a constant to the gradient."""

    def __init__(self, rule: Rule, epsilon: float) -> None:
        self.rule = rule
        self.epsilon = epsilon
        self.factor = rule.factor
        self.takes_share = rule.takes_share

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        self.rule.share = self.share
        return self.rule.evaluate(_biased_at(target, logits, self.epsilon), target)

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        return self.rule.pullback(grad, target, saved)


def _epsilon(epsilon: float | None, num_classes: int | None) -> float:
    if num_classes is None:
        return DEFAULT_EPSILON if epsilon is None else epsilon
    if epsilon is not None:
        raise ValueError(f"LogitBias: give either epsilon or num_classes, got epsilon={epsilon} and num_classes={num_classes}.")
    Limits(2, whole=True).check("num_classes", num_classes, owner="LogitBias")
    return bias_for_mean_activation(MEAN_ACTIVATION, num_classes).epsilon
