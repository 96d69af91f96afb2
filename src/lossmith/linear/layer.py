"""A linear layer together with the loss of what it puts out."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lossmith.expressions.limits import Limits
from lossmith.linear.checks import check_chunk
from lossmith.linear.function import linear_loss
from lossmith.losses.contract.classification_loss import ClassificationLoss

__all__ = ["LinearLoss"]


class LinearLoss(nn.Module):
    """A final layer and any loss of its logits, which are made and used a few rows at a time.

    It takes the place of ``nn.Linear`` and the loss behind it, and has the weights, biases and names of ``nn.Linear``. With many
    classes, as a language model has, it needs a tenth of the memory, and not more time. :func:`linear_loss` does the same with
    weights that are kept elsewhere, such as those of an embedding.

    Args:
        loss: Any loss, with its options.
        in_features: The width of the features.
        num_classes: How many classes there are.
        bias: Whether each class has a bias.
        chunk: How many rows have logits at a time; chosen by size if not given.
        device: Where weights are made.
        dtype: The precision of the weights.

    Raises:
        TypeError: If the loss is not one of this library.
        ValueError: If a number is out of range.

    >>> from lossmith import GeneralizedCrossEntropyLoss
    >>> layer = LinearLoss(GeneralizedCrossEntropyLoss(), in_features=8, num_classes=1000)
    >>> layer(torch.zeros(2, 5, 8), torch.zeros(2, 5, dtype=torch.long)).shape
    torch.Size([])
    >>> layer.predict_proba(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 1000])
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        loss: ClassificationLoss,
        in_features: int,
        num_classes: int,
        *,
        bias: bool = True,
        chunk: int | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(loss, ClassificationLoss):
            raise TypeError(f"LinearLoss: loss must be a lossmith loss, got {type(loss).__name__}.")
        for name, value in (("in_features", in_features), ("num_classes", num_classes)):
            Limits(1, whole=True).check(name, value, owner="LinearLoss")
        check_chunk("LinearLoss", chunk)
        layer = nn.Linear(in_features, num_classes, bias=bias, device=device, dtype=dtype)
        self.loss = loss
        self.chunk = chunk
        self.weight = layer.weight
        self.register_parameter("bias", layer.bias)

    def forward(
        self, features: Tensor, target: Tensor, *, sample_weight: Tensor | None = None, denominator: float | Tensor | None = None
    ) -> Tensor:
        """Return the loss of the logits of features.

        Args:
            features: What the backbone puts out, ``(..., in_features)``.
            target: Class indices ``(...)``, or class probabilities ``(..., C)``.
            sample_weight: A factor for each example, ``(...)``.
            denominator: What the sum of the losses is divided by, as in a call of the loss.

        Returns:
            One number, or a loss for each example where ``reduction`` is ``"none"``.
        """
        return linear_loss(
            features,
            self.weight,
            target,
            self.loss,
            bias=self.bias,
            sample_weight=sample_weight,
            denominator=denominator,
            chunk=self.chunk,
        )

    def logits(self, features: Tensor) -> Tensor:
        """Return the logits of features, all at once.

        Args:
            features: What the backbone puts out, ``(..., in_features)``.

        Returns:
            Logits ``(..., C)``.
        """
        return F.linear(features, self.weight, self.bias)

    def predict_proba(self, features: Tensor) -> Tensor:
        """Return the class probabilities that belong to the loss.

        Args:
            features: What the backbone puts out, ``(..., in_features)``.

        Returns:
            Probabilities ``(..., C)``.
        """
        logits = self.logits(features)
        return self.loss.predict_proba(logits.reshape(-1, logits.shape[-1])).reshape(logits.shape)

    def extra_repr(self) -> str:
        """Return what ``print`` shows between the brackets."""
        num_classes, in_features = self.weight.shape
        return f"in_features={in_features}, num_classes={num_classes}, bias={self.bias is not None}, chunk={self.chunk}"
