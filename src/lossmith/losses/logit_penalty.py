"""Cross-entropy with a penalty on large logits."""

from typing import Unpack

from torch import Tensor

from lossmith.losses.contract import ClassificationLoss, Options
from lossmith.losses.limits import Limits
from lossmith.losses.term_rules import sum_of_surprises
from lossmith.numerics.blocks import in_blocks_of
from lossmith.numerics.norms import sum_of_squares
from lossmith.numerics.precision import rounded
from lossmith.numerics.rules import DescentRule, Evaluation, IndexRule, Rule
from lossmith.numerics.softmax import ClassProbabilities, target_softmax
from lossmith.numerics.temporaries import add_multiple, add_product, add_scaled

__all__ = ["LogitPenaltyLoss"]


class LogitPenaltyLoss(ClassificationLoss):
    """Cross-entropy with a penalty on the logits, ``-log p_y + beta * sum_c z_c**2``: for clean labels and many classes.

    Keeps the logits small, and with them the confidence; classes end up further apart than with cross-entropy.
    beta >= 0; cross-entropy when beta = 0.

    >>> import torch
    >>> LogitPenaltyLoss(beta=0.01)(torch.tensor([3.0, -3.0]), torch.tensor(0))
    tensor(0.1825)

    Reference: equation 5 of Kornblith et al., "What's in a loss function for image classification?"; presets of tables A.1, A.2.
    """

    name = "logit-penalty"
    limits = {"beta": Limits(0.0)}
    presets = {10: {"beta": 10**-2.83}, 100: {"beta": 10**-2.83}, 1000: {"beta": 6e-4}}
    beta: float

    def __init__(self, beta: float = 6e-4, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.beta = beta

    def rule(self, logits: Tensor, target: Tensor) -> Rule:
        """Return the rule for class indices, or for a factor per class: the penalty counts as often as they add up to."""
        return (_EveryClass if target.is_floating_point() else _Target)(self.beta)


class _Target(IndexRule):
    """The gradient is ``p - onehot + 2 beta z``."""

    def __init__(self, beta: float) -> None:
        self.beta = beta

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        softmax = target_softmax(logits, target.unsqueeze(1))
        losses = add_scaled(softmax.target.surprise.squeeze(1), sum_of_squares(logits, 1), self.beta)
        return rounded(losses, logits), (add_multiple(softmax.direction, logits, 2 * self.beta),)


class _EveryClass(DescentRule):
    """For factors that add up to A, the gradient is ``A p - a + 2 beta A z``."""

    def __init__(self, beta: float) -> None:
        self.beta = beta

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks_of(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, factors: Tensor, place: Tensor | None) -> Evaluation:
        value, descent = sum_of_surprises(logits, factors, place)
        weight = self.beta * factors.sum(1, keepdim=True)
        losses = value + weight * sum_of_squares(logits, 1).unsqueeze(1)
        return losses.squeeze(1), (add_product(descent, logits, -2 * weight),)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        return (ClassProbabilities(logits).surprise + self.beta * logits.square().sum(1, keepdim=True)) * grad
