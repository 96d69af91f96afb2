"""A linear layer and the loss of its logits, which are never held all at once."""

from lossmith.linear.function import linear_loss
from lossmith.linear.layer import LinearLoss

__all__ = ["LinearLoss", "linear_loss"]


def __dir__() -> list[str]:
    return __all__
