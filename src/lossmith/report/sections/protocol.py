"""How the comparison was made, in words."""

from collections.abc import Iterable

import pandas as pd

from lossmith.expressions.lists import listed
from lossmith.report.subject import Subject
from lossmith.statistics.untrained import gave_something
from lossmith.statistics.wording import counted, is_share, percent, spoken
from lossmith.studies.design.settings import OWN

__all__ = ["protocol"]


def protocol(subject: Subject) -> list[str]:
    """Return the protocol of a study, a sentence or two for each part of it.

    Args:
        subject: The study.

    Returns:
        What a replicate is, how settings are tuned, where, and how losses are compared.
    """
    return [*_replicates(subject), *_trials(subject), *_where(subject), *_references(subject), *_comparison(subject)]


def _replicates(subject: Subject) -> Iterable[str]:
    overlap = subject.study.overlap
    if subject.study.caution:
        yield subject.study.caution
        return
    turns = "its own split, and they take turns in testing every row"
    split = turns if not overlap.rows else "its own validation rows" if overlap.ratio else "the split that was brought"
    yield (
        f"A replicate is the whole procedure, and there are {subject.replicates}: each has {split}; and its own starting "
        "weights, order of examples, wrong labels and settings to try. Losses of a replicate share them all, and are compared "
        "in pairs."
    )


def _trials(subject: Subject) -> Iterable[str]:
    trials = subject.trials
    if trials.empty or not (trials["weight"] > 0).any():
        return
    drawn = trials[(trials["weight"] > 0) | trials["stopped"]].groupby(["loss", "noise", "seed"]).size()
    beyond = int((~trials["stopped"] & (trials["weight"] == 0)).sum())
    yield (
        f"Every loss had the same number of trials, {int(drawn.median())} in each replicate: {_what_was_tuned(subject)}, "
        "spread evenly over their ranges."
    )
    if trials["stopped"].any():
        yield (
            f"All trials trained for {_first_epochs(trials)}. Then the best third on the validation rows, and one of the others, "
            f"drawn by chance, trained to the end; the other {int(trials['stopped'].sum())} were stopped."
        )
    if beyond:
        yield (
            f"{counted(beyond, 'further trial')} went beyond a best learning rate at the edge of the range, or gave a second "
            "chance, by the same rule for every loss, to what looked untrained."
        )


def _first_epochs(trials: pd.DataFrame) -> str:
    """Return how long trials trained before some were stopped."""
    reached = trials.loc[trials["stopped"], "epoch"].max() if "epoch" in trials else 0
    return counted(int(reached), "epoch") if reached > 0 else "a part of the epochs"


def _what_was_tuned(subject: Subject) -> str:
    tune = [str(what) for what in subject.study.provenance.get("tune", ())]
    named = [what.partition("=")[0].replace("_", " ") for what in tune if "=" in what]
    own = (subject.study.provenance.get("recipe") or {}).get("model") == OWN
    usual = [] if own else ["learning rate", "weight decay"]
    every = [*dict.fromkeys((*usual, *named)), *(["parameters of the loss"] if "parameters" in tune else [])]
    return listed(every)


def _where(subject: Subject) -> Iterable[str]:
    metric = spoken(subject.metric)
    if subject.study.provenance.get("tune_on") == "clean":
        yield f"Settings were chosen by {metric} on validation rows with labels as they are, and used at every noise level."
    elif subject.study.caution:  # an old study: on the first noise for all, or on each
        yield f"Learning rates were chosen by {metric} on the validation rows."
    elif len(subject.noises) > 1:
        yield f"Settings were chosen at each noise level by {metric} on validation rows as noisy as the training rows."
    else:
        yield f"Settings were chosen by {metric} on the validation rows."
    if subject.trials.get("validation_likelihood", pd.Series(dtype=float)).notna().any() and is_share(subject.metric):
        yield "Where that is within one standard error of the best, the one counts by which the labels are likeliest."
    if subject.study.provenance.get("class_weight") == "balanced":
        yield "Rare classes weigh more: every class has the same weight in all losses."
    elif str(subject.study.provenance.get("class_weight")).startswith("effective"):
        how = subject.study.provenance["class_weight"]
        yield f"Rare classes weigh more in all losses, by effective numbers of rows: {how}."


def _references(subject: Subject) -> Iterable[str]:
    if len(subject.references):
        names = ", ".join(map(str, subject.references["reference"].unique()))
        yield f"References ({names}) learnt from the same rows and wrong labels, tuned on the same validation rows."


def _comparison(subject: Subject) -> Iterable[str]:
    overlap = subject.study.overlap
    if overlap.rows:
        yield "All replicates are judged on the same test rows."
    yield (
        "What other test rows might give is told by the rows themselves: a row that several replicates tested counts once. What "
        "replicates differ by beyond that is the luck of training and tuning, told by all losses together."
    )
    if overlap.ratio:
        shared = "test rows" if not overlap.rows else "validation rows"
        yield (
            "Replicates share rows, and agree more than fresh data would: of that luck, s\N{SUPERSCRIPT TWO}, a mean difference "
            f"has (1/J + {overlap.ratio:.2f}) s\N{SUPERSCRIPT TWO} (Nadeau and Bengio), with {shared} at "
            f"{percent(overlap.ratio)} of the rows learnt from."
        )
    yield (
        f"Losses are tested against {subject.baseline}, corrected for their number (Holm). The interval beside a verdict is the "
        "one that the verdict uses."
    )
    yield "A run that diverged counts with the last predictions that were finite, and its loss is not recommended."
    yield from _rows(subject)


def _rows(subject: Subject) -> Iterable[str]:
    results = gave_something(subject.results)
    advised = results[(results["loss"] == subject.advice.loss) & (results["noise"] == subject.advice.noise)]
    rows = 0 if advised.empty else len(subject.study.test_labels(int(advised["seed"].iloc[0])))
    accuracy = float(advised["accuracy"].mean())
    if not rows:  # a training of the user's own need not tell
        return
    sampling = 100 * (max(accuracy * (1 - accuracy), 0.0) / rows) ** 0.5
    yield f"The {rows} test rows of a replicate leave its accuracy uncertain by {sampling:.1f} points."
