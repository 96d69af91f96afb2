"""What can be said about losses from the results of a study: means, differences, and which of them chance explains.

Every function takes a frame with the columns ``loss``, ``noise``, ``seed`` and a metric, one row per run, like ``Study.results``.
Runs of different losses are paired by noise and seed, which numbers the replicates: those of one replicate had the same split,
the same wrong labels and the same trials.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lossmith.statistics.differences.luck import NO_LUCK, LuckOfRows, RowLuck
from lossmith.statistics.differences.overlapping import INDEPENDENT, Overlap
from lossmith.statistics.differences.paired_tests import Difference, by_holm, holm, paired_difference
from lossmith.statistics.differences.pooled_spread import Spread, pooled_spreads

__all__ = [
    "COMPARED",
    "LOWER_IS_BETTER",
    "best_loss",
    "block_means",
    "compare_to",
    "is_higher_better",
    "noise_as_is",
    "summarise",
    "usable_results",
]

LOWER_IS_BETTER = frozenset({"nll", "ece", "brier", "memorised", "seconds"})
"""Metrics for which smaller is better; for all others, larger is."""

# False-label accuracy is not among them: it is not a number in runs without a wrong label, diverged or not.
SHARES_RIGHT = frozenset({"accuracy", "top5", "balanced_accuracy", "macro_f1", "validation_accuracy"})

COMPARED = ("loss", "noise", "pairs", "difference", "low", "high", "spread", "error", "deviation", "p", "p_holm")
"""The columns of :func:`compare_to`."""

_KEYS = ("loss", "noise", "seed")


def is_higher_better(metric: str) -> bool:
    """Return whether larger values of a metric are better.

    Args:
        metric: The name of a metric.

    Returns:
        False for errors and costs, True for all others.
    """
    return metric not in LOWER_IS_BETTER


def noise_as_is(results: pd.DataFrame) -> str:
    """Return the noise level of the labels as they are.

    Args:
        results: A row for each run, at least one.

    Returns:
        ``none``, or the first level of results that do not have it.
    """
    levels = list(map(str, results["noise"].unique()))
    return "none" if "none" in levels else levels[0]


def usable_results(results: pd.DataFrame, metric: str = "accuracy", keys: Sequence[str] = _KEYS) -> pd.DataFrame:
    """Return one row per run: the columns that identify it, and the ``value`` of a metric, as every other function here reads it.

    A run that diverged counts with the predictions it has. Where it has none, its metric is NaN: its share of right
    predictions is then taken as 0, while for other metrics the run is left out.

    Args:
        results: A row for each run.
        metric: The column that is read.
        keys: The columns that tell runs apart.

    Returns:
        The keys and ``value``, without rows that have none.

    Raises:
        ValueError: If a column is missing, or two rows have the same keys.
    """
    for column in (*keys, metric):
        if column not in results:
            raise ValueError(f"statistics: results need a column {column!r}, got {', '.join(map(str, results.columns))}.")
    frame = results[[*keys]].copy()
    frame["value"] = results[metric].astype(float).replace([np.inf, -np.inf], np.nan)
    if "diverged" in results and metric in SHARES_RIGHT:
        frame.loc[results["diverged"].astype(bool) & frame["value"].isna(), "value"] = 0.0
    twice = frame[frame.duplicated(list(keys))]
    if len(twice):
        run = " and ".join(f"{key} {twice[key].iloc[0]}" for key in keys)
        raise ValueError(f"statistics: results hold {run} more than once.")
    return frame.dropna(subset="value")


def summarise(
    results: pd.DataFrame,
    metric: str = "accuracy",
    level: float = 0.05,
    *,
    overlap: Overlap = INDEPENDENT,
    luck_of_rows: LuckOfRows | None = None,
) -> pd.DataFrame:
    """Return mean and standard error of every loss at every noise level, and which losses may be the best.

    Columns: ``loss``, ``noise``, ``runs``, ``mean``, ``standard_error`` (NaN for one run), ``best``, and ``bold``: not
    significantly worse than the best by a paired t-test at the level, not corrected for the number of losses, as Kornblith et al.
    print their tables. With one replicate nothing is bold, because it says nothing about the spread.

    Args:
        results: A row for each run.
        metric: The column that is summarised.
        level: The p-value below which a loss is worse than the best.
        overlap: What replicates share.
        luck_of_rows: What the luck of test rows has to do with each difference, where it is known.

    Returns:
        A row for each noise level and loss.

    Raises:
        ValueError: If a column is missing, or a run is there twice.

    >>> results = pd.DataFrame(
    ...     {"loss": ["ce", "ce", "gce", "gce"], "noise": "none", "seed": [0, 1, 0, 1], "accuracy": [0.7, 0.71, 0.80, 0.811]}
    ... )
    >>> print(summarise(results).round(4).to_string(index=False))
    loss noise  runs   mean  standard_error  best  bold
      ce  none     2 0.7050          0.0050 False False
     gce  none     2 0.8055          0.0055  True  True
    """
    frame = usable_results(results, metric)
    grouped = frame.groupby(["noise", "loss"], sort=False)["value"]
    summary = grouped.agg(runs="size", mean="mean", standard_error="sem").reset_index()
    pairing = _Pairing(overlap, luck_of_rows)
    marks = [_marks(part, metric, level, pairing) for _, part in frame.groupby("noise", sort=False)]
    summary = summary.merge(pd.concat(marks), on=["noise", "loss"]) if marks else summary.assign(best=False, bold=False)
    return summary[["loss", "noise", "runs", "mean", "standard_error", "best", "bold"]]


def best_loss(results: pd.DataFrame, metric: str = "accuracy") -> str | None:
    """Return the loss with the best mean among those with the most runs; the first of equals; None without results.

    Args:
        results: A row for each run.
        metric: The column to judge by.

    Returns:
        The name of the loss.

    Raises:
        ValueError: If a column is missing, or a run is there twice.
    """
    grouped = usable_results(results, metric).groupby("loss", sort=False)["value"].agg(["size", "mean"])
    if grouped.empty:
        return None
    means = grouped.loc[grouped["size"] == grouped["size"].max(), "mean"]
    return str(means.idxmax() if is_higher_better(metric) else means.idxmin())


def compare_to(
    results: pd.DataFrame,
    reference: str,
    metric: str = "accuracy",
    *,
    confidence: float = 0.95,
    overlap: Overlap = INDEPENDENT,
    luck_of_rows: LuckOfRows | None = None,
) -> pd.DataFrame:
    """Compare every other loss with a reference at every noise level.

    Columns: ``loss``, ``noise``, ``pairs``, ``difference`` (value minus reference), ``low`` and ``high``, ``spread``, ``error``
    (the standard error), ``deviation`` (wider, where few replicates tell the error), ``p`` (two-sided) and ``p_holm``, corrected
    for the number of losses compared at that noise level. The interval is corrected, too: it leaves out 0 where and only where
    ``p_holm`` is below ``1 - confidence``. NaN where fewer than two replicates have both.

    Args:
        results: A row for each run.
        reference: The loss that all others are compared with.
        metric: The column to compare by.
        confidence: That of the intervals, in (0, 1).
        overlap: What replicates share.
        luck_of_rows: What the luck of test rows has to do with each difference, where it is known.

    Returns:
        A row for each noise level and other loss.

    Raises:
        ValueError: If the reference has no results, a column is missing, or a run is there twice.

    >>> results = pd.DataFrame({"loss": ["ce"] * 3 + ["gce"] * 3, "noise": "none", "seed": [0, 1, 2] * 2})
    >>> results["accuracy"] = [0.70, 0.71, 0.72, 0.80, 0.82, 0.81]
    >>> compare_to(results, "ce", overlap=Overlap(0.25))[["loss", "low", "high", "p_holm"]].round(3)
      loss    low   high  p_holm
    0  gce  0.067  0.133   0.006
    """
    frame = usable_results(results, metric)
    if reference not in set(frame["loss"]):
        raise ValueError(f"compare_to: reference must be one of {', '.join(frame['loss'].unique())}, got {reference}.")
    pairing = _Pairing(overlap, luck_of_rows)
    spreads = pairing.spreads(frame, reference)
    parts = [_compared(part, reference, 1 - confidence, pairing, spreads) for _, part in frame.groupby("noise", sort=False)]
    return pd.concat(parts, ignore_index=True)


def block_means(results: pd.DataFrame, metric: str = "accuracy", by: Sequence[str] = ("data",)) -> pd.DataFrame:
    """Return a table of blocks x losses of means over replicates, NaN where there is none.

    Args:
        results: A row for each run.
        metric: The column that is averaged.
        by: The columns that make up a block.

    Returns:
        A row for each block, a column for each loss.

    Raises:
        ValueError: If a column is missing, or a run is there twice.
    """
    frame = usable_results(results, metric, list(dict.fromkeys((*by, *_KEYS))))
    table = frame.pivot_table(index=list(by), columns="loss", values="value", sort=False)
    return table[frame["loss"].unique()]


def _marks(frame: pd.DataFrame, metric: str, level: float, pairing: "_Pairing") -> pd.DataFrame:
    """Return the columns noise, loss, best and bold of one noise level."""
    losses, noise = list(frame["loss"].unique()), str(frame["noise"].iloc[0])
    best = str(best_loss(frame.rename(columns={"value": metric}), metric))
    wide = frame.pivot(index="seed", columns="loss", values="value")
    tests = {loss: pairing.difference(wide, loss, best, noise) for loss in losses}
    bold = [_may_be_best(tests[loss], loss == best, int(wide[best].count()), level) for loss in losses]
    return pd.DataFrame({"noise": noise, "loss": losses, "best": [loss == best for loss in losses], "bold": bold})


def _may_be_best(difference: Difference, is_best: bool, runs: int, level: float) -> bool:
    return runs > 1 and (is_best or difference.p > level)


def _compared(
    frame: pd.DataFrame, reference: str, level: float, pairing: "_Pairing", spreads: Mapping[tuple[str, str], Spread]
) -> pd.DataFrame:
    """Compare the losses of one noise level."""
    wide, noise = frame.pivot(index="seed", columns="loss", values="value"), str(frame["noise"].iloc[0])
    others = [loss for loss in frame["loss"].unique() if loss != reference]
    found = [pairing.difference(wide, loss, reference, noise, spreads.get((noise, loss))) for loss in others]
    differences = by_holm(found, level)
    compared = pd.DataFrame(
        [(one.pairs, one.mean, one.low, one.high, one.spread, one.error, one.deviation, one.p) for one in differences],
        columns=list(COMPARED[2:-1]),
        dtype=float,
    ).astype({"pairs": int})
    compared.insert(0, "loss", others)
    compared.insert(1, "noise", noise)
    return compared.assign(p_holm=holm(compared["p"].to_numpy(float)))


@dataclass(frozen=True)
class _Pairing:
    """How two losses of the same replicates are compared."""

    overlap: Overlap
    luck_of_rows: LuckOfRows | None

    def difference(self, wide: pd.DataFrame, loss: str, reference: str, noise: str, spread: Spread | None = None) -> Difference:
        """Compare two columns of a table of replicates x losses; without the reference there are no pairs."""
        if reference not in wide:
            return paired_difference(np.empty(0), np.empty(0))
        pair = wide[loss].to_numpy(), wide[reference].to_numpy()
        return paired_difference(*pair, overlap_ratio=self.overlap.ratio, rows=self.luck(loss, reference, noise), spread=spread)

    def luck(self, loss: str, reference: str, noise: str) -> RowLuck:
        """Return the luck of rows in a difference; none where it is not known."""
        return self.luck_of_rows(loss, reference, noise) if self.luck_of_rows and loss != reference else NO_LUCK

    def spreads(self, frame: pd.DataFrame, reference: str) -> dict[tuple[str, str], Spread]:
        """Return the spread of every difference to the reference, by noise and loss, where the luck of rows is known."""
        if self.luck_of_rows is None or set(frame["loss"]) == {reference}:
            return {}
        wide = frame.pivot(index=["noise", "seed"], columns="loss", values="value")
        differences = wide.drop(columns=reference).sub(wide[reference], axis=0).groupby("noise", sort=False)
        found = differences.agg(["var", "count"]).stack("loss", future_stack=True).dropna()
        keys = [(str(noise), str(loss)) for noise, loss in found.index]
        own = [Spread(float(row["var"]), float(row["count"] - 1)) for _, row in found.iterrows()]
        scales = [self.luck(loss, reference, noise).replicate for noise, loss in keys]
        pooled = pooled_spreads(own, scales)
        return {key: spread for key, spread, scale in zip(keys, pooled, scales, strict=True) if scale > 0}
