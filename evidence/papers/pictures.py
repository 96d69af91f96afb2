"""Pictures of the page of reproductions: a paper each, ours in colour, theirs grey and dashed."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from evidence.map.means import wrong_share
from evidence.papers import published

__all__ = ["DRAWN"]

Found = Mapping[str, Mapping[str, pd.DataFrame]]
"""Frames by table and by name, of those tables that have been run."""
CLEAN, NOISY, THEIRS = "#2f6fb0", "#e0702a", "#808080"
CHOICES = {"clean": (CLEAN, "rates chosen on clean labels"), "noisy": (NOISY, "on noisy labels")}


def _panels(count: int, *, columns: int = 4, height: float = 2.6, shared: Any = True) -> tuple[Figure, list[Any]]:
    """Return panels; all, those of a ``row``, or none of them have their vertical axis in common."""
    rows = -(-count // columns)
    figure = Figure(figsize=(3.0 * min(count, columns), height * rows), layout="constrained")
    axes = figure.subplots(rows, min(count, columns), squeeze=False, sharey=shared)
    for each in axes.flat:
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(labelsize=7)
    for each in axes.flat[count:]:
        each.set_visible(False)
    return figure, list(axes.flat[:count])


def _curves(axes: Any, frame: pd.DataFrame, loss: str, theirs: Mapping[float, float], measure: str = "accuracy") -> None:
    """Draw a loss over noise in both conventions with bars of one standard error, and the paper's."""
    for choice, (color, label) in CHOICES.items():
        part = frame[(frame["loss"] == loss) & (frame["choice"] == choice)]
        by_noise = part.assign(x=part["noise"].map(wrong_share)).groupby("x")[measure].agg(["mean", "sem"])
        axes.errorbar(
            by_noise.index * 100,
            100 * by_noise["mean"],
            100 * by_noise["sem"],
            color=color,
            label=label,
            marker="o",
            ms=3,
            lw=1.3,
        )
    if theirs:
        axes.plot([100 * noise for noise in theirs], list(theirs.values()), color=THEIRS, ls="--", lw=1.2, label="the paper")
    axes.set_xlabel("% wrong labels", fontsize=7)


def _by_loss(frame: pd.DataFrame, theirs: published.By_noise, titles: Mapping[str, str], measure: str = "accuracy") -> Figure:
    losses = list(dict.fromkeys(frame["loss"]))
    figure, panels = _panels(len(losses))
    for axes, loss in zip(panels, losses, strict=True):
        _curves(axes, frame, loss, theirs.get(loss, {}), measure)
        axes.set_title(titles.get(loss, loss), fontsize=9)
    panels[0].set_ylabel("% right on test rows", fontsize=7)
    panels[0].legend(frameon=False, fontsize=6)
    return figure


def _amid(found: Found) -> Figure | None:
    if "amid-mnist" in found:
        return _by_loss(found["amid-mnist"]["accuracy"].query("epoch == 'best'"), published.AMID_MNIST, {"ce": "logistic"})
    if "amid-figure-2" not in found:
        return None
    frame = found["amid-figure-2"]["shares"]
    figure, panels = _panels(frame["noise"].nunique())
    for axes, (noise, part) in zip(panels, frame.groupby("noise", sort=False), strict=True):
        wide = part.pivot(index="seed", columns="loss", values="right") * 100
        for logistic, tempered in wide[["logistic", "bi-tempered"]].to_numpy():
            axes.plot([0, 1], [logistic, tempered], color=CLEAN if tempered >= logistic else NOISY, marker="o", ms=3, lw=1)
        axes.set_xticks([0, 1], ["logistic", "bi-tempered"], fontsize=8)
        axes.set(title=noise, xlim=(-0.3, 1.3))
        axes.title.set_fontsize(9)
    panels[0].set_ylabel("% of the plane right, a line a seed", fontsize=7)
    return figure


def _staats(found: Found) -> Figure | None:
    if "staats-fashion" not in found:
        return None
    frame = found["staats-fashion"]["accuracy"].query("epoch == 'last'")
    return _by_loss(frame, published.STAATS_FASHION, published.STAATS_TITLES)


def _battash(found: Found) -> Figure | None:
    names = [name for name in published.BATTASH if name in found]
    if not names:
        return None
    figure, panels = _panels(len(names), height=3.0, shared=False)
    for axes, name in zip(panels, names, strict=True):
        rows = found[name]["ranking"].query("loss != 'ce'")[::-1]
        places, points = range(len(rows)), 100 * rows["mean_difference"]
        axes.errorbar(points, places, xerr=[points - 100 * rows["low"], 100 * rows["high"] - points], fmt="o", color=CLEAN, ms=4)
        known = [
            (published.BATTASH[name][loss][1], place)
            for place, loss in zip(places, rows["loss"], strict=True)
            if loss in published.BATTASH[name]
        ]
        axes.scatter(*zip(*known, strict=True), marker="D", facecolors="none", edgecolors=THEIRS, label="the paper")
        axes.axvline(0, color="black", lw=0.8)
        axes.set_yticks(list(places), rows["loss"], fontsize=7)
        axes.set_title(f"{name}: points over CE", fontsize=9)
    panels[0].legend(frameon=False, fontsize=7)
    return figure


def _kornblith(found: Found) -> Figure | None:
    known = {name: frames["measures"] for name, frames in found.items() if "measures" in frames}
    if not known:
        return None
    figure, panels = _panels(2 * len(known), columns=2, height=3.2, shared=False)
    for place, (name, frame) in enumerate(known.items()):
        means = frame.groupby("loss").mean(numeric_only=True)
        separation = next(column for column in means if column.startswith("r2") and "cosine" in column)
        for axes, measure in zip(panels[2 * place : 2 * place + 2], ("accuracy", "transfer"), strict=True):
            axes.scatter(means[separation], 100 * means[measure], color=CLEAN, s=18)
            for loss, row in means.iterrows():
                title = published.KORNBLITH_TITLES.get(str(loss), str(loss))
                axes.annotate(title, (row[separation], 100 * row[measure]), fontsize=6, xytext=(3, 2), textcoords="offset points")
            axes.set_title(f"{name}: {measure}, %", fontsize=9)
            axes.set_xlabel("class separation R2, cosine", fontsize=7)
    return figure


def _berrada(found: Found) -> Figure | None:
    if "berrada-noise" not in found:
        return None
    frame = found["berrada-noise"]["accuracy"].query("epoch == 'last'")
    losses = list(dict.fromkeys(frame["loss"]))
    figure, panels = _panels(2 * len(losses), columns=len(losses), shared="row")
    for row, measure in enumerate(("top5", "accuracy")):
        for column, loss in enumerate(losses):
            axes = panels[row * len(losses) + column]
            _curves(axes, frame, loss, published.BERRADA_NOISE[measure].get(loss, {}), measure)
            axes.set_title(f"{loss}\n{'top-5' if measure == 'top5' else 'top-1'}", fontsize=8)
    panels[0].legend(frameon=False, fontsize=6)
    return figure


DRAWN: Mapping[str, Callable[[Found], Figure | None]] = {
    "amid": _amid,
    "staats": _staats,
    "battash": _battash,
    "kornblith": _kornblith,
    "berrada": _berrada,
}
"""By the paper; None where nothing of it has been run."""
