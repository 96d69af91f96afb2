"""Numbers that a schedule changes, in compiled graphs."""

import torch
from torch import Tensor

__all__ = ["as_input", "as_scalar"]


def as_scalar(number: float, like: Tensor) -> Tensor:
    """Return a number as a tensor without dimensions, of the type and on the device of another tensor.

    The sum, unlike ``torch.full``, makes torch.compile take the number as an input of the graph, not as a constant of it.

    >>> as_scalar(0.5, torch.ones(3))
    tensor(0.5000)
    """
    return like.new_zeros(()) + number


def as_input(number: float, like: Tensor) -> Tensor | float:
    """Return a number as it is, and as a tensor while compiling: for operations that would make it a constant there."""
    return as_scalar(number, like) if torch.compiler.is_compiling() else number
