"""The network for tables: numbers as themselves and as waves, two layers, dropout."""

import math
from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

from lossmith.data.column_scales import ColumnScales
from lossmith.training.models.backbone import Backbone
from lossmith.training.models.model import Inputs

__all__ = ["NumberWaves", "tabular"]

WIDTH = 128
DROPOUT = 0.15
FREQUENCIES = (0.5, 0.25, 1.0)
"""Half waves to a deviation of the column, the most useful first."""
MOST_WAVES = 256
"""Inputs that are sines or cosines. In wide tables they would be most of the cost, and few of the columns need a bend."""
FAR, VERY_FAR = 3.0, 5.0
"""Deviations that waves end at, and numbers themselves."""


class NumberWaves(nn.Module):
    """Rows of numbers, and behind them the sine and cosine of each, slow and fast.

    A layer on top can bend along a column without having to learn where. Faster waves are lower, so that all are as steep: where
    nothing speaks for bends, the network begins nearly straight. Waves are measured by the bulk of a column and numbers
    themselves by its deviation, so that one of them tells rows apart even where there are outliers, which both draw in.

    Args:
        scales: Which columns are numbers, and how they are scaled.
        waves: How many waves there are of each, up to three.

    >>> from lossmith.data.column_scales import column_scales
    >>> rows = torch.randn(50, 4)
    >>> NumberWaves(column_scales(rows), waves=3)(rows).shape
    torch.Size([50, 28])
    """

    def __init__(self, scales: ColumnScales, waves: int = len(FREQUENCIES)) -> None:
        super().__init__()
        self.scales = scales
        self.frequencies = torch.tensor(FREQUENCIES[:waves], dtype=torch.double)
        self.out_features = 2 * waves * len(scales.numbers)
        """How many inputs there are more than before."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Go to another device with the module: what is known of the columns is no weight, and has its own precision."""
        device = fn(torch.empty(0)).device
        self.frequencies = self.frequencies.to(device)
        self.scales = ColumnScales(*(own.to(device) for own in self.scales))
        return super()._apply(fn, recurse)  # type: ignore[no-any-return,no-untyped-call]

    def forward(self, rows: Tensor) -> Tensor:
        """Return rows ``(..., d)`` with their waves, ``(..., d + out_features)``.

        Args:
            rows: The inputs, each column with mean 0 and deviation 1.

        Returns:
            Inputs for a layer.
        """
        frequencies, centre, scale = (own.to(rows) for own in (self.frequencies, self.scales.centre, self.scales.scale))
        numbers = rows.index_select(-1, self.scales.numbers.to(rows.device))
        angles = _drawn_in((numbers - centre) / scale, FAR).unsqueeze(-1) * (math.pi * frequencies)
        heights = min(FREQUENCIES) / frequencies
        waves = [(wave(angles) * heights).flatten(-2) for wave in (torch.sin, torch.cos)]
        return torch.cat([_drawn_in(rows, VERY_FAR), *waves], -1)

    def extra_repr(self) -> str:
        """Return what ``print`` shows between the brackets."""
        return f"columns={len(self.scales.numbers)}, waves={len(self.frequencies)}"


def _drawn_in(numbers: Tensor, end: float) -> Tensor:
    """Return numbers that are as they were near 0, and never beyond ``end``."""
    near = numbers.clamp(-100 * end, 100 * end)  # the square of a very large number would be infinite
    return near * torch.rsqrt(1 + (near / end) ** 2)


def tabular(inputs: Inputs) -> nn.Module:
    """Numbers with waves of up to three lengths, two hidden layers of 128 with dropout, for tables."""
    width = math.prod(inputs.shape)
    scales = _scales(inputs, width)
    layers: list[nn.Module] = [nn.Flatten()]
    columns = len(scales.numbers)
    if 0 < 2 * columns <= MOST_WAVES:
        waves = NumberWaves(scales, min(len(FREQUENCIES), MOST_WAVES // (2 * columns)))
        layers.append(waves)
        width += waves.out_features
    for before in (width, WIDTH):
        layers += [nn.Linear(before, WIDTH), nn.SiLU(), nn.Dropout(DROPOUT)]
    return Backbone(*layers, out_features=WIDTH)


def _scales(inputs: Inputs, width: int) -> ColumnScales:
    """Return the scales of the data; without data, as if every column were a number."""
    if inputs.scales is not None:
        return inputs.scales()
    return ColumnScales(torch.arange(width), torch.zeros(width), torch.ones(width))
