"""The Box-Cox transform, from logarithms."""

import math

import torch
from torch import Tensor

from lossmith.numerics.probability import Probability
from lossmith.numerics.softmax import values_are_at_hand
from lossmith.numerics.temporaries import multiply

__all__ = ["box_cox", "box_cox_and_power", "fall_and_power"]

# exp(-1/4) is far enough from 1 to be subtracted from it.
_FAR = 0.25
# It is not worth while to look for fewer.
_MANY = 4096


def box_cox(log_x: Tensor, power: float) -> Tensor:
    """Return ``(x**power - 1) / power``, and its limit ``log x`` at ``power = 0``, given ``log x``.

    ``expm1`` keeps every digit where ``x**power`` is close to 1: near ``x = 1`` and near ``power = 0``.

    >>> box_cox(torch.tensor([0.0, -1e-9]), 0.7)
    tensor([ 0.0000e+00, -1.0000e-09])
    """
    if power == 0:
        return log_x
    return torch.expm1(power * log_x) / power


def box_cox_and_power(log_x: Tensor, power: float) -> tuple[Tensor, Tensor]:
    """Return ``(x**power - 1) / power`` and ``x**power``, given ``log x``; with one exponential where that is exact.

    >>> box_cox_and_power(torch.tensor([-1.0]), 0.5)
    (tensor([-0.7869]), tensor([0.6065]))
    """
    if power == 0:
        return log_x, torch.exp(power * log_x)
    scaled = power * log_x
    if _is_far_from_one(scaled):
        raised = exp_of_multiple(log_x, power)
        return multiply(raised - 1, 1 / power), raised
    return torch.expm1(scaled) / power, exp_of_multiple(log_x, power)


def exp_of_multiple(x: Tensor, factor: float) -> Tensor:
    """Return ``exp(factor * x)``, by a power of 2 where that is as exact and costs less: a product has to be rounded anyway."""
    if not values_are_at_hand(x):
        return torch.exp(factor * x)
    return (x * (factor * math.log2(math.e))).exp2_()


def fall_and_power(probability: Probability, power: float) -> tuple[Tensor, Tensor]:
    """Return ``(1 - p**power) / power`` and ``p**power`` for ``power >= 0``.

    >>> fall_and_power(Probability(torch.tensor([0.25]), torch.tensor([0.75])), 0.5)
    (tensor([1.]), tensor([0.5000]))
    """
    if power * math.log(probability.most) > -_FAR:
        change, raised = box_cox_and_power(probability.log, power)
        return -change, raised
    raised = probability.p**power if probability.least else exp_of_multiple(probability.surprise, -power)
    return torch.rsub(raised, 1 / power, alpha=1 / power), raised


def _is_far_from_one(log_x: Tensor) -> bool:
    """Whether ``x - 1`` loses little more than two bits."""
    if not values_are_at_hand(log_x) or log_x.numel() < _MANY:
        return False
    low, high = torch.aminmax(log_x)
    return high.item() < -_FAR or low.item() > _FAR
