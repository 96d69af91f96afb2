"""From results to a decision: which loss, how sure, how much tuning it takes, at what cost, and what would change it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from lossmith.lazy_names import imported
from lossmith.losses import make_loss
from lossmith.statistics.caveats import benefits, costs, edges, more_replicates, reference_ahead, uneven_classes, untried_noise
from lossmith.statistics.differences.luck import LuckOfRows
from lossmith.statistics.differences.overlapping import INDEPENDENT, Overlap
from lossmith.statistics.evidence import Evidence
from lossmith.statistics.experience import Experience, experience_lines
from lossmith.statistics.summary import noise_as_is
from lossmith.statistics.tuning_words import tuning_lines
from lossmith.statistics.verdicts import DEPENDS, FAILED_BASELINE, NO_DIFFERENCE, NONE_BETTER, UNSTABLE, UNTRAINED, Choice, choose
from lossmith.statistics.wording import listed, percent, sentence

__all__ = ["Choice", "Recommendation", "recommend"]

_WIDTH = 100


@dataclass(frozen=True)
class Recommendation:
    """Which loss to train with, as a person would tell it. ``print`` it."""

    loss: str
    """The expression of the loss, for the data as they are."""
    parameters: Mapping[str, Any]
    """The numbers of the loss by name, those that were tuned as the median over the replicates; empty for a loss without, and for
    one that the user brought."""
    learning_rate: float | None
    """The median of what its replicates chose; None where that is not known."""
    sure: str
    """How sure, in words; see Choice."""
    evidence: tuple[str, ...]
    """Sentences with numbers; the first is the reason for the choice."""
    costs: tuple[str, ...]
    """What it costs against the baseline, in calibration and in time."""
    would_change: tuple[str, ...]
    """What would change the answer."""
    baseline: str
    metric: str = "accuracy"
    by_noise: tuple[Choice, ...] = ()
    """What if more labels were wrong: the choice at every level of added noise."""
    unfinished: str = ""
    """That the study is not finished, in a sentence; empty where it is."""
    noise: str = "none"
    """The noise level that the answer is about: the labels as they are."""
    benefits: tuple[str, ...] = ()
    """What it gives besides, against the baseline."""
    references: tuple[str, ...] = ()
    """That a reference model is ahead of the best loss, which is said before anything else."""
    untrained: tuple[str, ...] = ()
    """Which losses look untrained, and why: they are neither recommended nor compared."""
    tuning: tuple[str, ...] = ()
    """How much will you tune: the answer after few trials and after many."""
    elsewhere: tuple[str, ...] = ()
    """What to expect when other data are taken into account, too; empty where too little is known of such data."""
    weight_decay: float | None = None
    """The median of what its replicates chose; None where that is not known."""
    has_loss: bool = True
    """False where every loss diverged or looks untrained, so that there is none to recommend."""
    differences: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False, compare=False)
    """All losses against the baseline at every noise level, with the intervals by which was decided."""

    @property
    def keeps_baseline(self) -> bool:
        """Return whether the advice is to stay with the baseline."""
        return self.loss == self.baseline

    @property
    def headline(self) -> str:
        """Return the advice in a few words.

        >>> Recommendation("gce", {}, 0.1, "evidence", (), (), (), baseline="ce").headline
        'Train with gce.'
        """
        if not self.has_loss:
            return "No loss to recommend."
        return f"{self.verb} {self.loss}."

    @property
    def verb(self) -> str:
        """Return what is said of the loss; without a sound baseline nothing is decided, and it is only the best there is.

        >>> Recommendation("gce", {}, 0.1, UNTRAINED, (), (), (), baseline="ce").headline
        'Best so far: gce.'
        """
        if self.sure in (UNSTABLE, UNTRAINED, FAILED_BASELINE):
            return "Best so far:"
        return "Stay with" if self.keeps_baseline else "Train with"

    def _repr_html_(self) -> str | None:
        """Return what a notebook shows; the report is above statistics, and therefore looked up only when a person looks."""
        try:
            shown: str = imported("recommendation_html", "lossmith.report.notebook", "lossmith.report")(self)
        except ImportError:  # the extra ``report`` is missing
            return None
        return shown

    def __str__(self) -> str:
        groups = {
            "": (*self.evidence, *self.untrained),
            "How much will you tune?": self.tuning,
            "What if labels were wrong?": tuple(map(_level_line, self.by_noise)),
            "What other data say:": self.elsewhere,
            "Benefits:": self.benefits,
            "Costs:": self.costs,
            "What would change this:": self.would_change,
        }
        parts = [fill(line, _WIDTH) for line in (self.unfinished, *self.references) if line]
        parts.append(fill(f"{self.headline} {sentence(self.sure)}", _WIDTH))
        for title, lines in groups.items():
            parts += [title] if title and lines else []
            parts += [fill(line, _WIDTH, initial_indent="  - ", subsequent_indent="    ") for line in lines]
        return "\n".join(parts)


def recommend(
    results: pd.DataFrame,
    baseline: str = "ce",
    metric: str = "accuracy",
    *,
    trials: pd.DataFrame | None = None,
    references: pd.DataFrame | None = None,
    overlap: Overlap = INDEPENDENT,
    luck_of_rows: LuckOfRows | None = None,
    validation_rows: int | None = None,
    class_shares: Sequence[float] | None = None,
    noisy_labels: float | None = None,
    experience: Experience | None = None,
) -> Recommendation:
    """Recommend a loss from the results of a study, for its data as they are; and say what if more labels were wrong.

    A loss is recommended when it is better than the baseline in a paired test over replicates, corrected for what they share
    and for the number of losses, and when that does not hang on which of the good settings either of them takes. Of several, the
    one with the best mean. Otherwise the baseline stays: what is simple and known need not prove itself. A loss that diverged,
    looks untrained or lacks a replicate is not recommended. Where the study lacks the baseline, its first loss takes the place.

    Args:
        results: ``Study.results``: a row for each run that counts.
        baseline: The loss to beat.
        metric: The column to compare by.
        trials: ``Study.trials``, which tell how much tuning matters and whether an answer hangs on a setting.
        references: ``Study.references``: a row for each reference model, noise and replicate.
        overlap: What replicates share.
        luck_of_rows: What the luck of test rows has to do with each difference, where it is known.
        validation_rows: How many rows chose among the trials; without it settings are not looked at.
        class_shares: Share of the rows that each class has.
        noisy_labels: Share of the labels of the data themselves that is known or estimated to be wrong.
        experience: What happened on other data, by noise level and its share of wrong labels. It changes no verdict.

    Returns:
        The loss, how sure it is, and why.

    Raises:
        ValueError: If there are no results, or a column is missing.
    """
    results = results.reset_index(drop=True)
    if results.empty:
        raise ValueError("recommend: there are no results; no run of the study has finished.")
    baseline = baseline if baseline in set(results["loss"]) else str(results["loss"].iloc[0])
    evidence = Evidence(results, baseline, metric, trials, references, overlap, luck_of_rows, validation_rows)
    levels = list(map(str, results["noise"].unique()))
    choices = [replace(choose(evidence, level), reference=reference_ahead(evidence, level)) for level in levels]
    told = _explained(evidence, choices, class_shares, noisy_labels)
    return told if experience is None else replace(told, elsewhere=_elsewhere(evidence, choices, experience))


def _elsewhere(evidence: Evidence, choices: Sequence[Choice], experience: Experience) -> tuple[str, ...]:
    """Return what to expect at each level of noise that the data of others were studied at."""
    known = {choice.noise: experience(choice.noise, choice.noise_rate) for choice in choices}
    return tuple(line for noise, elsewhere in known.items() for line in experience_lines(evidence, noise, elsewhere))


def _explained(
    evidence: Evidence, choices: Sequence[Choice], class_shares: Sequence[float] | None, noisy_labels: float | None
) -> Recommendation:
    """Return the choice for the data as they are, with all that there is to say about it."""
    noise = noise_as_is(evidence.results)
    answer = next(choice for choice in choices if choice.noise == noise)
    loss = answer.loss
    return Recommendation(
        loss=loss,
        parameters=_parameters(evidence, loss, noise),
        learning_rate=_median(evidence, loss, noise, "learning_rate"),
        weight_decay=_median(evidence, loss, noise, "weight_decay"),
        sure=answer.sure,
        has_loss=answer.has_loss,
        evidence=(
            *_reasons(answer, evidence),
            *uneven_classes(evidence, loss, noise, class_shares),
            *_known_noise(noisy_labels, choices),
        ),
        untrained=tuple(evidence.untrained(noise).values()),
        references=(answer.reference,) if answer.reference else (),
        tuning=tuple(tuning_lines(evidence, noise, loss)),
        benefits=tuple(benefits(evidence, loss, noise)),
        costs=tuple(costs(evidence, loss, noise)),
        would_change=_what_would_change(answer, evidence),
        baseline=evidence.baseline,
        metric=evidence.metric,
        noise=noise,
        by_noise=tuple(choice for choice in choices if choice.noise != noise),
        differences=evidence.differences,
    )


def _level_line(choice: Choice) -> str:
    """Return one line about added noise: how many labels were wrong, which loss, how sure, and what else there is to know."""
    wrong = f", {percent(choice.noise_rate)} wrong" if choice.noise_rate > 0 else ""
    untrained = f" Untrained: {listed(choice.untrained)}." if choice.untrained else ""
    reference = f" {choice.reference}" if choice.reference else ""
    return f"{choice.noise}{wrong}: {choice.reason} {sentence(choice.sure)}{untrained}{reference}"


def _reasons(answer: Choice, evidence: Evidence) -> tuple[str, ...]:
    return (answer.reason, *_equals(answer), *answer.depends, *evidence.failures(answer.noise).values())


def _what_would_change(answer: Choice, evidence: Evidence) -> tuple[str, ...]:
    at_edges = edges(evidence, dict.fromkeys((answer.loss, evidence.baseline)), answer.noise)
    return (*_more_evidence(evidence, answer), *untried_noise(evidence.results), *at_edges)


def _equals(choice: Choice) -> list[str]:
    return [f"Better than the baseline, too, and not told apart from it: {listed(choice.others)}."] if choice.others else []


def _known_noise(share: float | None, choices: Sequence[Choice]) -> list[str]:
    """Tell where the noise of the data themselves belongs: to the labels as they are; what is added comes on top of it."""
    if not share:
        return []
    on_top = "; what was added comes on top of it" if len(choices) > 1 else ""
    return [f"About {percent(share)} of these labels are wrong as they are, and the answer is for that share{on_top}."]


def _more_evidence(evidence: Evidence, choice: Choice) -> list[str]:
    if evidence.results["seed"].nunique() < 2:
        return ["More replicates: from one no spread can be told. Ten are a good start."]
    if choice.sure == DEPENDS:
        return ["More validation rows or more trials, which tell better which settings are good."]
    if choice.sure in (NO_DIFFERENCE, NONE_BETTER):
        return more_replicates(evidence, choice.noise)
    return [f"More replicates could tell {choice.loss} from {listed(choice.others)}."] if choice.others else []


def _median(evidence: Evidence, loss: str, noise: str, setting: str) -> float | None:
    """Return the median over the replicates of one of the numbers that were tuned; of learning rates, which differ by factors."""
    level = evidence.level(noise)
    chosen = level.loc[level["loss"] == loss, setting].dropna() if setting in level else []
    return float(np.median(chosen)) if len(chosen) else None


def _parameters(evidence: Evidence, loss: str, noise: str) -> dict[str, Any]:
    """Return the parameters of a loss that the catalogue knows; of an objective or of a loss the user brought, those tuned."""
    try:
        known = make_loss(loss).parameters_in_order()
    except ValueError:
        known = {}
    numbers = {name: value for name, value in known.items() if isinstance(value, int | float | list)}
    level = evidence.level(noise)
    written = level.loc[level["loss"] == loss, "parameters"].dropna() if "parameters" in level else []
    tuned = pd.DataFrame([dict(_pair(part) for part in text.split(",") if "=" in part) for text in written])
    return {**numbers, **{str(name): float(tuned[name].median()) for name in tuned}}


def _pair(text: str) -> tuple[str, float]:
    """Return name and value of ``q=0.5``; NaN for a value that is no number."""
    name, _, value = text.partition("=")
    number = pd.to_numeric(value.strip(), errors="coerce")
    return name.strip(), float(number)
