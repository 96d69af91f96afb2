"""The choice of a setting on validation rows, at a bounded cost."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lossmith.studies.references.families import Family, Place
from lossmith.studies.references.predictions import FittedModel, fitted_model
from lossmith.training.merit import Merit, best_first, may_be_best

__all__ = ["Chosen", "Clock", "Judge", "Labels", "choose"]

Judge = Callable[[FittedModel, Any, np.ndarray], Merit]
"""Takes a model, inputs and labels, and returns what these say of the model."""

_PART = 1_500  # training rows that settings are tried on, where there are more than twice as many
_VALIDATION_PART = 2_000
_FINALISTS = 2


@dataclass(frozen=True, eq=False)
class Labels:
    """What is to be learnt."""

    train: np.ndarray
    """The class of each training row of the inputs, in their order."""
    validation: np.ndarray
    num_classes: int

    def part(self, rows: int, step: int = 1) -> "Labels":
        """Return those of the first training rows, and of validation rows ``step`` apart."""
        return Labels(self.train[:rows], self.validation[::step], self.num_classes)


class Clock:
    """Tells when the time of all models together is over."""

    def __init__(self, seconds: float | None) -> None:
        self.end = float("inf") if seconds is None else time.perf_counter() + seconds

    @property
    def is_over(self) -> bool:
        """Whether no further setting should be tried."""
        return time.perf_counter() > self.end


@dataclass(frozen=True, eq=False)
class Chosen:
    """The model of a family that is best on validation rows."""

    model: FittedModel
    setting: dict[str, float]
    in_time: bool = True
    """Whether no setting was left out for want of time."""


def choose(family: Family, labels: Labels, judge: Judge, clock: Clock) -> Chosen:
    """Try the first settings of a family, then those around the best of them; of equally good ones the simplest is chosen.

    Where there are many training rows, settings are tried on a part of them, and the two best are fitted to all.

    Args:
        family: Models and settings.
        labels: Those of the rows of the family's view.
        judge: Tells how good a model is on validation rows.
        clock: Ends the search early; one setting is always tried.

    Returns:
        The best model found, fitted. Where nothing can be chosen, for want of validation rows or of a second class, its
        setting is the one in the middle of the first ones.
    """
    whole = _Trials(family, labels.part(family.most_rows), judge, clock)
    first = family.first_places()
    if not len(labels.validation) or len(np.unique(whole.labels.train)) < 2:
        middle = first[len(first) // 2]
        return Chosen(whole.fit(middle), family.setting(middle))
    many = len(whole.labels.train) > 2 * _PART
    step = -(-len(labels.validation) // _VALIDATION_PART)
    search = _Trials(family, labels.part(_PART, step), judge, clock, step) if many else whole
    search.run(first)
    search.run(family.near(search.best()[0]))
    if many:
        whole.run(search.best(_FINALISTS))
    (best,) = whole.best()
    return Chosen(whole.models[best], family.setting(best), search.in_time and whole.in_time)


@dataclass
class _Trials:
    """Settings of a family that were tried on the same rows."""

    family: Family
    labels: Labels
    judge: Judge
    clock: Clock
    step: int = 1
    """From one validation row that is used to the next."""
    merits: dict[Place, Merit] = field(default_factory=dict)
    models: dict[Place, FittedModel] = field(default_factory=dict)
    in_time: bool = True

    def fit(self, place: Place) -> FittedModel:
        """Return the model at a place."""
        estimator, labels = self.family.make(**self.family.setting(place)), self.labels
        return fitted_model(estimator, self.family.view.train[: len(labels.train)], labels.train, labels.num_classes)

    def run(self, places: Iterable[Place]) -> None:
        """Try the places that have not been tried, while there is time, and keep the models that may be the best of all."""
        for place in places:
            if place in self.merits:
                continue
            if self.merits and self.clock.is_over:
                self.in_time = False
                return
            model = self.fit(place)
            self.merits[place] = self.judge(model, self.family.view.validation[:: self.step], self.labels.validation)
            # Which is the best of them may change when a further one raises the highest score.
            tried = sorted({*self.models, place})
            kept = may_be_best([self.merits[other] for other in tried])
            self.models = {tried[at]: {**self.models, place: model}[tried[at]] for at in kept}

    def best(self, number: int = 1) -> list[Place]:
        """Return the best places, and of equally good ones the simplest."""
        places = sorted(self.merits)
        return [places[at] for at in best_first([self.merits[place] for place in places])[:number]]
