"""Which trial of a cell counts, and what is tried beyond those that were drawn."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lossmith.objectives.ranges import Range
from lossmith.studies.design.settings import Settings
from lossmith.studies.measures import merit_of_stored
from lossmith.training.merit import best_first, may_be_best
from lossmith.training.recipe import Cell, Run

__all__ = ["MORE_EPOCHS", "best_trial", "edge_runs", "second_chance_runs", "trials_that_may_count"]

Stored = Mapping[str, Any]
"""A run as the file of a study has it."""

EDGE_ROUNDS = 2
EDGE_STEPS = (2.0, 4.0)
"""Beyond a best rate at the edge of all that were tried: such multiples of it, or parts."""
MORE_EPOCHS = 3
"""A second chance has so many times the epochs."""
SECOND_RATES = (1.0, 3.0)
"""And such multiples of the rate that was best."""


def best_trial(trials: Sequence[Stored]) -> Stored:
    """Return the best trial by its validation rows among those that were trained to the end: see :func:`best_first`.

    One that diverged counts last. Of equal trials the smaller learning rate is taken, and never the one that was done first:
    what counts must not hang on which process was faster.

    Args:
        trials: Those of one cell.

    Returns:
        One of them.
    """
    finished = _simplest_first(trial for trial in trials if not trial["stopped"])
    return finished[best_first([merit_of_stored(trial) for trial in finished])[0]]


def trials_that_may_count(trials: Sequence[Stored]) -> list[Stored]:
    """Return the trials of a cell one of which will count, whatever further trials there will be besides those.

    Args:
        trials: Those that were trained to the end.

    Returns:
        Some of them, the best among them.
    """
    finished = _simplest_first(trials)
    return [finished[place] for place in may_be_best([merit_of_stored(trial) for trial in finished])]


def _simplest_first(trials: Iterable[Stored]) -> list[Stored]:
    """Return trials by rate, decay and epochs, and where these are the same in an order that is always the same."""
    ordered = sorted(trials, key=lambda trial: str(trial["parameters"]), reverse=True)
    return sorted(ordered, key=lambda trial: (trial["learning_rate"], trial["weight_decay"], trial["epochs"]))


def edge_runs(settings: Settings, cell: Cell, trials: Sequence[Stored]) -> list[Run]:
    """Return further trials beyond the best rate, where that is the smallest or largest of all; none where it is not.

    The rule is the same for every loss. Rates that the user gave are the user's.

    Args:
        settings: Those of the study.
        cell: Whose trials they are.
        trials: All that were trained so far.

    Returns:
        Two runs, or none.
    """
    if settings.is_own and not isinstance(settings.tuned.get("learning_rate"), Range):
        return []
    added = sum(not trial["stands_for"] and not trial["stopped"] for trial in trials)
    if settings.gives_rates or len(trials) < 3 or added >= EDGE_ROUNDS * len(EDGE_STEPS):
        return []
    best, rates = best_trial(trials), [trial["learning_rate"] for trial in trials]
    rate = best["learning_rate"]
    if best["diverged"] or rate not in (min(rates), max(rates)):
        return []
    beyond = [rate * step if rate == max(rates) else rate / step for step in EDGE_STEPS]
    return [Run(*cell, float(f"{other:.3g}"), best["weight_decay"], best["parameters"]) for other in beyond]


def second_chance_runs(settings: Settings, cell: Cell, best: Stored) -> list[Run]:
    """Return what is tried for a loss that looks untrained: more epochs, and a larger rate besides its own.

    Args:
        settings: Those of the study.
        cell: Where it looks untrained.
        best: Its best trial.

    Returns:
        Two runs.
    """
    epochs = MORE_EPOCHS * settings.recipe.epochs
    rates = [float(f"{best['learning_rate'] * step:.3g}") for step in SECOND_RATES]
    return [Run(*cell, rate, best["weight_decay"], best["parameters"], epochs) for rate in rates]
