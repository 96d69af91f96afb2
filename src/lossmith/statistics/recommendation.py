"""From results to a decision: which loss, how sure, at what cost, and what would change it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from textwrap import fill
from typing import Any

import pandas as pd

from lossmith.losses import make_loss
from lossmith.statistics.caveats import costs, did_diverge, exceptions, failures, gains, limits, more_seeds, sound_losses
from lossmith.statistics.summary import ALL_NOISE, best_loss, compare_to, overall_results, usable_results
from lossmith.statistics.wording import counted, interval, sentence, spoken

__all__ = ["ALL_DIVERGED", "NONE_BETTER", "NOTHING", "NO_DIFFERENCE", "UNSTABLE", "Choice", "Recommendation", "recommend"]

NOTHING = "nothing can be said"
NO_DIFFERENCE = "no evidence of a difference"
NONE_BETTER = "no evidence of a better loss"
UNSTABLE = "the baseline diverged"
ALL_DIVERGED = "every loss diverged"

_LEVEL = 0.05


@dataclass(frozen=True)
class Choice:
    """What to train with at one noise level, or when the level is not known."""

    noise: str
    """The printed form of the noise; ``all`` where it is not known."""
    loss: str
    sure: str
    """How sure, in words: ``strong evidence`` (corrected p below 0.01), ``evidence`` (below 0.05), or one of NO_DIFFERENCE,
    NONE_BETTER (some losses are worse than the baseline, none is better), NOTHING (too few runs), UNSTABLE and ALL_DIVERGED."""
    reason: str
    """One sentence with the numbers behind it."""
    others: tuple[str, ...] = ()
    """Other losses that beat the baseline and cannot be told apart from this one."""


@dataclass(frozen=True)
class Recommendation:
    """Which loss to train with, as a person would tell it. ``print`` it."""

    loss: str
    """The expression of the loss, for someone who does not know the level of noise."""
    parameters: Mapping[str, Any]
    """The numbers of the loss by name; empty for a loss without, and for one that the user brought."""
    learning_rate: float | None
    """What its runs were trained with; None where that depends on the noise level."""
    sure: str
    """How sure, in words; see Choice."""
    evidence: tuple[str, ...]
    """Sentences with numbers; the first is the reason for the choice."""
    costs: tuple[str, ...]
    """What it costs against the baseline in calibration and in time."""
    would_change: tuple[str, ...]
    """What would change the answer."""
    baseline: str
    metric: str = "accuracy"
    by_noise: tuple[Choice, ...] = field(default=())
    """The choice for someone who knows the level of noise; empty where there is one level only."""
    unfinished: str = ""
    """That the study is not finished, in a sentence; empty where it is."""

    @property
    def keeps_baseline(self) -> bool:
        """Return whether the advice is to stay with the baseline."""
        return self.loss == self.baseline

    @property
    def all_diverged(self) -> bool:
        """Return whether there is nothing to recommend, as no loss has trained in all its runs."""
        return self.sure == ALL_DIVERGED

    @property
    def headline(self) -> str:
        """Return the advice in a few words.

        >>> Recommendation("gce", {}, 0.1, "evidence", (), (), (), baseline="ce").headline
        'Train with gce.'
        """
        if self.all_diverged:
            return "No loss to recommend."
        return f"{'Stay with' if self.keeps_baseline else 'Train with'} {self.loss}."

    def __str__(self) -> str:
        groups = {
            "": self.evidence,
            "Costs": self.costs,
            "If you know the noise": self._levels(),
            "What would change this": self.would_change,
        }
        parts = [fill(self.unfinished, 100)] if self.unfinished else []
        parts.append(f"{self.headline} {sentence(self.sure)}")
        for title, lines in groups.items():
            parts += [f"{title}:"] if title and lines else []
            parts += [fill(line, 100, initial_indent="  - ", subsequent_indent="    ") for line in lines]
        return "\n".join(parts)

    def _levels(self) -> list[str]:
        return [f"{choice.noise}: {choice.loss} ({choice.sure})" for choice in self.by_noise]


def recommend(
    results: pd.DataFrame, baseline: str = "ce", metric: str = "accuracy", *, searches: pd.DataFrame | None = None
) -> Recommendation:
    """Recommend a loss from the results of a study.

    A loss is recommended when it is better than the baseline by a paired t-test on the mean over all noise levels, corrected
    for the number of losses. Of several, the one with the best mean. Otherwise the baseline stays: what is simple and known
    need not prove itself. A loss with a run that diverged or is missing is not recommended.

    ``results`` is ``Study.results``, ``searches`` the runs of the search for learning rates. Where the study lacks the baseline,
    its first loss takes the place.

    Args:
        results: A row for each run that counts.
        baseline: The loss to beat.
        metric: The column to compare by.
        searches: A row for each run of the search.

    Returns:
        The loss, how sure it is, and why.

    Raises:
        ValueError: If there are no results, or a column is missing.
    """
    results = results.reset_index(drop=True)
    if results.empty:
        raise ValueError("recommend: there are no results; no run of the study has finished.")
    baseline = baseline if baseline in set(results["loss"]) else str(results["loss"].iloc[0])
    overall = _choose(results, baseline, metric, ALL_NOISE)
    noises = list(results["noise"].unique())
    known = noises if len(noises) > 1 else []
    by_noise = [_choose(results[results["noise"] == noise], baseline, metric, noise) for noise in known]
    return Recommendation(
        loss=overall.loss,
        parameters=_parameters(overall.loss),
        learning_rate=_learning_rate(results, overall.loss),
        sure=overall.sure,
        evidence=(overall.reason, *_equals(overall), *exceptions(results, overall.loss, baseline, metric), *failures(results)),
        costs=tuple(costs(results, overall.loss, baseline)),
        would_change=(
            *_more_evidence(results, overall, baseline, metric),
            *limits(results, searches, dict.fromkeys((overall.loss, baseline))),
        ),
        baseline=baseline,
        metric=metric,
        by_noise=tuple(choice for choice in by_noise if choice.sure != ALL_DIVERGED),
    )


def _choose(results: pd.DataFrame, baseline: str, metric: str, noise: str) -> Choice:
    """Choose a loss from results that are all that counts: one noise level, or all of them pooled."""
    where = " on average over all noise levels" if noise == ALL_NOISE and results["noise"].nunique() > 1 else ""
    if did_diverge(results).groupby(results["loss"]).any().all():
        rates = "smaller learning rates (--rates) may help."
        return Choice(noise, baseline, ALL_DIVERGED, f"No loss has trained in all its runs without diverging; {rates}")
    candidates = results[results["loss"].isin(sound_losses(results, baseline))]
    if candidates["loss"].nunique() < 2:
        return Choice(noise, baseline, NOTHING, "No other loss has finished all its runs to compare with.")
    compared = compare_to(candidates, baseline, metric, pooled=True).assign(gain=lambda frame: gains(frame, metric))
    better = compared[(compared["p_holm"] < _LEVEL) & (compared["gain"] > 0)]
    if better.empty:
        return _without_a_winner(candidates, compared, Choice(noise, baseline, NOTHING, ""), metric, where)
    row = better.loc[better["gain"].idxmax()]
    reason = f"{row['loss']} beats {baseline} by {interval(row, metric)}{where}, {_seeds(row)}."
    others = _not_told_apart(candidates, better, str(row["loss"]), metric)
    return Choice(noise, str(row["loss"]), _strength(row["p_holm"]), reason, others)


def _without_a_winner(results: pd.DataFrame, compared: pd.DataFrame, choice: Choice, metric: str, where: str) -> Choice:
    """Return the choice where no loss is better than the baseline for certain: the baseline, unless it fails to train."""
    baseline, leader = choice.loss, best_loss(_pooled(results, metric), metric)
    failed = did_diverge(results) & (results["loss"] == baseline)
    best = best_loss(_pooled(results[results["loss"] != baseline], metric), metric)
    if failed.any() and best:
        reason = f"{baseline} diverged in {counted(int(failed.sum()), 'run')}; of the losses that did not, {best} is best{where}."
        return replace(choice, loss=best, sure=UNSTABLE, reason=reason)
    if compared["p_holm"].isna().all():
        lead = f" {leader} has the best {spoken(metric)}{where}, which may be luck." if leader else ""
        return replace(
            choice, reason=f"From {counted(results['seed'].nunique(), 'seed')} nothing can be said about differences.{lead}"
        )
    row = compared.loc[compared["gain"].idxmax()]
    behind = f"{row['loss']}, at {interval(row, metric)}, {_seeds(row)}."
    if (compared["p_holm"] < _LEVEL).all():
        sure = _strength(compared["p_holm"].max())
        return replace(choice, sure=sure, reason=f"{baseline} beats every other loss{where}; next is {behind}")
    place = "ahead" if row["gain"] > 0 else "closest"
    sure = NONE_BETTER if (compared["p_holm"] < _LEVEL).any() else NO_DIFFERENCE
    return replace(choice, sure=sure, reason=f"No loss beats {baseline} beyond chance{where}; {place} is {behind}")


def _strength(p: float) -> str:
    return "strong evidence" if p < 0.01 else "evidence"


def _pooled(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    return overall_results(usable_results(results, metric)).rename(columns={"value": metric})


def _not_told_apart(results: pd.DataFrame, better: pd.DataFrame, chosen: str, metric: str) -> tuple[str, ...]:
    among = results[results["loss"].isin(better["loss"])]
    if len(better) < 2:
        return ()
    compared = compare_to(among, chosen, metric, pooled=True)
    return tuple(compared.loc[~(compared["p_holm"] < _LEVEL), "loss"])


def _equals(choice: Choice) -> list[str]:
    return [f"Better than the baseline, too, and not told apart from it: {', '.join(choice.others)}."] if choice.others else []


def _more_evidence(results: pd.DataFrame, choice: Choice, baseline: str, metric: str) -> list[str]:
    if results["seed"].nunique() < 2:
        return ["More seeds: from one no spread can be told. Five are a good start."]
    if choice.sure in (NO_DIFFERENCE, NONE_BETTER):
        return more_seeds(results, baseline, metric)
    return [f"More seeds could tell {choice.loss} from {', '.join(choice.others)}."] if choice.others else []


def _learning_rate(results: pd.DataFrame, loss: str) -> float | None:
    rates = results.loc[results["loss"] == loss, "learning_rate"].unique() if "learning_rate" in results else []
    return float(rates[0]) if len(rates) == 1 else None


def _parameters(expression: str) -> dict[str, Any]:
    """Return the parameters of a loss that the catalogue knows; of an objective or of a loss the user brought, none."""
    try:
        loss = make_loss(expression)
    except ValueError:
        return {}
    return {name: value for name, value in loss.parameters_in_order().items() if isinstance(value, int | float | list)}


def _seeds(row: pd.Series) -> str:
    return counted(int(row["pairs"]), "seed")
