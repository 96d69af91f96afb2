"""Any loss of the target's probability, of one logit per label."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lossmith import kernels
from lossmith.losses.catalogue import make_loss
from lossmith.losses.contract.binary_options import OneLogitLoss
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.options import Reduction
from lossmith.losses.multi_label.multi_label import MultiLabelLoss
from lossmith.losses.multi_label.presence import PresenceLoss

__all__ = ["BinaryLoss"]


class BinaryLoss(OneLogitLoss):
    """Any loss of the target's probability with one logit per label, a drop-in for ``torch.nn.BCEWithLogitsLoss``.

    ``f(sigmoid(z))`` where the label is 1, ``f(sigmoid(-z))`` where it is 0, and the expected loss between the two: what the
    loss of two classes is for the logits ``(z, 0)``, exact in both tails. ``weight`` multiplies the losses of all elements that
    it broadcasts to; ``pos_weight`` multiplies those of positive labels. ``torch.nn.BCEWithLogitsLoss`` itself for cross-entropy.

    >>> import torch
    >>> logits, target = torch.tensor([2.0, -1.0]), torch.tensor([1.0, 1.0])
    >>> BinaryLoss("ce")(logits, target), torch.nn.BCEWithLogitsLoss()(logits, target)
    (tensor(0.7201), tensor(0.7201))
    >>> BinaryLoss("focal(gamma=2)", pos_weight=[3.0])
    BinaryLoss(focal(gamma=2.0))

    Args:
        loss: A loss of the target's probability, a sum of such, or the expression of one, such as ``focal(gamma=1)``; or ``asl``.
        weight: Factors for the losses of the elements that they broadcast to; none by default.
        pos_weight: Factors for the losses of positive labels; none by default.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """

    def __init__(
        self,
        loss: ClassificationLoss | str = "ce",
        *,
        weight: Tensor | Sequence[float] | None = None,
        pos_weight: Tensor | Sequence[float] | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight, pos_weight, reduction)
        self.loss = _of_presence(loss)

    def forward(self, logits: Tensor, target: Tensor, *, denominator: float | Tensor | None = None) -> Tensor:
        """Return the loss of all elements, reduced.

        Args:
            logits: One number per label, of any shape.
            target: Labels or probabilities in [0, 1], of the same shape.
            denominator: What the sum of the losses is divided by, a number > 0 or a tensor of one, if not by their count.

        Returns:
            The mean or the sum of the losses, or all of them where ``reduction`` is ``"none"``.

        Raises:
            TypeError: If the logits are not floating point, or the target is complex.
            ValueError: If the shapes differ.
        """
        rows, labels = self._rows(logits, target)
        if self.pos_weight is None:
            losses = self._losses(rows, labels).reshape(logits.shape)
        else:
            present, absent = (self._losses(rows, torch.full_like(labels, label)).reshape(logits.shape) for label in (1.0, 0.0))
            labels = labels.reshape(logits.shape)
            losses = self.pos_weight.to(labels.dtype) * labels * present + (1 - labels) * absent
        return self._reduced(losses, logits, denominator)

    def _losses(self, rows: Tensor, labels: Tensor) -> Tensor:
        return kernels.losses(self.loss.formula(), rows.unsqueeze(1), labels.unsqueeze(1))

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the probability of the label 1 for each logit.

        Args:
            logits: One number per label, of any shape.

        Returns:
            Probabilities of the same shape.
        """
        return torch.sigmoid(logits)

    def __repr__(self) -> str:
        inner = self.loss.loss if isinstance(self.loss, MultiLabelLoss) else self.loss
        return f"BinaryLoss({inner})"


def _of_presence(loss: ClassificationLoss | str) -> PresenceLoss:
    if isinstance(loss, str):
        loss = make_loss(loss)
    if not isinstance(loss, ClassificationLoss):
        raise TypeError(f"BinaryLoss: loss must be a lossmith loss or the expression of one, got {type(loss).__name__}.")
    return loss if isinstance(loss, PresenceLoss) else MultiLabelLoss(loss)
