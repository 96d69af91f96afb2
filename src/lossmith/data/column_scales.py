"""Where the bulk of each column of numbers is, which a few outliers do not move."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = ["ColumnScales", "column_scales"]

_MOST_ROWS = 10_000
_QUARTILES_OF_NORMAL = 1.349  # from the lower to the upper, in standard deviations


class ColumnScales(NamedTuple):
    """What some rows say of their columns."""

    numbers: Tensor
    """Places of the columns with more than two values; the others are marks of categories, or of what is missing."""
    centre: Tensor
    """The median of each of these."""
    scale: Tensor
    """The standard deviation of a normal distribution with the same quartiles; where these are equal, that of the column."""


def column_scales(inputs: Tensor) -> ColumnScales:
    """Return centre and scale of the columns that hold numbers.

    Args:
        inputs: Rows ``(n, d)`` to judge by, those of training; of many, 10,000 are looked at.

    Returns:
        What they say.

    >>> rows = torch.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 1.0], [3.0, 0.0], [1000.0, 1.0]])
    >>> scales = column_scales(rows)
    >>> scales.numbers.tolist(), scales.centre.tolist()
    ([0], [2.0])
    """
    sample = inputs[:: -(-len(inputs) // _MOST_ROWS)].double().numpy()
    numbers = np.flatnonzero([_has_three_values(column) for column in sample.T])
    low, centre, high = np.quantile(sample[:, numbers], [0.25, 0.5, 0.75], axis=0)
    scale = np.where(high > low, (high - low) / _QUARTILES_OF_NORMAL, sample[:, numbers].std(0))
    return ColumnScales(*(torch.from_numpy(part) for part in (numbers, centre, scale)))


def _has_three_values(column: np.ndarray) -> bool:
    low, high = column.min(), column.max()
    return bool(((column > low) & (column < high)).any())
