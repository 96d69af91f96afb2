"""The Box-Cox transform, from logarithms."""

import torch
from torch import Tensor

__all__ = ["box_cox"]


def box_cox(log_x: Tensor, power: float) -> Tensor:
    """Return ``(x**power - 1) / power``, and its limit ``log x`` at ``power = 0``, given ``log x``.

    ``expm1`` keeps every digit where ``x**power`` is close to 1: near ``x = 1`` and near ``power = 0``.

    >>> box_cox(torch.tensor([0.0, -1e-9]), 0.7)
    tensor([ 0.0000e+00, -1.0000e-09])
    """
    if power == 0:
        return log_x
    return torch.expm1(power * log_x) / power
