"""What a study would have said from some of its replicates, by the code that says it from all of them."""

from collections.abc import Collection
from dataclasses import replace

import pandas as pd

from lossmith.statistics.differences.luck import LuckByScores
from lossmith.statistics.evidence import LEVEL, Evidence
from lossmith.statistics.verdicts import strength
from lossmith.studies import Study
from lossmith.studies.luck_of_rows import luck_of_rows

__all__ = [
    "CLAIMS",
    "DEPENDS",
    "EACH",
    "EVIDENCE",
    "SILENT",
    "STRONG",
    "UNTRAINED",
    "evidence_of",
    "mean_differences",
    "part_of",
    "parts_of",
    "verdict_of_p",
    "verdicts",
]

CLAIMS = STRONG, EVIDENCE = strength(0.0), strength(LEVEL)
EACH = 5
"""Replicates of a study of which verdicts are asked."""
DEPENDS, SILENT, UNTRAINED = "depends on the setting", "no evidence", "untrained"


def evidence_of(study: Study) -> Evidence:
    """Return what a study decides by."""
    return Evidence(
        study.results,
        study.settings.losses[0],
        study.metric,
        study.trials if study.settings.searched else None,
        overlap=study.overlap,
        luck_of_rows=luck_of_rows(study),
        validation_rows=study.validation_rows,
    )


def part_of(found: Evidence, seeds: Collection[int]) -> Evidence:
    """Return what the study would have had with these replicates alone."""
    trials = None if found.trials is None else found.trials[found.trials["seed"].isin(seeds)]
    luck = found.luck_of_rows
    part = luck.within(seeds) if isinstance(luck, LuckByScores) else luck
    return replace(found, results=found.results[found.results["seed"].isin(seeds)], trials=trials, luck_of_rows=part)


def verdicts(found: Evidence) -> pd.DataFrame:
    """Return the verdict on every loss against the baseline at every noise.

    Args:
        found: What a study decides by, or a part of it.

    Returns:
        ``noise``, ``loss``, ``difference``, ``low``, ``high``, ``p_holm`` and ``verdict``.
    """
    said = [_verdict(found, row) for _, row in found.differences.iterrows()]
    return found.differences[["noise", "loss", "difference", "low", "high", "deviation", "p_holm"]].assign(verdict=said)


def _verdict(found: Evidence, row: pd.Series) -> str:
    if not {row["loss"], found.baseline} <= set(found.sound(row["noise"])):
        return UNTRAINED
    said = verdict_of_p(row["p_holm"])
    return DEPENDS if said in CLAIMS and found.hangs_on(row["loss"], row["noise"]) else said


def verdict_of_p(p: float) -> str:
    """Return the verdict where a corrected p-value is all that counts, as in the first version."""
    return strength(p) if p < LEVEL else SILENT


def parts_of(found: Evidence) -> dict[str, Evidence]:
    """Return what studies of every five replicates would have had, by their first and last: ``0-4``, ``5-9``."""
    seeds = sorted(map(int, found.results["seed"].unique()))
    groups = [seeds[first : first + EACH] for first in range(0, len(seeds) - EACH + 1, EACH)]
    return {f"{group[0]}-{group[-1]}": part_of(found, group) for group in groups}


def mean_differences(found: Evidence, seeds: Collection[int]) -> pd.DataFrame:
    """Return the ``mean`` difference to the baseline over some replicates and its ``error``, by noise and loss."""
    results = found.results[found.results["seed"].isin(seeds)]
    wide = results.pivot(index=["noise", "seed"], columns="loss", values=found.metric)
    differences = wide.sub(wide[found.baseline], axis=0).drop(columns=found.baseline).groupby("noise", sort=False)
    return pd.DataFrame({"mean": differences.mean().stack(), "error": differences.sem().stack()})
