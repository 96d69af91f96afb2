"""The sizes of panels, the ranges that their axes show, and where in them values are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lossmith.report.svg import position

__all__ = ["FRAMES", "SMALL", "WIDE", "Frame", "Plot", "fitting_range", "spanned"]


@dataclass(frozen=True)
class Frame:
    """A drawing's width and height, and the part of it in which curves are."""

    name: str
    """Names its clip path."""
    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    ticks: int
    """About how many round numbers there are along a side."""
    is_named: bool
    """Whether the axes have their words beside them."""

    @property
    def clip(self) -> dict[str, int]:
        """Return the part that curves may use, with room for the width of their lines."""
        across, down = self.right - self.left, self.bottom - self.top
        return {"x": self.left - 5, "y": self.top - 5, "width": across + 10, "height": down + 10}


@dataclass(frozen=True)
class Plot:
    """A frame with the ranges of values that it shows."""

    frame: Frame
    across: tuple[float, float]
    up: tuple[float, float]

    def x(self, value: float) -> float:
        """Return where a value lies from left to right."""
        return position(float(value), self.across, (self.frame.left, self.frame.right))

    def y(self, value: float) -> float:
        """Return where a value lies from top to bottom."""
        return position(float(value), self.up, (self.frame.bottom, self.frame.top))


WIDE = Frame("plot", 360, 236, left=46, right=350, top=10, bottom=198, ticks=5, is_named=True)
SMALL = Frame("plot-small", 210, 150, left=34, right=197, top=8, bottom=126, ticks=3, is_named=False)
"""For panels that many stand side by side, whose axes are named once for all."""

FRAMES = (WIDE, SMALL)


def fitting_range(curves: Sequence[Sequence[np.ndarray]], *, skip: float = 0.0, margin: float = 0.0) -> tuple[float, float]:
    """Return the range of curves and their bands with a margin; a share of each curve's beginning may be left out of it."""
    return spanned([part[int(skip * len(part)) :] for parts in curves for part in parts], margin)


def spanned(parts: Sequence[np.ndarray], margin: float) -> tuple[float, float]:
    """Return the range of all finite values and a margin, never empty."""
    values = np.concatenate([np.asarray(part, float) for part in parts]) if parts else np.empty(0)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if low == high:
        low, high = low - 0.05 * (abs(low) or 1), high + 0.05 * (abs(high) or 1)
    extra = margin * (high - low)
    return low - extra, high + extra
