"""Losses over several data sets: wins, mean ranks, Friedman's test, Conover's comparisons, profiles."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from lossmith.statistics.differences.paired_tests import benjamini_hochberg

__all__ = ["Friedman", "Ranking", "conover", "friedman", "groups_not_told_apart", "performance_profile", "rank_losses"]


@dataclass(frozen=True)
class Friedman:
    """Friedman's test: do the losses differ at all?"""

    statistic: float
    p: float
    """NaN with fewer than two blocks or losses."""
    blocks: int
    """Blocks, that is data sets, that have every loss."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """How losses compare over blocks, that is data sets."""

    summary: pd.DataFrame
    """One row per loss, best mean rank first: ``wins`` (blocks in which no loss was better), ``mean_difference`` to the baseline,
    ``mean_rank`` (1 is best; ties share), ``untrained`` (blocks in which the loss counts as untrained), and
    ``trained_difference``, the mean over blocks in which neither the loss nor the baseline does."""
    friedman: Friedman
    p: pd.DataFrame
    """Losses x losses: Conover's p-values, corrected by Benjamini and Hochberg."""
    groups: tuple[tuple[str, ...], ...]
    """What the bars of a critical-difference diagram join: neighbours in rank that cannot be told apart."""
    left_out: tuple[object, ...]
    """Blocks without every loss, which ranks cannot use."""


def rank_losses(
    blocks: pd.DataFrame,
    baseline: str | None = None,
    *,
    higher_is_better: bool = True,
    level: float = 0.05,
    untrained: pd.DataFrame | None = None,
) -> Ranking:
    """Rank losses by a table of blocks x losses, by the protocol of Battash, Hazan and Wolf.

    Args:
        blocks: A row for each block, a column for each loss.
        baseline: The loss that mean differences refer to; by default the mean of all.
        higher_is_better: Whether the largest value wins.
        level: The p-value below which two losses are told apart.
        untrained: Of the same form as the blocks, True where a loss counts as untrained; by default nowhere.

    Returns:
        Summary, Friedman's test, Conover's p-values, and groups.

    Raises:
        KeyError: If the baseline is no column.

    >>> ranking = rank_losses(pd.DataFrame({"ce": [0.7, 0.6, 0.9, 0.8], "gce": [0.8, 0.7, 0.9, 0.9]}), "ce")
    >>> print(ranking.summary)
         wins  mean_difference  mean_rank  untrained  trained_difference
    gce     4            0.075      1.125          0               0.075
    ce      1            0.000      1.875          0               0.000
    """
    complete = blocks.dropna()
    ranks = _ranks(complete, higher_is_better)
    best = complete.eq(complete.max(axis=1) if higher_is_better else complete.min(axis=1), axis=0)
    reference = complete.mean(axis=1) if baseline is None else complete[baseline]
    differences = complete.sub(reference, axis=0)
    failed = _like(complete, untrained)
    columns = {
        "wins": best.sum(),
        "mean_difference": differences.mean(),
        "mean_rank": ranks.mean(),
        "untrained": failed.sum(),
        "trained_difference": differences.mask(failed if baseline is None else failed | failed[[baseline]].to_numpy()).mean(),
    }
    summary = pd.DataFrame(columns).sort_values("mean_rank", kind="stable")
    p = conover(complete, higher_is_better=higher_is_better)
    groups = groups_not_told_apart(list(summary.index), p, level)
    return Ranking(summary, friedman(complete), p, groups, tuple(blocks.index.difference(complete.index, sort=False)))


def friedman(blocks: pd.DataFrame) -> Friedman:
    """Return Friedman's test on the complete blocks of a table of blocks x losses; where all is tied, ``p`` is 1.

    Args:
        blocks: A row for each block, a column for each loss.

    Returns:
        The statistic, its p-value, and how many blocks count.
    """
    ranks = _ranks(blocks.dropna()).to_numpy()
    n, k = ranks.shape
    if n < 2 or k < 2:
        return Friedman(float("nan"), float("nan"), n)
    spread = _rank_variance(ranks)
    between = float(((ranks.sum(0) - n * (k + 1) / 2) ** 2).sum())
    statistic = between / spread if spread > 0 else 0.0
    return Friedman(statistic, float(stats.chi2.sf(statistic, k - 1)), n)


def conover(blocks: pd.DataFrame, *, higher_is_better: bool = True) -> pd.DataFrame:
    """Return Conover's p-values for all pairs of losses, corrected by Benjamini and Hochberg; NaN with fewer than two blocks.

    Where all blocks have the same ranks, the statistic has no spread to compare with. What can be said of two losses is then
    that one was ahead in all ``n`` blocks, which chance gives with probability ``2^(1-n)``.

    Args:
        blocks: A row for each block, a column for each loss.
        higher_is_better: Whether the largest value wins.

    Returns:
        The p-values, ``(losses, losses)``, with ones on the diagonal.
    """
    ranks = _ranks(blocks.dropna(), higher_is_better).to_numpy()
    first, second = np.triu_indices(ranks.shape[1], 1)
    corrected = np.ones((ranks.shape[1],) * 2)
    corrected[first, second] = corrected[second, first] = benjamini_hochberg(_conover(ranks, first, second))
    return pd.DataFrame(corrected, index=blocks.columns, columns=blocks.columns)


def groups_not_told_apart(order: list[str], p: pd.DataFrame, level: float = 0.05) -> tuple[tuple[str, ...], ...]:
    """Return the longest runs of neighbours in ``order`` in which no pair differs at the level; single losses are not listed.

    Args:
        order: The losses by mean rank.
        p: The p-values, ``(losses, losses)``.
        level: The p-value below which two losses differ.

    Returns:
        The groups, each in the given order.
    """
    table = p.loc[order, order].to_numpy()
    groups: list[tuple[int, int]] = []
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not (table[start:end, end] < level).any():
            end += 1
        if end - start > 1 and (not groups or end > groups[-1][1]):
            groups.append((start, end))
    return tuple(tuple(order[start:end]) for start, end in groups)


def performance_profile(
    blocks: pd.DataFrame, thresholds: np.ndarray | None = None, *, higher_is_better: bool = True
) -> pd.DataFrame:
    """Return the profile of Dolan and More: for each threshold the share of blocks in which a loss reaches it times the best.

    A missing result reaches no threshold. The default thresholds are those at which a share changes.

    Args:
        blocks: A row for each block, a column for each loss.
        thresholds: Shares of the best value, up to 1.
        higher_is_better: Whether the largest value is the best.

    Returns:
        A row for each threshold, a column for each loss.

    >>> performance_profile(pd.DataFrame({"ce": [0.5, 0.9], "gce": [0.8, 0.9]}), np.array([0.6, 0.7, 1.0]))
          ce  gce
    0.6  1.0  1.0
    0.7  0.5  1.0
    1.0  0.5  1.0
    """
    blocks = blocks.dropna(how="all")
    best = blocks.max(axis=1) if higher_is_better else blocks.min(axis=1)
    ratios = blocks.div(best, axis=0) if higher_is_better else (1 / blocks).mul(best, axis=0)
    ratios = ratios.mask(blocks.eq(best, axis=0), 1.0).fillna(0.0)  # the best is 1 times the best, even if it is zero
    if thresholds is None:
        thresholds = np.unique(ratios.to_numpy())
    return pd.DataFrame({loss: [(ratios[loss] >= at).mean() for at in thresholds] for loss in ratios}, index=thresholds)


def _like(blocks: pd.DataFrame, marks: pd.DataFrame | None) -> pd.DataFrame:
    """Return marks with the rows and columns of the blocks, False where there are none."""
    if marks is None:
        return pd.DataFrame(False, blocks.index, blocks.columns)
    return marks.reindex(index=blocks.index, columns=blocks.columns, fill_value=False).astype(bool)


def _ranks(blocks: pd.DataFrame, higher_is_better: bool = True) -> pd.DataFrame:
    return blocks.rank(axis=1, ascending=not higher_is_better)


def _rank_variance(ranks: np.ndarray) -> float:
    """Return the variance of ranks within blocks, summed over blocks; ties make it smaller than ``n k (k + 1) / 12``."""
    k = ranks.shape[1]
    return float(((ranks - (k + 1) / 2) ** 2).sum() / (k - 1))


def _conover(ranks: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return uncorrected p-values of the given pairs of columns."""
    n, k = ranks.shape
    sums = ranks.sum(0)
    apart = np.abs(sums[first] - sums[second])
    if n < 2:
        return np.full(len(first), np.nan)
    freedom = (n - 1) * (k - 1)
    # Ranks are multiples of 1/2, so that these sums are exact and a spread of zero is seen as such.
    left = float(n * (ranks**2).sum() - (sums**2).sum())
    if left == 0:
        return np.where(apart > 0, 2.0 ** (1 - n), 1.0)
    return np.asarray(2 * stats.t.sf(apart / np.sqrt(2 * left / freedom), freedom))
