"""What to train with at one noise level, and how sure that is."""

from dataclasses import dataclass, replace

import pandas as pd

from lossmith.statistics.evidence import LEVEL, Evidence, did_diverge
from lossmith.statistics.summary import best_loss
from lossmith.statistics.untrained import did_fail, failed_losses
from lossmith.statistics.wording import counted, interval, measured_in, spoken

__all__ = [
    "ALL_DIVERGED",
    "ALL_FAILED",
    "ALL_UNTRAINED",
    "DEPENDS",
    "FAILED_BASELINE",
    "NONE_BETTER",
    "NOTHING",
    "NO_DIFFERENCE",
    "UNSTABLE",
    "UNTRAINED",
    "Choice",
    "choose",
    "strength",
]

NOTHING = "nothing can be said"
NO_DIFFERENCE = "no evidence of a difference"
NONE_BETTER = "no evidence of a better loss"
DEPENDS = "depends on the setting"
UNSTABLE = "the baseline diverged"
UNTRAINED = "the baseline looks untrained"
FAILED_BASELINE = "the baseline failed"
ALL_DIVERGED = "every loss diverged"
ALL_FAILED = "every loss failed"
ALL_UNTRAINED = "every loss looks untrained"


@dataclass(frozen=True)
class Choice:
    """What to train with at one noise level."""

    noise: str
    """The printed form of the noise."""
    loss: str
    sure: str
    """How sure, in words: ``strong evidence`` (corrected p below 0.01), ``evidence`` (below 0.05), or one of NO_DIFFERENCE,
    NONE_BETTER (some losses are worse than the baseline, none is better), DEPENDS (a loss is better, but not with all of the good
    settings), NOTHING (too few replicates), UNSTABLE, UNTRAINED, FAILED_BASELINE, ALL_DIVERGED, ALL_FAILED
    and ALL_UNTRAINED."""
    reason: str
    """One sentence with the numbers behind it."""
    others: tuple[str, ...] = ()
    """Other losses that beat the baseline and cannot be told apart from this one."""
    noise_rate: float = float("nan")
    """The realised share of wrong labels."""
    depends: tuple[str, ...] = ()
    """Sentences about losses that are better than the baseline with some of the good settings only."""
    untrained: tuple[str, ...] = ()
    """Losses that look untrained at this level; they are not compared."""
    reference: str = ""
    """That a reference model is ahead of the best loss, in a sentence; empty where none is."""

    @property
    def has_loss(self) -> bool:
        """Return whether there is a loss to train with."""
        return self.sure not in (ALL_DIVERGED, ALL_FAILED, ALL_UNTRAINED)


def choose(evidence: Evidence, noise: str) -> Choice:
    """Choose a loss for one noise level.

    Args:
        evidence: What there is.
        noise: One of its noise levels.

    Returns:
        The loss, how sure it is, and why.
    """
    baseline, level = evidence.baseline, evidence.level(noise)
    untrained, failures = evidence.untrained(noise), evidence.failures(noise)
    rate = float(level["noise_rate"].mean()) if "noise_rate" in level else float("nan")
    choice = Choice(noise, baseline, NOTHING, "", noise_rate=rate, untrained=tuple(untrained))
    sound = evidence.sound(noise)
    if baseline not in set(level["loss"]):
        return replace(choice, reason=f"{baseline} has no results to compare with yet.")
    if not sound:
        return _without_a_loss(choice, level, failures)
    if baseline not in sound:
        return _without_a_baseline(choice, evidence, sound, {**failures, **untrained})
    compared = evidence.differences
    compared = compared[(compared["noise"] == noise) & compared["loss"].isin(sound)]
    if compared.empty:
        return replace(choice, reason="No other loss has trained in all replicates to compare with.")
    return _with_a_baseline(choice, evidence, compared)


def strength(p: float) -> str:
    """Return how sure a corrected p-value makes."""
    return "strong evidence" if p < 0.01 else "evidence"


def _without_a_loss(choice: Choice, level: pd.DataFrame, failures: dict[str, str]) -> Choice:
    if did_fail(level).groupby(level["loss"]).any().all():
        return replace(choice, sure=ALL_FAILED, reason="No loss has trained in all replicates.")
    if did_diverge(level).groupby(level["loss"]).any().all():
        reason = "No loss has trained in all replicates without diverging; smaller learning rates (--rates) may help."
        return replace(choice, sure=ALL_DIVERGED, reason=reason)
    others = f" {' '.join(failures.values())}" if failures else ""
    reason = f"No loss has learnt enough to be compared; more epochs (--epochs) or another model may help.{others}"
    return replace(choice, sure=ALL_UNTRAINED, reason=reason)


def _without_a_baseline(choice: Choice, evidence: Evidence, sound: list[str], out: dict[str, str]) -> Choice:
    """Return the best of the losses that trained: how it compares with one that did not says nothing about either."""
    level = evidence.level(choice.noise)
    best = best_loss(level[level["loss"].isin(sound)], evidence.metric) or sound[0]
    reason = f"{out[choice.loss].removesuffix('.')}; of the losses that trained, {best} has the best {spoken(evidence.metric)}."
    sure = UNTRAINED if choice.loss in choice.untrained else FAILED_BASELINE if choice.loss in failed_losses(level) else UNSTABLE
    return replace(choice, loss=best, sure=sure, reason=reason)


def _with_a_baseline(choice: Choice, evidence: Evidence, compared: pd.DataFrame) -> Choice:
    baseline, metric = choice.loss, evidence.metric
    told = compared[compared["p_holm"] < LEVEL]
    hangs = {str(loss): evidence.hangs_on(str(loss), choice.noise) for loss in told["loss"]}
    better = told[told["gain"] > 0]
    holds = better[[not hangs[loss] for loss in better["loss"]]]
    depends = tuple(
        f"{row['loss']} is ahead of {baseline} by {interval(row, metric)}, but that depends on the setting: {hangs[row['loss']]}."
        for _, row in better.iterrows()
        if hangs[row["loss"]]
    )
    if len(holds):
        row = holds.loc[holds["gain"].idxmax()]
        reason = f"{row['loss']} beats {baseline} by {_numbers(row, metric)}."
        others = _not_told_apart(evidence, choice.noise, list(holds["loss"]), str(row["loss"]))
        return replace(choice, loss=str(row["loss"]), sure=strength(row["p_holm"]), reason=reason, others=others, depends=depends)
    if depends:
        return replace(choice, sure=DEPENDS, reason=depends[0], depends=depends[1:])
    return _keep_baseline(choice, evidence, compared, hangs)


def _keep_baseline(choice: Choice, evidence: Evidence, compared: pd.DataFrame, hangs: dict[str, str]) -> Choice:
    """Return the choice where no loss is better than the baseline: what is simple and known need not prove itself."""
    baseline, metric, level = choice.loss, evidence.metric, evidence.level(choice.noise)
    if compared["p_holm"].isna().all():
        leader = best_loss(level[level["loss"].isin([baseline, *compared["loss"]])], metric)
        lead = f" {leader} has the best {spoken(metric)}, which may be luck." if leader else ""
        replicates = counted(level["seed"].nunique(), "replicate")
        return replace(choice, reason=f"From {replicates} nothing can be said about differences.{lead}")
    row = compared.loc[compared["gain"].idxmax()]
    numbers = f"{row['loss']}, {_numbers(row, metric)}."
    if set(hangs) == set(compared["loss"]):
        if any(hangs.values()):
            loss, words = next((loss, words) for loss, words in hangs.items() if words)
            return replace(
                choice, sure=DEPENDS, reason=f"{baseline} is ahead of {loss}, but that depends on the setting: {words}."
            )
        sure = strength(compared["p_holm"].max())
        next_best = f"; next is {numbers}" if len(compared) > 1 else f": {numbers}"
        every = "every other loss" if len(compared) > 1 else "the other loss"
        return replace(choice, sure=sure, reason=f"{baseline} beats {every}{next_best}")
    place = "ahead" if row["gain"] > 0 else "closest"
    reason = f"No loss beats {baseline} beyond chance; {place} is {numbers}"
    return replace(choice, sure=NO_DIFFERENCE if all(hangs.values()) else NONE_BETTER, reason=reason)


def _not_told_apart(evidence: Evidence, noise: str, better: list[str], chosen: str) -> tuple[str, ...]:
    if len(better) < 2:
        return ()
    level = evidence.level(noise)
    compared = evidence.compare(level[level["loss"].isin(better)], chosen, evidence.metric)
    return tuple(compared.loc[~(compared["p_holm"] < LEVEL), "loss"])


def _numbers(row: pd.Series, metric: str) -> str:
    return f"{interval(row, metric)}{measured_in(metric)}, {counted(int(row['pairs']), 'replicate')}"
