"""Label smoothing as a loss of its own."""

from typing import Unpack

from torch import Tensor

from lossmith.losses.contract import ClassificationLoss, Options
from lossmith.losses.limits import Limits
from lossmith.losses.term_rules import sum_of_surprises
from lossmith.numerics.blocks import in_blocks_of
from lossmith.numerics.precision import rounded
from lossmith.numerics.rules import DescentRule, Evaluation, IndexRule, Rule
from lossmith.numerics.softmax import ClassProbabilities, mean_gap, target_and_others
from lossmith.numerics.temporaries import add_scaled, affine, affine_in_place, overwrite

__all__ = ["LabelSmoothingLoss"]


class LabelSmoothingLoss(ClassificationLoss):
    """Label smoothing, ``-log p_y - alpha / ((1 - alpha) K) * sum_c log p_c``: for better calibrated predictions.

    This is cross-entropy with the target ``(1 - alpha) onehot + alpha / K``, divided by ``1 - alpha`` so that the pull on
    the target's logit does not depend on alpha. The option ``label_smoothing``, which every loss has, does not divide.
    A class weight multiplies the loss of an example as a whole. 0 <= alpha < 1; cross-entropy when alpha = 0.

    >>> import torch
    >>> logits, target = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
    >>> LabelSmoothingLoss(alpha=0.2)(logits, target), torch.nn.CrossEntropyLoss(label_smoothing=0.2)(logits, target) / 0.8
    (tensor(0.4087), tensor(0.4087))

    Reference: Szegedy et al. 2016; equation 2 of Kornblith et al., "What's in a loss function for image classification?"
    """

    name = "label-smoothing"
    limits = {"alpha": Limits(0.0, 1.0, high_open=True)}
    presets = {10: {"alpha": 0.04}, 100: {"alpha": 0.18}, 1000: {"alpha": 0.1}}
    alpha: float

    def __init__(self, alpha: float = 0.1, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.alpha = alpha

    def rule(self, logits: Tensor, target: Tensor) -> Rule:
        """Return the rule for class indices, or for a factor per class."""
        return (_EveryClass if target.is_floating_point() else _Target)(self.alpha)


class _Target(IndexRule):
    """The loss is ``-log p_y`` and ``alpha / (1 - alpha)`` times the mean of all ``-log p_c``.

    The gradient is ``p - alpha / K - (1 - alpha) onehot``, divided by ``1 - alpha``.
    """

    takes_share = True

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        num_classes, index = logits.shape[1], target.unsqueeze(1)
        prob, others = target_and_others(logits, index)
        surprise = prob.surprise
        mean = surprise + mean_gap(logits, index, prob)
        losses = add_scaled(surprise, mean, self.alpha / (1 - self.alpha))
        scale = self.share / (1 - self.alpha)
        entry = affine(prob.rest, -scale, scale * self.alpha * (num_classes - 1) / num_classes)
        slopes = affine_in_place(others, scale, -scale * self.alpha / num_classes)
        gradient = overwrite(slopes, index, rounded(entry, logits))
        return rounded(losses.squeeze(1), logits), (gradient,)


class _EveryClass(DescentRule):
    """A factor per class is smoothed into one for cross-entropy."""

    def __init__(self, alpha: float) -> None:
        self.odds = alpha / (1 - alpha)

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        return in_blocks_of(self._evaluate_rows, logits, target)

    def _evaluate_rows(self, logits: Tensor, factors: Tensor, place: Tensor | None) -> Evaluation:
        smoothed = factors + self.odds * factors.mean(1, keepdim=True)
        value, descent = sum_of_surprises(logits, smoothed, place)
        return value.squeeze(1), (descent,)

    def target_pullback(self, grad: Tensor, logits: Tensor, target: Tensor) -> Tensor:
        surprise = ClassProbabilities(logits).surprise
        return (surprise + self.odds * surprise.mean(1, keepdim=True)) * grad
