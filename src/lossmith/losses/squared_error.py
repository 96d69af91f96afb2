"""Squared error between logits and targets."""

from typing import Unpack

from torch import Tensor

from lossmith.losses.contract import ClassificationLoss, Options
from lossmith.losses.limits import Limits
from lossmith.numerics.blocks import in_blocks
from lossmith.numerics.norms import sum_of_squares
from lossmith.numerics.rules import Evaluation, IndexRule, Rule
from lossmith.numerics.temporaries import add, overwrite

__all__ = ["SquaredErrorLoss"]


class SquaredErrorLoss(ClassificationLoss):
    """Squared error, ``scale / K * (kappa (z_y - target)**2 + sum over c != y of z_c**2)``: classification by regression.

    Nearly as accurate as cross-entropy when tuned. kappa > 0 is the weight of the target's term, ``target`` the value that
    its logit should have, scale > 0 a factor for the whole. The mean squared error to the one-hot vector when all three
    are 1. Probabilities are the softmax of the logits.

    >>> import torch
    >>> SquaredErrorLoss(kappa=2.0, target=1.0)(torch.tensor([0.5, 0.5]), torch.tensor(0))
    tensor(0.3750)

    Reference: Hui and Belkin 2020; equation 10 of Kornblith et al., "What's in a loss function for image classification?";
    presets of tables A.1 and A.2.
    """

    name = "squared-error"
    limits = {"kappa": Limits(0.0, low_open=True), "target": Limits(), "scale": Limits(0.0, low_open=True)}
    presets = {
        10: {"kappa": 8.0, "target": 0.83},
        100: {"kappa": 6.0, "target": 12.0},
        1000: {"kappa": 9.0, "target": 60.0, "scale": 10.0},
    }
    kappa: float
    target: float
    scale: float

    def __init__(self, kappa: float = 1.0, target: float = 1.0, scale: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.kappa = kappa
        self.target = target
        self.scale = scale

    def rule(self, logits: Tensor, target: Tensor) -> Rule:
        """Return the rule for class indices, or for a factor per class."""
        rule = _EveryValue if target.is_floating_point() else _TargetValue
        return rule(self.scale / logits.shape[1], self.kappa, self.target)


class _TargetValue(IndexRule):
    """The gradient is ``2 scale`` times ``z``, and ``kappa (z_y - value)`` at the target; kept without the factor."""

    def __init__(self, scale: float, kappa: float, value: float) -> None:
        self.scale = scale
        self.factor = 2 * scale
        self.kappa = kappa
        self.value = value

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        index = target.unsqueeze(1)
        error = logits.gather(1, index) - self.value
        others = logits.scatter(1, index, 0.0)
        losses = self.scale * (self.kappa * error.square().squeeze(1) + sum_of_squares(others, 1))
        return losses, (overwrite(others, index, self.kappa * error),)


class _EveryValue(_TargetValue):
    """The same for a factor per class ``a_c``: the sum of ``kappa a_c (z_c - value)**2 + (sum(a) - a_c) z_c**2``."""

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, target: Tensor) -> Evaluation:
        error, others = logits - self.value, target.sum(1, keepdim=True) - target
        right, wrong = self.kappa * target * error, others * logits
        losses = self.scale * (right * error + wrong * logits).sum(1)
        return losses, (add(right, wrong),)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        squares = logits.square()
        right = self.kappa * (logits - self.value).square()
        return self.scale * (right + (squares.sum(1, keepdim=True) - squares)) * grad
