"""Cross-entropy of logits that are scaled to one length."""

from typing import Unpack

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.kernels import Formula, Rows
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Options
from lossmith.numerics.norms import inverse_norm
from lossmith.numerics.softmax import surprises, target_probability

__all__ = ["LogitNormLoss"]


def logit_norm(logits: Tensor, target: Tensor, *, tau: float) -> Tensor:
    """Return the cross-entropy of ``z / (tau ||z||)``.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a factor for every class ``(N, C, ...)``.
        tau: Temperature, > 0.

    Returns:
        Losses ``(N, ...)``.
    """
    normalized = logits * (inverse_norm(logits, 1) / tau)
    if target.is_floating_point():
        return (surprises(normalized) * target).sum(1)
    return target_probability(normalized, target.unsqueeze(1)).surprise.squeeze(1).to(logits.dtype)


class LogitNormLoss(ClassificationLoss):
    """Cross-entropy of normalised logits, ``-log softmax(z / (tau ||z||))_y``: accurate and calibrated on clean labels.

    Only the direction of the logits counts, so training cannot lower the loss by making them large. tau > 0 sets how
    confident the model can become: the smaller, the more. Logits that are all 0 have no direction; they are left as they
    are, and their gradient is finite. Cross-entropy of ``z`` when ``||z|| = 1 / tau``.

    >>> import torch
    >>> loss, target = LogitNormLoss(tau=0.5), torch.tensor(0)
    >>> loss(torch.tensor([3.0, 4.0]), target), loss(torch.tensor([30.0, 40.0]), target)
    (tensor(0.9130), tensor(0.9130))

    Args:
        tau: Temperature, > 0; the smaller, the more confident the model can become.
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: equation 6 of Kornblith et al., "What's in a loss function for image classification?"; presets of tables A.1, A.2.
    """

    name = "logit-norm"
    limits = {"tau": Limits(0.0, low_open=True)}
    presets = {10: {"tau": 0.14}, 100: {"tau": 0.11}, 1000: {"tau": 0.04}}
    tau: float

    def __init__(self, tau: float = 0.04, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.tau = tau

    def formula(self) -> Formula:
        """Return cross-entropy of the normalised logits."""
        return Rows(logit_norm, {"tau": self.tau})

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the softmax of the normalised logits.

        Args:
            logits: Logits ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.

        Returns:
            Probabilities of the same shape.
        """
        classes = min(1, logits.dim() - 1)
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return torch.softmax(wide * (inverse_norm(wide, classes) / self.tau), classes).to(logits.dtype)

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return the temperature."""
        return ("softmax of normalised logits", self.tau)
