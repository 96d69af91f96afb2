"""A loss for every class that is present, and one for every class that is absent."""

import math
from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.numerics.entries import entry, with_entry
from lossmith.numerics.softmax import unless_diverged

__all__ = ["PresenceLoss", "sum_over_classes"]

OfLogits = Callable[[Tensor], Tensor]


def sum_over_classes(present: OfLogits, absent: OfLogits, logits: Tensor, target: Tensor) -> Tensor:
    """Return the sum of what classes cost that are present, and of what those cost that are absent.

    Args:
        present: From logits to what each costs if its class is present.
        absent: The same if it is absent.
        logits: ``(N, C, ...)``.
        target: Class indices ``(N, ...)``, or a number in [0, 1] for every class ``(N, C, ...)``.

    Returns:
        Losses ``(N, ...)``.
    """
    logits = unless_diverged(logits)
    if target.is_floating_point():
        return (target * present(logits) + (1 - target) * absent(logits)).sum(1)
    index = target.unsqueeze(1)
    return with_entry(absent(logits), index, present(entry(logits, index))).sum(1)


class PresenceLoss(ClassificationLoss):
    """Base of losses of one sigmoid per class. A floating-point target is a number in [0, 1] for each, whatever their sum."""

    takes_several = True

    def weighted_soft_losses(self, logits: Tensor, probabilities: Tensor, weight: Tensor | None) -> Tensor:
        """Return the loss for any targets in [0, 1]; for a distribution, that is the expected class-weighted loss.

        A class that is present counts with its own weight, an absent one with the mean weight of those that are present.
        """
        if weight is None:
            return self.example_losses(logits, probabilities)
        weighted = probabilities * weight
        others = _mean_weight_of_others(probabilities, weighted, weight)
        present, absent = self.of_classes(unless_diverged(logits))
        return (weighted * present + (1 - probabilities) * others * absent).sum(1)

    @abstractmethod
    def of_classes(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return what every class costs if it is present, and if it is absent.

        Args:
            logits: ``(N, C, ...)``.

        Returns:
            Two tensors of the same shape.
        """

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the sigmoids, divided by their sum; where several classes can be true, ``torch.sigmoid(logits)`` is meant.

        Args:
            logits: Logits ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.

        Returns:
            Probabilities of the same shape.
        """
        # In logarithms, so that classes that are all improbable keep their proportions.
        return torch.softmax(F.logsigmoid(logits), min(1, logits.dim() - 1))

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return that they are sigmoids."""
        return ("sigmoids",)

    @staticmethod
    def init_bias_(head: nn.Module) -> None:
        """Set the biases of a final layer to ``-log K``, so that every class starts at a probability of about 1/K.

        Args:
            head: The final layer, whose biases are overwritten.

        Raises:
            TypeError: If the layer has no biases.

        >>> head = nn.Linear(8, 4)
        >>> PresenceLoss.init_bias_(head)
        >>> head.bias.detach()
        tensor([-1.3863, -1.3863, -1.3863, -1.3863])
        """
        bias = getattr(head, "bias", None)
        if not isinstance(bias, Tensor):
            raise TypeError(f"init_bias_: head must be a layer with biases, got {type(head).__name__}.")
        with torch.no_grad():
            bias.fill_(-math.log(bias.numel()))


def _mean_weight_of_others(probabilities: Tensor, weighted: Tensor, weight: Tensor) -> Tensor:
    others = probabilities.sum(1, keepdim=True) - probabilities
    weighted_others = weighted.sum(1, keepdim=True) - weighted
    has_others = others > 0
    return torch.where(has_others, weighted_others / torch.where(has_others, others, 1.0), weight.mean())
