"""Label smoothing as a loss of its own."""

from typing import Unpack

from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Rows
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Options
from lossmith.numerics.entries import entry
from lossmith.numerics.known_slope import with_row_slopes
from lossmith.numerics.softmax import log_odds_slope, surprises, target_probability

__all__ = ["LabelSmoothingLoss"]


def label_smoothing(logits: Tensor, target: Tensor, *, alpha: float) -> Tensor:
    """Return ``-log p_y`` and ``alpha / (1 - alpha)`` times the mean of all ``-log p_c``.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        alpha: Share of the target that is spread over all classes, 0 <= alpha < 1.

    Returns:
        Losses ``(N, ...)``.
    """
    odds = alpha / (1 - alpha)
    if target.is_floating_point():
        return (surprises(logits) * (target + odds * target.mean(1, keepdim=True))).sum(1)
    index = target.unsqueeze(1)
    own = target_probability(logits, index)
    mean = own.surprise + (entry(logits, index) - logits).mean(1, keepdim=True)
    losses = (own.surprise + odds * mean).squeeze(1).to(logits.dtype)

    def slopes() -> Tensor:
        direction = log_odds_slope(logits, index)
        pull = (1 + odds) * own.rest.to(logits.dtype)
        return odds * ((direction > 0).to(logits.dtype) - 1 / logits.shape[1]) - pull * direction

    return with_row_slopes(logits, losses, slopes)


class LabelSmoothingLoss(ClassificationLoss):
    """Label smoothing, ``-log p_y - alpha / ((1 - alpha) K) * sum_c log p_c``: for better calibrated predictions.

    This is cross-entropy with the target ``(1 - alpha) onehot + alpha / K``, divided by ``1 - alpha`` so that the pull on
    the target's logit does not depend on alpha. The option ``label_smoothing``, which every loss has, does not divide.
    A class weight multiplies the loss of an example as a whole. 0 <= alpha < 1; cross-entropy when alpha = 0.

    >>> import torch
    >>> logits, target = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
    >>> LabelSmoothingLoss(alpha=0.2)(logits, target), torch.nn.CrossEntropyLoss(label_smoothing=0.2)(logits, target) / 0.8
    (tensor(0.4087), tensor(0.4087))

    Args:
        alpha: Share of the target that is spread over all classes, 0 <= alpha < 1.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: Szegedy et al. 2016; equation 2 of Kornblith et al., "What's in a loss function for image classification?"
    """

    name = "label-smoothing"
    limits = {"alpha": Limits(0.0, 1.0, high_open=True, usual=(0.0, 0.5))}
    presets = {10: {"alpha": 0.04}, 100: {"alpha": 0.18}, 1000: {"alpha": 0.1}}
    alpha: float

    def __init__(self, alpha: float = 0.1, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.alpha = alpha

    def formula(self) -> Formula:
        """Return the smoothed cross-entropy."""
        return Rows(label_smoothing, {"alpha": self.alpha})
