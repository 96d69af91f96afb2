"""Tables of the page of reproductions: ours beside theirs."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from scipy import stats

from benchmarks.measure import markdown_table
from evidence.map.means import wrong_share
from evidence.papers import published
from lossmith.statistics import compare_to

__all__ = [
    "amid_mnist",
    "battash_hidden",
    "battash_linear",
    "boundaries",
    "escaping",
    "human_labels",
    "many_classes",
    "objectives",
    "staats_fashion",
    "texts",
    "top_k_noise",
    "top_k_rows",
]

Frames = Mapping[str, pd.DataFrame]
LEAST_P = 0.0001
"""Exported tables have four digits."""
CUBES = """\
A loss times c has the cube of c times the efficiency, so that CE+EL is to be compared with larger cross-entropy: 2 CE, which
CE+EL is near p = 1, has 8 times that of CE, and 4/3 CE, whose gradients are as large on average, 2.37 times."""


def percent(values: "pd.Series[float]") -> str:
    """Return a mean in per cent with its standard error."""
    mean = f"{100 * values.mean():.2f}"
    return mean if len(values) < 2 else f"{mean} ± {100 * values.sem():.2f}"


def side_by_side(frame: pd.DataFrame, theirs: published.By_noise, *, choice: str, epoch: str = "last") -> str:
    """Return a table of losses by noise, each cell of ours with that of the paper behind it where there is one.

    Args:
        frame: Accuracies.
        theirs: What the paper prints.
        choice: The convention, ``clean`` or ``noisy``.
        epoch: ``last`` or ``best``.

    Returns:
        Markdown.
    """
    part = frame[(frame["choice"] == choice) & (frame["epoch"] == epoch)]
    noises, losses = list(dict.fromkeys(part["noise"])), list(dict.fromkeys(part["loss"]))
    written = part.groupby(["loss", "noise"])["accuracy"].agg(percent)
    rows = []
    for loss in losses:
        cells = []
        for noise in noises:
            paper = theirs.get(loss, {}).get(wrong_share(noise))
            cells.append(written.get((loss, noise), "") + (f" ({paper:.2f})" if paper is not None else ""))
        rows.append([f"`{loss}`", *cells])
    return markdown_table(["loss", *noises], rows)


def order_kept(frame: pd.DataFrame, theirs: published.By_noise, *, epoch: str = "last") -> str:
    """Return how far the order of losses is that of the paper, in both conventions, and whether it is the same in them."""
    rows = []
    for noise in dict.fromkeys(frame["noise"]):
        cells = frame[(frame["noise"] == noise) & (frame["epoch"] == epoch)]
        means = cells.groupby(["choice", "loss"])["accuracy"].mean().unstack("choice")
        known = means.assign(paper=[theirs.get(loss, {}).get(wrong_share(noise)) for loss in means.index]).dropna()
        if len(known) > 2:
            found = [f"{stats.spearmanr(known[name], known['paper']).statistic:.2f}" for name in ("clean", "noisy")]
            rows.append([noise, *found, f"{stats.spearmanr(known['clean'], known['noisy']).statistic:.2f}"])
    return markdown_table(["rank correlation", "clean and the paper", "noisy and the paper", "clean and noisy"], rows)


def both(frame: pd.DataFrame, theirs: published.By_noise, *, epoch: str = "last") -> str:
    """Return the table in both conventions, the paper in brackets, and how far the order is kept."""
    parts = [
        f"{name}, {epoch} epoch, mean ± standard error over replicates, the paper in brackets:\n\n"
        + side_by_side(frame, theirs, choice=choice, epoch=epoch)
        for choice, name in (("clean", "Rates chosen on clean labels"), ("noisy", "Rates chosen on noisy labels"))
    ]
    return "\n\n".join([*parts, order_kept(frame, theirs, epoch=epoch)])


def boundaries(frames: Frames) -> str:
    """Return the shares of right points over seeds, and the paired difference with its interval."""
    frame, rows = frames["shares"], []
    for noise in dict.fromkeys(frame["noise"]):
        wide = frame[frame["noise"] == noise].pivot(index="seed", columns="loss", values="right")
        result = frame[frame["noise"] == noise].rename(columns={"right": "accuracy"})
        found = compare_to(result, "logistic").iloc[0]
        points = f"{100 * found['difference']:+.1f} ({100 * found['low']:+.1f} to {100 * found['high']:+.1f})"
        ahead = f"{int((wide['bi-tempered'] > wide['logistic']).sum())} of {len(wide)}"
        rows.append([noise, percent(wide["logistic"]), percent(wide["bi-tempered"]), points, ahead])
    header = ["noise", "logistic, % right", "bi-tempered, % right", "difference (95 % interval)", "seeds ahead"]
    return markdown_table(header, rows)


def amid_mnist(frames: Frames) -> str:
    """Return both conventions in the best epoch, as the paper has it, and in the last."""
    return "\n\n".join(both(frames["accuracy"], published.AMID_MNIST, epoch=epoch) for epoch in ("best", "last"))


def staats_fashion(frames: Frames) -> str:
    """Return both conventions in the last epoch, as the paper has it."""
    return both(frames["accuracy"], published.STAATS_FASHION)


def human_labels(frames: Frames) -> str:
    """Return both conventions; the paper has no such labels."""
    return both(frames["accuracy"], {})


def many_classes(frames: Frames) -> str:
    """Return overlap beside accuracy after tuning, and their rank correlation."""
    means, found = frames["overlap"], frames["correlation"]
    wide = means.assign(cell=[f"{100 * value:.1f}" for value in means["accuracy"]])
    table = wide.pivot_table(index=["classes", "loss", "overlap"], columns="noise", values="cell", aggfunc="first", sort=False)
    rows = [
        [str(classes), f"`{loss}`", f"{overlap:.3f}", *cells] for (classes, loss, overlap), *cells in table.itertuples(name=None)
    ]
    lines = [
        f"{row.classes} classes, {row.noise}: rank correlation with accuracy {row.rho:.2f} ({row.low:.2f}, {row.high:.2f})."
        for row in found.itertuples()
    ]
    return (
        markdown_table(["classes", "loss", "overlap", *map(str, table.columns)], rows)
        + "\n\n"
        + "\n".join(f"- {line}" for line in lines)
    )


def _battash(name: str, frames: Frames) -> str:
    rows = []
    for row in frames["ranking"].itertuples():
        wins, difference, rank = published.BATTASH[name].get(row.loss, ("", None, ""))
        own = ["", ""] if pd.isna(row.mean_rank) else [f"{row.wins:.0f}", f"{row.mean_rank:.2f}"]
        points = f"{100 * row.mean_difference:+.2f} ({100 * row.low:+.2f} to {100 * row.high:+.2f})"
        rows.append([f"`{row.loss}`", *own, points, str(wins), str(rank), "" if difference is None else f"{difference:+.2f}"])
    first = frames["ranking"].iloc[0]
    header = ["loss", "wins", "mean rank", "points over CE (95 % interval)", "paper: wins of 121", "rank", "points"]
    chance = float(first["friedman_p"])
    written = f"p = {chance:.2g}" if chance >= LEAST_P else f"p < {LEAST_P}"
    return f"{first['tables']:.0f} tables; Friedman's test {written}.\n\n" + markdown_table(header, rows)


def battash_linear(frames: Frames) -> str:
    """Return the ranking of linear classifiers."""
    return _battash("battash-linear", frames)


def battash_hidden(frames: Frames) -> str:
    """Return the ranking of networks with one hidden layer."""
    return _battash("battash-hidden", frames)


def escaping(frames: Frames) -> str:
    """Return the escaping efficiency of each loss relative to that of cross-entropy on the same networks."""
    frame, rows = frames["efficiency"], []
    for table, part in frame.groupby("table", sort=False):
        wide = part.pivot(index="seed", columns="loss", values="times_ce")
        of_ce = [f"{wide[loss].median():.2f}" for loss in ("el", "ce-el")]
        order = f"{int(((wide['ce-el'] > 1) & (wide['el'] < 1)).sum())} of {len(wide)}"
        rows.append([table, *of_ce, order])
    header = ["table", "EL, times CE", "CE+EL, times CE", "networks with CE+EL > CE > EL, as in the paper"]
    return markdown_table(header, rows) + "\n\n" + CUBES


def texts(frames: Frames) -> str:
    """Return accuracies by network and texts."""
    frame = frames["accuracy"].query("epoch == 'last'")
    wide = frame.groupby(["network", "texts", "loss"], sort=False)["accuracy"].agg(percent).unstack("loss")
    wide = wide[list(dict.fromkeys(frame["loss"]))]
    return markdown_table(["network", "texts", *wide.columns], [[*index, *row] for index, *row in wide.itertuples(name=None)])


def objectives(frames: Frames) -> str:
    """Return what nine objectives do, and how separation goes together with the rest."""
    if "measures" not in frames:
        return "Not measured before all pieces are trained."
    frame = frames["measures"]
    numbers = [name for name in frame.select_dtypes("number").columns if name != "seed"]
    means = frame.groupby("loss", sort=False)[numbers].mean()
    rows = [[f"`{loss}`", *(f"{value:.3f}" for value in row)] for loss, row in zip(means.index, means.to_numpy(), strict=True)]
    lines = [
        f"- r of {row.first} and {row.second}: {row.r:.2f} ({row.low:.2f} to {row.high:.2f}), {row.objectives} objectives."
        for row in _named(frames)
    ]
    return markdown_table(["objective", *numbers], rows) + "\n\n" + "\n".join(lines)


def _named(frames: Frames) -> Sequence[Any]:
    """Return correlations with columns that Python can name: ``of`` and ``with`` are words of its own."""
    return list(frames["correlations"].rename(columns={"of": "first", "with": "second"}).itertuples(index=False))


def top_k_noise(frames: Frames) -> str:
    """Return top-5 and top-1 accuracy in both conventions."""
    frame = frames["accuracy"].query("epoch == 'last'")
    parts = []
    for measure, title in (("top5", "Top-5 accuracy"), ("accuracy", "Top-1 accuracy")):
        own = frame.assign(accuracy=frame[measure])
        parts.append(f"**{title}**\n\n" + both(own, published.BERRADA_NOISE[measure]))
    return "\n\n".join(parts)


def top_k_rows(frames: Frames) -> str:
    """Return top-5 accuracy by the share of rows."""
    frame = frames["accuracy"].query("epoch == 'last'")
    written = frame.groupby(["loss", "share"], sort=False)["top5"].agg(percent).unstack("share")
    rows = [
        [
            f"`{loss}`",
            *(
                f"{cell} ({paper:.2f})" if (paper := published.BERRADA_ROWS.get(loss, {}).get(share)) else cell
                for share, cell in row.items()
            ),
        ]
        for loss, row in written.iterrows()
    ]
    return "Top-5 accuracy, the paper (ImageNet) in brackets:\n\n" + markdown_table(
        ["loss", *(f"{share} % of the rows" for share in written)], rows
    )
