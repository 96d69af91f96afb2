"""Losses over several data sets or noise levels as figures: critical-difference diagram and performance profile."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossmith.report.colours import LIGHT
from lossmith.statistics.ranking import Ranking, performance_profile

__all__ = ["draw_ranking"]

_COLOURS = (*LIGHT[1:], LIGHT[0])


def draw_ranking(ranking: Ranking, blocks: pd.DataFrame, file: str | Path, *, higher_is_better: bool = True) -> Path:
    """Draw mean ranks with bars that join what cannot be told apart, and beside it the profile of Dolan and More.

    ``blocks`` is the table of blocks x losses that was ranked. The ending of the file names the form: .png, .svg or .pdf.

    Args:
        ranking: What :func:`lossmith.statistics.rank` returned.
        blocks: A row for each block, a column for each loss.
        file: Where the figure is written.
        higher_is_better: Whether the largest value is the best.

    Returns:
        The file.

    Raises:
        ValueError: If the ending names no known form.
    """
    file = Path(file)
    losses = len(ranking.summary)
    figure = Figure(figsize=(12, 1.9 + 0.26 * losses), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    _critical_differences(left, ranking)
    _profile(right, performance_profile(blocks, higher_is_better=higher_is_better), list(ranking.summary.index))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    return file


def _critical_differences(axes: Axes, ranking: Ranking) -> None:
    """Draw the diagram of Demsar: the best on the left, names below, bars between the axis and the names."""
    ranks = ranking.summary["mean_rank"]
    losses = len(ranks)
    for bar, group in enumerate(ranking.groups):
        ends = [ranks[group[0]] - 0.04, ranks[group[-1]] + 0.04]
        axes.plot(ends, [-0.35 - 0.22 * bar] * 2, color="0.2", linewidth=4, solid_capstyle="round")
    below = 0.35 + 0.22 * len(ranking.groups)
    for place, (loss, rank) in enumerate(ranks.items()):
        is_left = place < (losses + 1) // 2
        height = -below - 0.42 * (place if is_left else losses - 1 - place) - 0.2
        side = 0.75 if is_left else losses + 0.25
        axes.plot([rank, rank, side], [0, height, height], color="0.45", linewidth=1)
        axes.text(side, height, f" {loss} {rank:.2f} ", ha="right" if is_left else "left", va="center", fontsize=9)
    axes.set(xlim=(0.75, losses + 0.25), ylim=(-below - 0.42 * ((losses + 1) // 2), 0.05), xticks=range(1, losses + 1), yticks=[])
    axes.xaxis.tick_top()
    axes.spines[["left", "right", "bottom"]].set_visible(False)
    axes.set_title("Mean rank; a bar joins what cannot be told apart", fontsize=11, loc="left", pad=12)


def _profile(axes: Axes, profile: pd.DataFrame, order: list[str]) -> None:
    """Draw the share of blocks in which each loss comes within a factor of the best."""
    start = max(0.0, float(profile.index[profile.index > 0].min()) - 0.02) if len(profile) else 0.0
    for place, loss in enumerate(order):
        color, style = _COLOURS[place % len(_COLOURS)], "-" if place < len(_COLOURS) else "--"
        # Between thresholds the share is that of the next one, which a loss must still reach.
        shares = [profile[loss].iloc[0], *profile[loss]]
        axes.step([start, *profile.index], shares, where="pre", label=loss, color=color, linestyle=style, linewidth=1.8)
    axes.set(xlabel="times the best", ylabel="share that reaches it", ylim=(0, 1.03), xlim=(start, 1.002))
    axes.set_title("Performance profile", fontsize=11, loc="left", pad=12)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
