"""Cross-entropy with a penalty on large logits."""

from typing import Unpack

from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Rows
from lossmith.losses.contract.classification_loss import ClassificationLoss, Options
from lossmith.numerics.softmax import surprises, target_probability

__all__ = ["LogitPenaltyLoss"]


def logit_penalty(logits: Tensor, target: Tensor, *, beta: float) -> Tensor:
    """Return ``-log p_y + beta * sum_c z_c**2``; for a factor per class, the penalty counts as often as they add up to.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        beta: Factor of the penalty.

    Returns:
        Losses ``(N, ...)``.
    """
    penalty = beta * logits.square().sum(1)
    if target.is_floating_point():
        return (surprises(logits) * target).sum(1) + penalty * target.sum(1)
    own = target_probability(logits, target.unsqueeze(1)).surprise.squeeze(1)
    return (own + penalty).to(logits.dtype)


class LogitPenaltyLoss(ClassificationLoss):
    """Cross-entropy with a penalty on the logits, ``-log p_y + beta * sum_c z_c**2``: for clean labels and many classes.

    Keeps the logits small, and with them the confidence; classes end up further apart than with cross-entropy.
    beta >= 0; cross-entropy when beta = 0.

    >>> import torch
    >>> LogitPenaltyLoss(beta=0.01)(torch.tensor([3.0, -3.0]), torch.tensor(0))
    tensor(0.1825)

    Args:
        beta: Factor of the sum of the squared logits, >= 0.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: equation 5 of Kornblith et al., "What's in a loss function for image classification?"; presets of tables A.1, A.2.
    """

    name = "logit-penalty"
    limits = {"beta": Limits(0.0)}
    presets = {10: {"beta": 10**-2.83}, 100: {"beta": 10**-2.83}, 1000: {"beta": 6e-4}}
    beta: float

    def __init__(self, beta: float = 6e-4, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.beta = beta

    def formula(self) -> Formula:
        """Return cross-entropy with the penalty."""
        return Rows(logit_penalty, {"beta": self.beta})
