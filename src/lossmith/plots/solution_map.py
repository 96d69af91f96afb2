"""The average error over two parameters of a loss, with the line of those that suit another number of classes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure

from lossmith.theory import SolutionMap, solution_map

__all__ = ["draw", "draw_map"]

REFERENCE, LOSS = "nce-agce@100", "nce-agce@1000"
PAIRS = (
    (("q", "b"), {"q": (0.01, 3.0), "b": (0.01, 3.0)}),
    (("alpha", "beta"), {"alpha": (1.0, 300.0), "beta": (0.03, 10.0)}),
)
POINTS = 21
CHOSEN = {"q": 0.05, "b": 0.05, "alpha": 100.0, "beta": 0.7}


def draw(folder: Path) -> Sequence[Path]:
    """Draw appendix figure 4 of Staats, Thamm and Rosenow: NCE-AGCE, from 100 to 1000 classes.

    Args:
        folder: Where files are written.

    Returns:
        The files that were written.
    """
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, (names, ranges) in zip(panels, PAIRS, strict=True):
        found = solution_map(LOSS, 100, 1000, names, reference=REFERENCE, ranges=ranges, points=POINTS)
        shades = draw_map(found, axes)
        axes.plot(CHOSEN[names[0]], CHOSEN[names[1]], "x", color="red", markersize=9, markeredgewidth=2, label="published")
        figure.colorbar(shades, ax=axes, label="log₁₀ of the size of the average error at 0", format="%.1f")
    panels[0].legend(loc="upper right", framealpha=0.9)
    figure.suptitle(f"Parameters of NCE-AGCE that keep the average error {found.target:.3f} at 1000 classes", fontsize=11)
    file = folder / "solution-map.png"
    figure.savefig(file, dpi=110)
    return [file]


def draw_map(found: SolutionMap, axes: Axes) -> QuadContourSet:
    """Draw the size of the average error, in steps of its logarithm, and the line of solutions.

    Args:
        found: The map to draw.
        axes: Where to draw it.

    Returns:
        The filled contours, for a colour bar.
    """
    logs = np.log10(np.abs(found.errors.numpy()).clip(1e-12))
    levels = np.linspace(np.nanmin(logs), np.nanmax(logs), 15)
    shades = axes.contourf(found.first, found.second, logs.T, levels=levels, cmap="viridis")
    shades.axes.set(xscale="log", yscale="log", xlabel=found.names[0], ylabel=found.names[1])
    axes.plot(*found.line.T, "o", color="red", markersize=3, label="solutions")
    axes.contour(found.first, found.second, found.errors.T, levels=[found.target], colors="red", linestyles="--", linewidths=1.5)
    return shades
