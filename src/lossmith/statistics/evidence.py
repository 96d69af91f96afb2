"""What a recommendation is made of: the results, how replicates overlap, and which losses can be recommended at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from lossmith.statistics.differences.luck import LuckOfRows
from lossmith.statistics.differences.overlapping import INDEPENDENT, Overlap
from lossmith.statistics.setting_dependence import setting_checks, what_it_hangs_on
from lossmith.statistics.summary import COMPARED, compare_to, is_higher_better, usable_results
from lossmith.statistics.untrained import did_fail, failed_losses, gave_something, untrained_losses
from lossmith.statistics.wording import counted, interval

__all__ = ["LEVEL", "Evidence", "did_diverge", "gains"]

LEVEL = 0.05
"""The corrected p-value below which there is evidence."""


def did_diverge(results: pd.DataFrame) -> "pd.Series[bool]":
    """Return for each run whether it diverged."""
    return results["diverged"].astype(bool) if "diverged" in results else pd.Series(False, results.index)


def gains(compared: pd.DataFrame, metric: str) -> "pd.Series[float]":
    """Return differences with the sign that makes the better loss positive."""
    return compared["difference"] if is_higher_better(metric) else -compared["difference"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that speaks for one loss or another."""

    results: pd.DataFrame
    baseline: str
    metric: str = "accuracy"
    trials: pd.DataFrame | None = None
    references: pd.DataFrame | None = None
    overlap: Overlap = INDEPENDENT
    luck_of_rows: LuckOfRows | None = None
    validation_rows: int | None = None

    @cached_property
    def differences(self) -> pd.DataFrame:
        """All losses against the baseline at every noise level: the intervals by which everything is decided."""
        return self.compare(self.results, self.baseline, self.metric)

    def compare(self, results: pd.DataFrame, reference: str, metric: str) -> pd.DataFrame:
        """Return :func:`compare_to` with what replicates share, and with ``gain``, positive where a loss is better."""
        of_rows = self.luck_of_rows if metric == self.metric else None
        if reference not in set(usable_results(results, metric)["loss"]):
            return pd.DataFrame(columns=[*COMPARED, "gain"])
        compared = compare_to(results, reference, metric, overlap=self.overlap, luck_of_rows=of_rows)
        return compared.assign(gain=gains(compared, metric))

    def level(self, noise: str) -> pd.DataFrame:
        """Return the results of one noise level."""
        return self.results[self.results["noise"] == noise]

    def untrained(self, noise: str) -> dict[str, str]:
        """Return the losses that count as untrained at a noise level, each with a sentence that says why."""
        marked = untrained_losses(gave_something(self.level(noise)))
        return {
            str(row["loss"]): f"{row['loss']} looks untrained in {row['untrained']} of "
            f"{counted(row['replicates'], 'replicate')}: {row['reason']}."
            for _, row in marked.iterrows()
        }

    def failures(self, noise: str) -> dict[str, str]:
        """Return the losses that failed, diverged or lack replicates at a noise level, each with a sentence that says so."""
        level = self.level(noise)
        replicates = level.groupby("loss", sort=False).size()
        diverged = level[did_diverge(level) & ~did_fail(level)].groupby("loss", sort=False).size()
        fewer = replicates[replicates < replicates.max()].drop(self.baseline, errors="ignore")
        lacking = {
            loss: f"{loss} has {count} of {counted(int(replicates.max()), 'replicate')} only." for loss, count in fewer.items()
        }
        unstable = {
            loss: f"{loss} diverged in {count} of {counted(int(replicates[loss]), 'replicate')}."
            for loss, count in diverged.items()
        }
        return {**lacking, **unstable, **failed_losses(level)}

    def sound(self, noise: str) -> list[str]:
        """Return the losses that can be recommended at a noise level: trained in all replicates."""
        out: Mapping[str, str] = {**self.failures(noise), **self.untrained(noise)}
        return [str(loss) for loss in self.level(noise)["loss"].unique() if loss not in out]

    def hangs_on(self, loss: str, noise: str) -> str:
        """Return on which setting the difference between a loss and the baseline hangs, in words; nothing where it holds."""
        if self.trials is None or self.trials.empty or not self.validation_rows:
            return ""
        level = self.trials[self.trials["noise"] == noise]
        checks = setting_checks(
            level, loss, self.baseline, self.metric, self.validation_rows, overlap=self.overlap, luck_of_rows=self.luck_of_rows
        )
        worst = what_it_hangs_on(checks, noise)
        return "" if worst is None else _setting_words(worst, loss, self.baseline, self.metric)


def _setting_words(check: pd.Series, loss: str, baseline: str, metric: str) -> str:
    """Return what becomes of the difference with another good setting of one of the two, told of the one that was ahead."""
    was, is_now = (check[name] if is_higher_better(metric) else -check[name] for name in ("chosen", "difference"))
    ahead, other = (loss, baseline) if was > 0 else (baseline, loss)
    lead = check if was > 0 else _turned(check)
    changed = check["changed"]
    if is_now * was <= 0:
        return f"with {check['rule']} {changed} turns it round: {other} is then ahead by {interval(_turned(lead), metric)}"
    if changed == other:
        return f"with {check['rule']} {other} comes to within {interval(lead, metric)} of {ahead}"
    return f"with {check['rule']} {ahead} is ahead by {interval(lead, metric)} only"


def _turned(row: pd.Series) -> pd.Series:
    """Return the same difference seen from the other side."""
    return pd.Series({"difference": -row["difference"], "low": -row["high"], "high": -row["low"]})
