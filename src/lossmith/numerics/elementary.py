"""Elementary functions that keep their digits, and numbers that a schedule changes."""

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["as_scalar", "box_cox", "softplus"]


def box_cox(log_x: Tensor, power: float) -> Tensor:
    """Return ``(x**power - 1) / power``, and its limit ``log x`` at ``power = 0``, given ``log x``.

    ``expm1`` keeps every digit where ``x**power`` is close to 1: near ``x = 1`` and near ``power = 0``.

    Args:
        log_x: Logarithms of numbers x >= 0.
        power: The exponent.

    Returns:
        Numbers of the same shape.

    >>> box_cox(torch.tensor([0.0, -1e-9]), 0.7)
    tensor([ 0.0000e+00, -1.0000e-09])
    """
    if power == 0:
        return log_x
    return torch.expm1(power * log_x) / power


def softplus(x: Tensor) -> Tensor:
    """Return ``log(1 + exp(x))``; beyond 40 it is ``x`` in double precision, too.

    Args:
        x: Any numbers.

    Returns:
        Numbers of the same shape.

    >>> softplus(torch.tensor([-50.0, 0.0, 50.0]))
    tensor([1.9287e-22, 6.9315e-01, 5.0000e+01])
    """
    return F.softplus(x, threshold=40.0)


def as_scalar(number: float, like: Tensor) -> Tensor:
    """Return a number as a tensor without dimensions, of the type and on the device of another tensor.

    The sum, unlike ``torch.full``, makes torch.compile take the number as an input of the graph, not as a constant of it.

    Args:
        number: The number.
        like: The tensor whose type and device it gets.

    Returns:
        A tensor without dimensions.

    >>> as_scalar(0.5, torch.ones(3))
    tensor(0.5000)
    """
    return like.new_zeros(()) + number
