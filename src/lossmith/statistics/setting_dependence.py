"""No verdict that hangs on a setting: does a difference stay when either loss takes another of its good settings?

Which of several near-best settings is the best on validation rows is partly luck. Rules that do not look at the test rows take
others: the smallest or largest learning rate or weight decay among them, or the second best. A difference holds if under every
rule, for either loss, it keeps its sign and at least half of its size.
"""

from dataclasses import dataclass

import pandas as pd

from lossmith.statistics.differences.luck import NO_LUCK, LuckOfRows, RowLuck
from lossmith.statistics.differences.overlapping import INDEPENDENT, Overlap
from lossmith.statistics.differences.paired_tests import paired_difference
from lossmith.statistics.trial_frames import finished_trials, is_near_best, usable_trials

__all__ = ["KEPT", "RULES", "Rule", "setting_checks", "what_it_hangs_on"]


@dataclass(frozen=True)
class Rule:
    """A way to choose among the near-best trials of a cell."""

    words: str
    column: str
    """What the trials are put in order by."""
    place: int
    """Which of them is taken: 0 for the first, -1 for the last, -2 for the one before, or the last where it is the only one."""

    def values(self, near: pd.DataFrame) -> "pd.Series[float]":
        """Return the value of the trial that is taken in each replicate, among near-best trials of one loss and noise."""
        by_replicate = near.dropna(subset=self.column).sort_values(self.column, kind="stable").groupby("seed")
        taken = by_replicate.head(1) if self.place == 0 else by_replicate.tail(-self.place)
        return taken.groupby("seed")["value"].first()


RULES = (
    Rule("the smallest of its good learning rates", "learning_rate", 0),
    Rule("the largest of its good learning rates", "learning_rate", -1),
    Rule("the smallest of its good weight decays", "weight_decay", 0),
    Rule("the largest of its good weight decays", "weight_decay", -1),
    Rule("its second best setting", "place", -2),
)
"""Choices as good as the one that counts, as far as the scores of validation rows can tell."""

KEPT = 0.5
"""The part of its size that a difference must keep."""

_COLUMNS = ["noise", "changed", "rule", "replicates", "chosen", "difference", "low", "high"]


def setting_checks(
    trials: pd.DataFrame,
    loss: str,
    reference: str,
    metric: str,
    rows: int,
    *,
    overlap: Overlap = INDEPENDENT,
    luck_of_rows: LuckOfRows | None = None,
) -> pd.DataFrame:
    """Compare a loss with a reference where one of them takes another of its near-best settings, by every rule.

    Near-best are the trials of a cell that were trained to the end, within one standard error of the best validation score.

    Args:
        trials: ``Study.trials``.
        loss: The loss.
        reference: What it is compared with.
        metric: The column to compare by.
        rows: The number of validation rows.
        overlap: What replicates share.
        luck_of_rows: What the luck of test rows has to do with each difference, where it is known.

    Returns:
        ``noise``, ``changed`` (the loss that takes another setting), ``rule``, ``replicates``, ``chosen`` (the mean difference
        with the settings that were chosen), ``difference``, ``low`` and ``high`` (95 % interval, not corrected).

    Raises:
        ValueError: If a column is missing, or there are no rows.
    """
    frame = finished_trials(usable_trials(trials[trials["loss"].isin([loss, reference])], metric))
    near = is_near_best(frame, rows, metric)
    checks: list[tuple[object, ...]] = []
    for noise, level in frame.groupby("noise", sort=False):
        mine, theirs = (_values_by_rule(level[level["loss"] == name], near) for name in (loss, reference))
        of_rows = luck_of_rows(loss, reference, str(noise)) if luck_of_rows else NO_LUCK
        for rule in RULES:
            for changed in (loss, reference):
                pairs = pd.DataFrame(
                    {
                        "mine": mine["chosen"],
                        "theirs": theirs["chosen"],
                        "mine_changed": mine[rule.words if changed == loss else "chosen"],
                        "theirs_changed": theirs[rule.words if changed == reference else "chosen"],
                    }
                ).dropna()
                checks.append((noise, changed, rule.words, len(pairs), *_compared(pairs, overlap, of_rows)))
    found = pd.DataFrame(checks, columns=_COLUMNS)
    return found[found["replicates"] > 0].reset_index(drop=True)


def what_it_hangs_on(checks: pd.DataFrame, noise: str) -> pd.Series | None:
    """Return the check under which a difference loses its sign or more than half of its size, the worst if there are several.

    Args:
        checks: What :func:`setting_checks` returns.
        noise: The noise level at which it is asked.

    Returns:
        A row of the checks; None where the difference holds under every rule, or where fewer than two replicates can tell.
    """
    level = checks[(checks["noise"] == noise) & (checks["replicates"] > 1) & (checks["chosen"] != 0)]
    kept = level["difference"] / level["chosen"]
    return level.loc[kept.idxmin()] if len(kept) and kept.min() < KEPT else None


def _values_by_rule(trials: pd.DataFrame, near: "pd.Series[bool]") -> pd.DataFrame:
    """Return a table of replicates x rules of the trials of a loss at a noise level, with the trial that counts as ``chosen``."""
    chosen = trials.sort_values(["counts", "place"], kind="stable").groupby("seed")["value"].last()
    good = trials[near.loc[trials.index]]
    return pd.DataFrame({"chosen": chosen, **{rule.words: rule.values(good) for rule in RULES}})


def _compared(pairs: pd.DataFrame, overlap: Overlap, of_rows: RowLuck) -> tuple[float, float, float, float]:
    """Return the mean difference as chosen, and the one with other settings with its interval."""
    values = pairs["mine_changed"].to_numpy(), pairs["theirs_changed"].to_numpy()
    changed = paired_difference(*values, overlap_ratio=overlap.ratio, rows=of_rows)
    return float((pairs["mine"] - pairs["theirs"]).mean()), changed.mean, changed.low, changed.high
