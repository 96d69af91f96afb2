"""Cross-entropy of one sigmoid per class."""

from torch import Tensor

from lossmith.kernels import Formula, Rows
from lossmith.losses.multi_label.presence import PresenceLoss
from lossmith.numerics.elementary import softplus
from lossmith.numerics.entries import entry, with_entry
from lossmith.numerics.softmax import unless_diverged

__all__ = ["SigmoidCrossEntropyLoss"]


def sigmoid_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Return the sum of ``softplus(-z)`` for classes that are present and ``softplus(z)`` for those that are absent.

    Args:
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a number in [0, 1] for every class ``(N, C, ...)``.

    Returns:
        Losses ``(N, ...)``.
    """
    logits = unless_diverged(logits)
    if target.is_floating_point():
        return (target * softplus(-logits) + (1 - target) * softplus(logits)).sum(1)
    index = target.unsqueeze(1)
    return softplus(with_entry(logits, index, -entry(logits, index))).sum(1)


class SigmoidCrossEntropyLoss(PresenceLoss):
    """Sigmoid cross-entropy, ``-log sigmoid(z_y) - sum over c != y of log sigmoid(-z_c)``: one yes or no for every class.

    Use it for many classes, and where several labels can be true at once: a floating-point target may then hold a number
    in [0, 1] for each class, whatever their sum. Call ``init_bias_`` on the final layer before training, or the first
    steps only teach that most classes are absent. With class weights, a class that is present counts with its own weight,
    an absent one with the mean weight of those that are present. ``torch.nn.BCEWithLogitsLoss``, summed over the classes,
    when the target is multi-label and there are no weights.

    >>> import torch
    >>> loss, logits = SigmoidCrossEntropyLoss(), torch.tensor([[0.0, 2.0, -1.0]])
    >>> loss(logits, torch.tensor([1])), loss(logits, torch.tensor([[1.0, 1.0, 0.0]]))
    (tensor(1.1333), tensor(1.1333))
    >>> loss.predict_proba(logits)
    tensor([[0.3031, 0.5339, 0.1630]])

    Args:
        **options: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in ``torch.nn.CrossEntropyLoss``.

    Reference: equation 9 of Kornblith et al., "What's in a loss function for image classification?"
    """

    name = "sigmoid"

    def formula(self) -> Formula:
        """Return equation 9 for class indices, or for any targets in [0, 1]."""
        return Rows(sigmoid_cross_entropy, {})

    def of_classes(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy of each class, if it is present and if it is absent."""
        return softplus(-logits), softplus(logits)
