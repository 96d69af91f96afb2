"""Losses around one other loss."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.losses.contract.composite import CompositeLoss
from lossmith.losses.contract.options import check_option_names

__all__ = ["WrapperLoss"]


class WrapperLoss(CompositeLoss):
    """Base of losses that change one other loss and predict as that does.

    Args:
        loss: The loss to wrap, or None for the default.
        default: What is wrapped if no loss is given.
        options: Options for the default; a loss that is given has its own.
    """

    def __init__(self, loss: ClassificationLoss | None, default: type[ClassificationLoss], options: Mapping[str, Any]) -> None:
        if loss is not None and options:
            raise TypeError(f"{type(self).__name__}: {', '.join(options)} must be given to the loss that it wraps.")
        check_option_names(type(self), options)
        super().__init__(default(**options) if loss is None else loss)

    @property
    def loss(self) -> ClassificationLoss:
        """The wrapped loss."""
        return self.parts[0]

    def predict_proba(self, logits: Tensor) -> Tensor:
        """Return the probabilities of the wrapped loss.

        Args:
            logits: Logits ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.

        Returns:
            Probabilities of the same shape.
        """
        return self.loss.predict_proba(logits)

    def kind_of_probabilities(self) -> tuple[str | float, ...]:
        """Return that of the wrapped loss."""
        return self.loss.kind_of_probabilities()

    def changed_options(self) -> dict[str, object]:
        """Return nothing: the wrapped loss prints the options."""
        return {}
