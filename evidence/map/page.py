"""The page of the map of losses: ``python -m evidence.map.page`` writes ``docs/map.md`` and its picture."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from benchmarks.measure import markdown_table
from evidence.map.leave_out import shortlist_text
from evidence.map.means import differences, map_means, uneven_means, wrong_share
from lossmith.theory.studied.similar_data import FEWEST, mean_interval

__all__ = ["main", "page", "picture"]

DOCS = Path(__file__).parents[2] / "docs"
GROUPS: Mapping[str, Sequence[tuple[float, str]]] = {
    "classes": ((2, "2 classes"), (9, "3 to 9 classes"), (1e9, "10 and more classes")),
    "rows per class": ((50, "up to 50 rows per class"), (200, "51 to 200 rows per class"), (1e9, "more rows per class")),
}
"""By upper ends."""
ONE_POINT = 0.01


def grouped(means: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the parts of the map by what may decide: everything, kind of data, classes, rows per class."""
    yield "all data sets", means
    for kind, part in means.groupby("kind", sort=False):
        yield f"{kind}s", part
    numbers = {"classes": means["classes"], "rows per class": means["rows"] / means["classes"]}
    for name, ends in GROUPS.items():
        below = -np.inf
        for end, title in ends:
            yield title, means[(numbers[name] > below) & (numbers[name] <= end)]
            below = end


def matrix(means: pd.DataFrame, losses: Sequence[str], noises: Sequence[str]) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return mean differences to cross-entropy by part and noise, their titles, and where the interval leaves out 0."""
    values, titles, sure = [], [], []
    for title, part in grouped(means):
        for noise in noises:
            cells = part[part["noise"] == noise]
            if cells["data"].nunique() < FEWEST:
                continue
            of_loss = [cells.loc[cells["loss"] == loss, "difference"].dropna() for loss in losses]
            values.append([100 * each.mean() for each in of_loss])
            sure.append([bool(len(each) >= FEWEST and np.prod(mean_interval(each.tolist())) > 0) for each in of_loss])
            titles.append(f"{title}, {noise} ({cells['data'].nunique()})")
    return np.array(values), titles, np.array(sure)


def picture(means: pd.DataFrame, losses: Sequence[str], noises: Sequence[str]) -> Figure:
    """Draw which loss is how far ahead of cross-entropy, by part of the map and noise; bold where that is beyond chance."""
    values, titles, sure = matrix(means, losses, noises)
    figure = Figure(figsize=(3.2 + 0.95 * len(losses), 1.2 + 0.27 * len(titles)), layout="constrained")
    axes = figure.subplots()
    limit = max(1.0, float(np.nanquantile(np.abs(values), 0.95)))
    axes.imshow(values, cmap="RdBu", norm=TwoSlopeNorm(0.0, -limit, limit), aspect="auto")
    for row, column in np.argwhere(np.isfinite(values)):
        weight = "bold" if sure[row, column] else "normal"
        dark = abs(values[row, column]) > 0.65 * limit
        axes.text(
            column,
            row,
            f"{values[row, column]:+.1f}",
            ha="center",
            va="center",
            fontsize=7,
            weight=weight,
            color="w" if dark else "k",
        )
    axes.set_xticks(range(len(losses)), losses, rotation=30, ha="left", fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(titles)), titles, fontsize=7)
    return figure


def _winners(means: pd.DataFrame) -> pd.DataFrame:
    """Return for each noise on how many sets each loss was the best, and within one point of the best."""
    rows = []
    for noise, part in means.groupby("noise", sort=False):
        wide = part.pivot(index="data", columns="loss", values="accuracy")
        best = wide.max(axis=1)
        for loss in dict.fromkeys(part["loss"]):
            own = wide[loss].dropna()
            wins, near = int((own >= best[own.index] - 1e-9).sum()), int((own >= best[own.index] - ONE_POINT - 1e-9).sum())
            rows.append({"noise": noise, "loss": loss, "best": wins, "within one point": near, "of": len(own)})
    return pd.DataFrame(rows)


def _surprises(means: pd.DataFrame, count: int = 8) -> list[list[str]]:
    """Return where a loss was furthest ahead of cross-entropy, and furthest behind."""
    ordered = means.dropna(subset=["difference"]).sort_values("difference")
    found = pd.concat([ordered.tail(count // 2)[::-1], ordered.head(count // 2)])
    return [
        [row.data, f"{row.rows} rows, {row.classes} classes", row.noise, row.loss, f"{100 * row.difference:+.1f}"]
        for row in found.itertuples()
    ]


def uneven_table(uneven: pd.DataFrame) -> str:
    """Return how far each loss was ahead of cross-entropy where classes are uneven, in points of balanced accuracy.

    Args:
        uneven: Rows of :func:`evidence.map.means.uneven_means`.

    Returns:
        A row for each loss, the best first; a column for all sets and for each kind, an interval where there are four sets.
    """
    found = differences(uneven).query("loss != 'ce'")
    parts = {"all": found, **dict(iter(found.groupby("kind", sort=False)))}
    heads = [f"{name}s" if name != "all" else "all" for name in parts]
    columns = [f"{head} ({part['data'].nunique()})" for head, part in zip(heads, parts.values(), strict=True)]
    order = found.groupby("loss")["difference"].mean().sort_values(ascending=False).index
    rows = [[loss, *(_mean_of(part.loc[part["loss"] == loss, "difference"]) for part in parts.values())] for loss in order]
    return markdown_table(["loss", *columns], rows)


def _mean_of(numbers: "pd.Series[float]") -> str:
    mean = f"{100 * numbers.mean():+.1f}"
    if len(numbers) < FEWEST:
        return mean
    low, high = mean_interval(numbers.tolist())
    return f"{mean} ({100 * low:+.1f} to {100 * high:+.1f})"


def page(means: pd.DataFrame, protocol: str, measured: Mapping[str, object], uneven: pd.DataFrame | None = None) -> str:
    """Return the page as Markdown.

    Args:
        means: Rows of :func:`differences`, noise by name.
        protocol: How the sets were studied.
        measured: What leaving sets out has shown; empty where it has not been measured.
        uneven: What happened where classes are uneven, if anything.

    Returns:
        The text.
    """
    sets, wins = means.drop_duplicates("data"), _winners(means)
    wide = wins.assign(cell=wins["best"].astype(str) + " / " + wins["within one point"].astype(str))
    table = wide.pivot(index="noise", columns="loss", values="cell").loc[
        list(dict.fromkeys(wins["noise"])), list(dict.fromkeys(wins["loss"]))
    ]
    counts = wins.groupby("noise", sort=False)["of"].max()
    lines = [[f"{noise} ({counts[noise]})", *row] for noise, row in zip(table.index, table.to_numpy().tolist(), strict=True)]
    parts = [
        "# The map of losses",
        _opening(sets, protocol),
        "![Mean difference to cross-entropy in points, by part of the map](figures/map.png)",
        (
            "Mean difference to `ce` in points; bold where its 95 % interval over data sets leaves out 0.\n"
            "Parts with fewer than four sets are left out."
        ),
        "## Who wins\nOn how many sets each loss was the best / within one point of the best:",
        markdown_table(["noise", *table.columns], lines),
        "## Furthest from cross-entropy",
        markdown_table(["data", "size", "noise", "loss", "points"], _surprises(means)),
        *_uneven_part(uneven),
        "## Advice from it",
        _advice_text(measured),
    ]
    return "\n\n".join(parts) + "\n"


def _uneven_part(uneven: pd.DataFrame | None) -> list[str]:
    if uneven is None or uneven.empty:
        return []
    sets = uneven.drop_duplicates("data")["imbalance"]
    ratios = f"1 to {1 / sets.max():.0f} and 1 to {1 / sets.min():.0f}"
    return [
        "## Uneven classes",
        (
            f"Mean difference to `ce` in points of balanced accuracy, on {len(sets)} data sets whose rarest and most frequent "
            f"class are between {ratios},\nwith 95 % intervals over four sets or more (`python -m evidence.rare_classes`, "
            "[rare classes](rare-classes.md#which-of-them-is-ahead) tells how). What did not train at all counts as it is."
        ),
        uneven_table(uneven),
    ]


def _opening(sets: pd.DataFrame, protocol: str) -> str:
    kinds = ", ".join(f"{len(part)} {kind}s" for kind, part in sets.groupby("kind", sort=False))
    rows, classes = (f"{sets[name].min()} to {sets[name].max()}" for name in ("rows", "classes"))
    return (
        f"Which loss wins where, on {len(sets)} data sets ({kinds}): {rows} training rows, {classes} classes.\n"
        f"Written by `python -m evidence.map.page` from `evidence/results`. How they were studied: {protocol}."
    )


def _advice_text(measured: Mapping[str, object]) -> str:
    if not measured:
        return "How good advice from the map is has not been measured yet: `python -m evidence.map.leave_out`."
    rows = [list(map(str, row.values())) for row in measured["table"]]  # type: ignore[attr-defined]
    header = list(measured["table"][0])  # type: ignore[index]
    return (
        f"Every one of {measured['sets']} data sets left out in turn (`python -m evidence.map.leave_out`), with 95 % binomial\n"
        "intervals. Noise levels of one set are not independent, so that the intervals of `all` are too narrow.\n\n"
        + markdown_table(header, rows)
        + (f"\n\n{shortlist_text(measured['shortlists'])}" if "shortlists" in measured else "")  # type: ignore[arg-type]
        + _advice_where_uneven(measured)
    )


def _advice_where_uneven(measured: Mapping[str, object]) -> str:
    if not measured.get("uneven"):
        return ""
    kept: list[dict[str, str]] = measured["uneven"]  # type: ignore[assignment]
    title = f"\n\nThe same on the {measured['uneven_sets']} data sets of uneven classes, by balanced accuracy:\n\n"
    return title + markdown_table(list(kept[0]), [list(row.values()) for row in kept])


def main() -> None:
    """Write page and picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results", help="of the exported tables")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the page goes (default: %(default)s)")
    options = parser.parse_args()
    means, protocol = map_means(options.results, by_kind_of_noise=True)
    means = differences(means)
    file = options.results / "map" / "leave_out.json"
    measured = json.loads(file.read_text()) if file.is_file() else {}
    noises = sorted(means["noise"].unique(), key=lambda noise: (wrong_share(noise), noise))
    losses = [loss for loss in dict.fromkeys(means["loss"]) if loss != "ce"]
    (options.docs / "figures").mkdir(parents=True, exist_ok=True)
    picture(means, losses, noises).savefig(options.docs / "figures" / "map.png", dpi=110)
    text = page(means, protocol, measured, uneven_means(options.results))
    (options.docs / "map.md").write_text(text, encoding="utf-8")
    print(options.docs / "map.md")


if __name__ == "__main__":
    main()
