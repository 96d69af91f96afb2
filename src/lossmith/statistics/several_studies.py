"""Several studies of the same losses as one table, and what their ranking says."""

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from lossmith.statistics.ranking import Ranking, rank_losses
from lossmith.statistics.summary import block_means, is_higher_better, noise_as_is
from lossmith.statistics.untrained import untrained_losses
from lossmith.statistics.wording import counted, is_share, spoken

__all__ = ["RankedStudy", "at_noise", "joined_results", "rank", "ranking_text"]


class RankedStudy(Protocol):
    """A study, as far as rankings need one."""

    @property
    def folder(self) -> Path:
        """Where the study is kept."""
        ...

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What was run, in plain numbers and text."""
        ...

    @property
    def results(self) -> pd.DataFrame:
        """One row per run that counts."""
        ...


def joined_results(studies: Sequence[RankedStudy]) -> pd.DataFrame:
    """Return the results of all studies with a column ``data``: the name of the data, or the folder where names repeat.

    Args:
        studies: Studies of the same losses.

    Returns:
        One frame.

    Raises:
        ValueError: If a study is named twice, or has no results yet.
    """
    names = [str(study.provenance["data"]["name"]) for study in studies]
    if len(set(names)) < len(names):
        names = [str(study.folder) for study in studies]
    if len(set(names)) < len(names):
        raise ValueError("rank: a study is named more than once.")
    frames = [study.results.assign(data=name) for study, name in zip(studies, names, strict=True)]
    for study, frame in zip(studies, frames, strict=True):
        if frame.empty:
            raise ValueError(f"rank: {study.folder} has no results yet.")
    return pd.concat(frames, ignore_index=True)


def at_noise(results: pd.DataFrame, noise: str | None = None) -> pd.DataFrame:
    """Return one noise level of every data set, since levels of one data set are no further data sets.

    Args:
        results: A row for each run, with a column ``data``.
        noise: The printed form of a noise; by default the labels as they are, or where a study lacks them its first level.

    Returns:
        Some of the rows.

    Raises:
        ValueError: If a data set was not studied with this noise.
    """
    if "data" not in results:
        raise ValueError(f"rank: results need a column 'data', got {', '.join(map(str, results.columns))}.")
    parts = []
    for data, part in results.groupby("data", sort=False):
        level = noise_as_is(part) if noise is None else noise
        if level not in set(part["noise"]):
            raise ValueError(f"rank: noise of {data} must be one of {', '.join(part['noise'].unique())}, got {level}.")
        parts.append(part[part["noise"] == level])
    return pd.concat(parts, ignore_index=True)


def rank(
    results: pd.DataFrame, metric: str = "accuracy", baseline: str | None = "ce", *, noise: str | None = None, level: float = 0.05
) -> Ranking:
    """Rank losses over data sets, by one value a data set: the mean over its replicates; see ``rank_losses``.

    Args:
        results: A row for each run, with a column ``data``.
        metric: The column to rank by.
        baseline: The loss that mean differences refer to; None for the mean of all.
        noise: The noise level that is ranked; by default the labels as they are.
        level: The p-value below which two losses are told apart.

    Returns:
        The ranking.

    Raises:
        KeyError: If the baseline has no results.
        ValueError: If a column is missing, a run is there twice, or a data set lacks the noise.
    """
    chosen = at_noise(results, noise)
    failed = untrained_losses(chosen, by=("data",)).assign(mark=True).pivot(index="data", columns="loss", values="mark")
    blocks = block_means(chosen, metric)
    return rank_losses(blocks, baseline, higher_is_better=is_higher_better(metric), level=level, untrained=failed.notna())


def ranking_text(ranking: Ranking, baseline: str, metric: str = "accuracy") -> str:
    """Return a ranking for the terminal: table, Friedman's test, and what cannot be told apart.

    Args:
        ranking: What :func:`rank` returned.
        baseline: The loss that differences refer to.
        metric: What was ranked by.

    Returns:
        Several lines of text.
    """
    test = ranking.friedman
    lines = [f"Losses by {spoken(metric)} over {counted(test.blocks, 'data set')}:", _table(ranking, baseline, metric)]
    if ranking.summary["untrained"].any():
        lines.append("Untrained: data sets on which a loss looks untrained in at least half of the replicates.")
    lines += _verdict(ranking)
    if ranking.left_out:
        lines.append(f"Left out, since not every loss has results: {', '.join(map(str, ranking.left_out))}.")
    return "\n".join(lines)


def _table(ranking: Ranking, baseline: str, metric: str) -> str:
    """Return the table; with columns for untrained cases only where there are any."""
    scale, unit = (100, ", points") if is_share(metric) else (1, "")
    names = {"wins": "wins", "mean_difference": f"difference to {baseline}{unit}", "mean_rank": "mean rank"}
    if ranking.summary["untrained"].any():
        names |= {"untrained": "untrained", "trained_difference": "difference where trained"}
    table = ranking.summary.assign(**{name: scale * ranking.summary[name] for name in ("mean_difference", "trained_difference")})
    return str(table[list(names)].rename(columns=names).rename_axis(None).round(3).to_string(na_rep="none"))


def _verdict(ranking: Ranking) -> list[str]:
    test = ranking.friedman
    if isnan(test.p):
        return ["From fewer than two data sets nothing can be said."]
    differ = "the losses differ" if test.p < 0.05 else "no evidence of a difference"
    lines = [f"Friedman's test: p = {test.p:.2g}, {differ}."]
    if test.p < 0.05:
        groups = "; ".join(", ".join(group) for group in ranking.groups)
        lines.append(f"Not told apart (Conover, Benjamini-Hochberg): {groups or 'none'}.")
    return lines
