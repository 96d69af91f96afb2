"""Label smoothing as a loss of its own."""

from typing import Unpack

from torch import Tensor

from lossmith.losses.contract import ClassificationLoss, Options
from lossmith.losses.cross_entropy import CrossEntropyLoss
from lossmith.losses.limits import Limits
from lossmith.losses.term_rules import term_losses
from lossmith.numerics.rowwise import Evaluation, IndexRule, Rule
from lossmith.numerics.softmax import sum_of_gaps, target_softmax
from lossmith.numerics.temporaries import add, overwrite

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

    def rule(self, logits: Tensor, target: Tensor) -> Rule | None:
        """Return the rule for class indices."""
        return None if target.is_floating_point() else _SmoothedTarget(self._share_of(logits))

    def example_losses(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the losses; a factor per class is smoothed into one for cross-entropy."""
        if not target.is_floating_point():
            return super().example_losses(logits, target)
        smoothed = target + self._share_of(logits) * target.sum(1, keepdim=True)
        return term_losses(CrossEntropyLoss().terms(), logits, smoothed)

    def _share_of(self, logits: Tensor) -> float:
        return self.alpha / (1 - self.alpha) / logits.shape[1]


class _SmoothedTarget(IndexRule):
    """With ``share = alpha / ((1 - alpha) K)`` the gradient is ``(1 + K share) p - share - onehot``; kept without the factor.

    The sum of all ``-log p_c`` is that of the gaps ``z_y - z_c``, less ``K log p_y``.
    """

    def __init__(self, share: float) -> None:
        self.share = share

    def evaluate(self, logits: Tensor, target: Tensor) -> Evaluation:
        num_classes, index = logits.shape[1], target.unsqueeze(1)
        softmax = target_softmax(logits, index)
        smoothed = 1 + num_classes * self.share
        surprise = softmax.target.surprise
        losses = smoothed * surprise + self.share * sum_of_gaps(logits, index, surprise)
        part = self.share / smoothed
        entry = -softmax.target.rest + (num_classes - 1) * part
        gradient = overwrite(add(softmax.direction, -part), index, entry.to(logits.dtype))
        return losses.squeeze(1).to(logits.dtype), (gradient,)

    def pullback(self, grad: Tensor, target: Tensor, saved: tuple[Tensor, ...]) -> Tensor:
        return super().pullback(grad * (1 + saved[0].shape[1] * self.share), target, saved)
