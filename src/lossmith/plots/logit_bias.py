"""The logit bias against the number of classes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lossmith.theory import solve_logit_bias

__all__ = ["draw"]

LARGEST_POWER = 6
MEANS = (0.05, 0.15, 0.5)


def draw(folder: Path) -> Sequence[Path]:
    """Draw appendix figure 1 of Staats, Thamm and Rosenow, on to a million classes and for three mean activations.

    Args:
        folder: Where files are written.

    Returns:
        The files that were written.
    """
    figure = Figure(figsize=(6.6, 4.2), layout="constrained")
    axes = figure.subplots()
    classes = np.unique(np.round(np.logspace(np.log10(2), LARGEST_POWER, 60)).astype(int)).tolist()
    for mean, color in zip(MEANS, ("C0", "C3", "C2"), strict=True):
        curve = [solve_logit_bias(number, mean).epsilon for number in classes]
        axes.semilogx(classes, curve, color=color, linewidth=2 if mean == 0.15 else 1.3, label=f"mean probability {mean}")
    for power in range(1, LARGEST_POWER + 1):
        epsilon = solve_logit_bias(10**power).epsilon
        axes.plot(10**power, epsilon, "o", color="C3", markersize=5)
        place = (10**power, epsilon)
        axes.annotate(f"{epsilon:.2f}", place, xytext=(-5, 5), textcoords="offset points", fontsize=9, color="C3", ha="right")
    axes.axhline(0, color="0.6", linewidth=0.8)
    axes.set(xlabel="number of classes", ylabel="logit bias ε", xlim=(2, 2 * 10**LARGEST_POWER))
    axes.set_title("The bias that gives a fresh network's target the same mean probability", fontsize=11, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.legend(frameon=False)
    file = folder / "logit-bias.png"
    figure.savefig(file, dpi=110)
    return [file]
