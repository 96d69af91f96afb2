"""Cross-entropy: the loss that all others are measured against."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from lossmith.losses.target_probability import TargetProbabilityLoss
from lossmith.numerics.probability import Probability

__all__ = ["CrossEntropyLoss"]


class CrossEntropyLoss(TargetProbabilityLoss):
    """Cross-entropy, ``-log p``. Use it on clean labels, and as the baseline on any.

    The same function as ``torch.nn.CrossEntropyLoss``, and exact where torch's is not: when the target has nearly all
    of the probability, the loss and its gradient keep their digits instead of rounding to 0.

    >>> import torch
    >>> loss = CrossEntropyLoss()
    >>> logits, target = torch.tensor([[2.0, 0.0, -1.0], [0.0, 0.0, 0.0]]), torch.tensor([0, 2])
    >>> loss(logits, target), torch.nn.CrossEntropyLoss()(logits, target)
    (tensor(0.6342), tensor(0.6342))
    >>> loss(torch.tensor([30.0, 0.0]), torch.tensor(0))
    tensor(9.3576e-14)
    """

    name = "ce"
    is_cross_entropy = True

    def __init__(self, weight: Tensor | Sequence[float] | None = None, **options: Any) -> None:
        super().__init__(weight=weight, **options)

    def value_and_pull(self, target: Probability) -> tuple[Tensor, float]:
        """Return ``-log p`` and 1."""
        return target.surprise, 1.0
