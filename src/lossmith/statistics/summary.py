"""What can be said about losses from the results of a study: means, differences, and which of them chance explains.

Every function takes a frame with the columns ``loss``, ``noise``, ``seed`` and a metric, one row per run, like ``Study.results``.
Runs of different losses are paired by noise and seed: they saw the same data and the same wrong labels.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lossmith.statistics.paired_tests import Difference, holm, paired_difference
from lossmith.statistics.ranking import Ranking, rank_losses

__all__ = [
    "ALL_NOISE",
    "LOWER_IS_BETTER",
    "best_loss",
    "block_means",
    "compare_to",
    "is_higher_better",
    "overall_results",
    "rank",
    "summarise",
    "usable_results",
]

LOWER_IS_BETTER = frozenset({"nll", "ece", "brier", "memorised", "seconds"})
"""Metrics for which smaller is better; for all others, larger is."""

ALL_NOISE = "all"
"""What stands in the column ``noise`` for the mean over all noise levels."""

# False-label accuracy is not among them: it is not a number in runs without a wrong label, diverged or not.
_SHARES_RIGHT = frozenset({"accuracy", "top5", "balanced_accuracy", "validation_accuracy"})

_KEYS = ("loss", "noise", "seed")


def is_higher_better(metric: str) -> bool:
    """Return whether larger values of a metric are better.

    Args:
        metric: The name of a metric.

    Returns:
        False for errors and costs, True for all others.
    """
    return metric not in LOWER_IS_BETTER


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
    if "diverged" in results and metric in _SHARES_RIGHT:
        frame.loc[results["diverged"].astype(bool) & frame["value"].isna(), "value"] = 0.0
    twice = frame[frame.duplicated(list(keys))]
    if len(twice):
        run = " and ".join(f"{key} {twice[key].iloc[0]}" for key in keys)
        raise ValueError(f"statistics: results hold {run} more than once.")
    return frame.dropna(subset="value")


def summarise(results: pd.DataFrame, metric: str = "accuracy", level: float = 0.05) -> pd.DataFrame:
    """Return mean and standard error of every loss at every noise level, and which losses may be the best.

    Columns: ``loss``, ``noise``, ``runs``, ``mean``, ``standard_error`` (NaN for one run), ``best``, and ``bold``: not
    significantly worse than the best by a paired t-test at the level, not corrected, as Kornblith et al. print their tables.
    With one seed nothing is bold, because one seed says nothing about the spread.

    Args:
        results: A row for each run.
        metric: The column that is summarised.
        level: The p-value below which a loss is worse than the best.

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
    marks = [_marks(part, metric, level) for _, part in frame.groupby("noise", sort=False)]
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
    results: pd.DataFrame, reference: str, metric: str = "accuracy", *, confidence: float = 0.95, pooled: bool = False
) -> pd.DataFrame:
    """Compare every other loss with a reference at every noise level, or with all levels pooled.

    Columns: ``loss``, ``noise``, ``pairs``, ``difference`` (value minus reference), ``low`` and ``high`` (paired t interval),
    ``spread``, ``p`` (two-sided) and ``p_holm``, corrected for the number of losses compared at that noise level. NaN where
    fewer than two seeds have both.

    Args:
        results: A row for each run.
        reference: The loss that all others are compared with.
        metric: The column to compare by.
        confidence: That of the intervals, in (0, 1).
        pooled: Whether noise levels are averaged within seeds first.

    Returns:
        A row for each noise level and other loss.

    Raises:
        ValueError: If the reference has no results, a column is missing, or a run is there twice.
    """
    frame = usable_results(results, metric)
    if reference not in set(frame["loss"]):
        raise ValueError(f"compare_to: reference must be one of {', '.join(frame['loss'].unique())}, got {reference}.")
    frame = overall_results(frame) if pooled else frame
    parts = [_compared(part, reference, confidence) for _, part in frame.groupby("noise", sort=False)]
    return pd.concat(parts or [_compared(frame, reference, confidence)], ignore_index=True)


def overall_results(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over all noise levels, for each loss and each seed that has them all.

    Runs of one seed start from the same weights at every noise level. They are one observation, not several.

    Args:
        frame: What :func:`usable_results` returns.

    Returns:
        The same columns, with ``all`` as the noise.
    """
    levels = frame["noise"].nunique()
    grouped = frame.groupby(["loss", "seed"], sort=False)["value"].agg(["size", "mean"]).reset_index()
    whole = grouped[grouped["size"] == levels].rename(columns={"mean": "value"})
    return whole.assign(noise=ALL_NOISE)[["loss", "noise", "seed", "value"]]


def block_means(results: pd.DataFrame, metric: str = "accuracy", by: Sequence[str] = ("noise",)) -> pd.DataFrame:
    """Return a table of blocks x losses of means over seeds, NaN where there is none; ``by`` may name a column of data sets.

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


def rank(
    results: pd.DataFrame,
    metric: str = "accuracy",
    baseline: str | None = "ce",
    *,
    by: Sequence[str] = ("noise",),
    level: float = 0.05,
) -> Ranking:
    """Rank losses over noise levels, or over what other columns ``by`` names; see ``rank_losses``.

    Args:
        results: A row for each run.
        metric: The column to rank by.
        baseline: The loss that mean differences refer to; None for the mean of all.
        by: The columns that make up a block.
        level: The p-value below which two losses are told apart.

    Returns:
        The ranking.

    Raises:
        KeyError: If the baseline has no results.
        ValueError: If a column is missing, or a run is there twice.
    """
    return rank_losses(block_means(results, metric, by), baseline, higher_is_better=is_higher_better(metric), level=level)


def _marks(frame: pd.DataFrame, metric: str, level: float) -> pd.DataFrame:
    """Return the columns noise, loss, best and bold of one noise level."""
    losses, noise = list(frame["loss"].unique()), frame["noise"].iloc[0]
    best = best_loss(frame.rename(columns={"value": metric}), metric)
    wide = frame.pivot(index="seed", columns="loss", values="value")
    tests = {loss: _difference(wide, loss, str(best)) for loss in losses}
    bold = [_may_be_best(tests[loss], loss == best, int(wide[best].count()), level) for loss in losses]
    return pd.DataFrame({"noise": noise, "loss": losses, "best": [loss == best for loss in losses], "bold": bold})


def _may_be_best(difference: Difference, is_best: bool, runs: int, level: float) -> bool:
    return runs > 1 and (is_best or difference.p > level)


def _compared(frame: pd.DataFrame, reference: str, confidence: float) -> pd.DataFrame:
    wide = frame.pivot(index="seed", columns="loss", values="value")
    others = [loss for loss in frame["loss"].unique() if loss != reference]
    differences = [_difference(wide, loss, reference, confidence) for loss in others]
    compared = pd.DataFrame(
        [(one.pairs, one.mean, one.low, one.high, one.spread, one.p) for one in differences],
        columns=["pairs", "difference", "low", "high", "spread", "p"],
        dtype=float,
    ).astype({"pairs": int})
    compared.insert(0, "loss", others)
    compared.insert(1, "noise", frame["noise"].iloc[0] if len(frame) else ALL_NOISE)
    return compared.assign(p_holm=holm(compared["p"].to_numpy(float)))


def _difference(wide: pd.DataFrame, loss: str, reference: str, confidence: float = 0.95) -> Difference:
    if reference not in wide:
        return paired_difference(np.empty(0), np.empty(0))
    return paired_difference(wide[loss].to_numpy(), wide[reference].to_numpy(), confidence)
