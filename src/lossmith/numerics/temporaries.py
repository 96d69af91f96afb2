"""Operations on temporaries: in place where no gradient is recorded.

A fresh buffer costs more than the arithmetic that fills it, because the system hands out its pages one by one.
"""

import torch
from torch import Tensor

__all__ = ["add", "add_product", "multiply", "overwrite"]


def add(tensor: Tensor, term: Tensor | float) -> Tensor:
    """Add to a temporary."""
    return tensor + term if torch.is_grad_enabled() else tensor.add_(term)


def multiply(tensor: Tensor, factor: Tensor | float) -> Tensor:
    """Multiply a temporary."""
    return tensor * factor if torch.is_grad_enabled() else tensor.mul_(factor)


def add_product(tensor: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Add ``first * second`` to a temporary."""
    if torch.is_grad_enabled():
        return torch.addcmul(tensor, first, second)
    return tensor.addcmul_(first, second)


def overwrite(tensor: Tensor, index: Tensor, value: Tensor | float) -> Tensor:
    """Write ``value`` at one class of each row of a temporary."""
    if torch.is_grad_enabled():
        return tensor.scatter(1, index, value)
    return tensor.scatter_(1, index, value)
