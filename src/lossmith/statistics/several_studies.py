"""Several studies of the same losses as one table, and what their ranking says."""

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from lossmith.statistics.ranking import Ranking
from lossmith.statistics.wording import counted, is_share, spoken

__all__ = ["RankedStudy", "joined_results", "ranking_text"]


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


def ranking_text(ranking: Ranking, baseline: str, metric: str = "accuracy") -> str:
    """Return a ranking for the terminal: table, Friedman's test, and what cannot be told apart.

    Args:
        ranking: What :func:`lossmith.statistics.rank` returned.
        baseline: The loss that differences refer to.
        metric: What was ranked by.

    Returns:
        Several lines of text.
    """
    table = ranking.summary.copy()
    table["mean_difference"] *= 100 if is_share(metric) else 1
    unit = ", points" if is_share(metric) else ""
    table.columns = ["wins", f"difference to {baseline}{unit}", "mean rank"]
    test = ranking.friedman
    lines = [
        f"Losses by {spoken(metric)} over {counted(test.blocks, 'block')} of data and noise:",
        table.rename_axis(None).round(3).to_string(),
    ]
    lines += _verdict(ranking)
    if ranking.left_out:
        lines.append(f"Left out, since not every loss has results: {', '.join(map(_block, ranking.left_out))}.")
    return "\n".join(lines)


def _block(names: object) -> str:
    """Return which data and noise a block is of."""
    return " with ".join(map(str, names)) if isinstance(names, tuple) else str(names)


def _verdict(ranking: Ranking) -> list[str]:
    test = ranking.friedman
    if isnan(test.p):
        return ["From fewer than two blocks nothing can be said."]
    differ = "the losses differ" if test.p < 0.05 else "no evidence of a difference"
    lines = [f"Friedman's test: p = {test.p:.2g}, {differ}."]
    if test.p < 0.05:
        groups = "; ".join(", ".join(group) for group in ranking.groups)
        lines.append(f"Not told apart (Conover, Benjamini-Hochberg): {groups or 'none'}.")
    return lines
