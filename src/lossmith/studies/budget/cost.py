"""What a study costs here: measured on some rows before it is trained, in seconds even where the whole would take hours."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from torch import nn

from lossmith.data import PreparedData
from lossmith.objectives.objective import Objective
from lossmith.studies.design.settings import FEWEST_SEEDS, Settings
from lossmith.studies.design.usual_training import suitable_batch_size
from lossmith.studies.protocol.procedure import race_of
from lossmith.studies.protocol.replicates import at_most_train_rows
from lossmith.studies.references.train_references import train_references
from lossmith.training.engines.engine import Engine
from lossmith.training.job import Build, Job
from lossmith.training.recipe import Run
from lossmith.training.records import rows_of_curves
from lossmith.training.workers import train_all

__all__ = ["LONGEST_SECONDS", "Cost", "measured_cost", "trainings_of"]

LONGEST_SECONDS = 15 * 60.0
"""What a study may take without a word from the user."""

EXTRA = 1.15
"""Edges, second chances, and processes that wait for the last of them, as a factor."""
FIRST_ROWS, GROWTH = 256, 4
"""The measurement begins with so many training rows, and takes more until it lasts long enough to be trusted."""
FIRST_ROWS_OF_ENCODERS = 64
SAMPLE_ROWS = 20_000
MOST_EPOCHS = 64
ENOUGH = 0.5
"""Seconds that runs are to train for, all of them together."""
A_MOMENT = 5.0
"""Seconds: of a study that takes no longer, the first rows tell enough, and measuring more would take longer than training."""
ENOUGH_OF_REFERENCES = 2.0
MOST_REFERENCE_ROWS = 20_000  # that any of the reference models takes in


@dataclass(frozen=True)
class Cost:
    """What was measured before training, in seconds of a processor."""

    step: float
    """Of one run for one batch, however small."""
    row: float
    """Of one run to learn from one row."""
    look: float
    """Of one run to predict the class of one row, as it does for all splits after every epoch."""
    splits: tuple[int, int, int]
    """Rows of training, validation and test, all of them."""
    references: tuple[tuple[int, float], ...]
    """Training rows, and what the references of one noise cost with them, from few rows to many."""
    workers: int

    @property
    def rows(self) -> int:
        """All training rows."""
        return self.splits[0]

    def seconds(self, settings: Settings) -> float:
        """Return the time that a study takes."""
        rows = min(self.rows, settings.train_rows or self.rows)
        epochs = trainings_of(settings) * settings.recipe.epochs
        runs = settings.planned() / (settings.seeds or 1)
        in_the_end = self.look * (min(self.splits[1], rows) + self.splits[2])
        beside = self.of_references(rows) * len(settings.noise) * settings.references
        whole = epochs * self.of_epoch(rows, settings.recipe.batch_size) + runs * in_the_end + beside
        return EXTRA * settings.seeds * whole / self.workers

    def of_epoch(self, rows: int, batch_size: int) -> float:
        """Return what an epoch of one run costs, with the look at all splits after it.

        Args:
            rows: Those that it learns from.
            batch_size: How many at a time.

        Returns:
            Seconds.
        """
        _, validation, test = self.splits
        looked_at = min(validation, rows) + sum(rows_of_curves(rows, test))
        return -(-rows // batch_size) * self.step + rows * self.row + looked_at * self.look

    def of_references(self, rows: int) -> float:
        """Return what the references of one noise cost, in proportion to the rows beyond those that were measured."""
        if not self.references:
            return 0.0
        known = [measured for measured, _ in self.references]
        beyond = max(1.0, min(rows, MOST_REFERENCE_ROWS) / known[-1])
        return beyond * float(np.interp(rows, known, [seconds for _, seconds in self.references]))


def trainings_of(settings: Settings) -> float:
    """Return how many whole trainings a replicate amounts to: trials that are stopped count for what they trained."""
    race, trials, epochs = race_of(settings), settings.trials_of_a_cell, settings.recipe.epochs
    of_cell = float(trials)
    if race is not None:
        on = min(trials, race.kept + 1)
        of_cell = (trials * race.epoch + on * (epochs - race.epoch)) / epochs
    tuned = len(settings.tuned_noise)
    return len(settings.losses) * (tuned * of_cell + len(settings.noise) - tuned)


def measured_cost(
    settings: Settings,
    data: PreparedData,
    objectives: Mapping[str, nn.Module | Objective],
    *,
    build: Build | None = None,
    engine: Engine,
) -> Cost:
    """Train some runs of each loss as the study will, on as few rows as tell how long it takes.

    Args:
        settings: The study, with a model, epochs and a batch size.
        data: Of one replicate.
        objectives: What is trained, by name.
        build: Makes a user's own model in place of the recipe's.
        engine: What trains.

    Returns:
        Times, from which those of the whole follow.
    """
    sample = _Sample(settings, data, objectives, build, engine)
    sample.grow()
    trained = sample.cost()
    references = tuple(_references_by_rows(data, settings)) if settings.references and len(data.validation) else ()
    found = replace(trained, references=references)
    fits = found.seconds(sample.whole) <= (60 * settings.minutes or LONGEST_SECONDS)
    if fits and (sample.rows == len(data.train) or trained.seconds(sample.whole) < A_MOMENT):
        return found  # nothing will be made smaller, and an epoch is what was measured, or takes next to nothing
    step, row, look = sample.parts()
    return replace(found, step=step, row=row, look=look)


@dataclass
class _Sample:
    """Some rows and epochs on which runs of all losses are trained to see how long they take."""

    settings: Settings
    data: PreparedData
    objectives: Mapping[str, nn.Module | Objective]
    build: Build | None
    engine: Engine
    rows: int = 0
    epochs: int = 1
    seconds: float = 0.0
    """Of one run for an epoch."""

    @property
    def trains_an_encoder(self) -> bool:
        """Whether a run takes all processors and so long that one run and a few rows tell enough."""
        return self.data.encoder is not None

    @property
    def whole(self) -> Settings:
        """The study with as many replicates as it has at least."""
        return replace(self.settings, seeds=self.settings.seeds or FEWEST_SEEDS)

    def cost(self) -> Cost:
        """Return what has been measured, as if all of it went to the rows that are learnt from."""
        splits = (len(self.data.train), len(self.data.validation), len(self.data.test))
        return Cost(0.0, self.seconds / self.rows, 0.0, splits, (), 1 if self.trains_an_encoder else self.engine.slots())

    def grow(self) -> None:
        """Train on more and more rows, then for more epochs, until it takes long enough, or the study would take a moment."""
        most = min(len(self.data.train), SAMPLE_ROWS)
        self.rows = min(FIRST_ROWS_OF_ENCODERS if self.trains_an_encoder else FIRST_ROWS, most)
        runs = len(self._runs())
        while True:
            self.seconds = self._seconds_of_epoch(self.settings.recipe.batch_size)
            is_long_enough = runs * self.epochs * self.seconds >= ENOUGH or self.cost().seconds(self.whole) < A_MOMENT
            if is_long_enough or (self.rows == most and self.epochs >= MOST_EPOCHS):
                return
            if self.rows < most:
                self.rows = min(most, GROWTH * self.rows)
            else:
                self.epochs *= GROWTH

    def parts(self) -> tuple[float, float, float]:
        """Return what an epoch costs for each step, each row that is learnt from and each row that is looked at.

        They are told apart by training once more with few rows to look at, and once more in smaller batches. Where that says
        nothing, for the noise of a busy machine or for want of rows, all goes to the rows that are learnt from.
        """
        batch_size = self.settings.recipe.batch_size
        looked_at, fewer = (self._looked_at(few=few) for few in (False, True))
        steps, smallest = -(-self.rows // batch_size), suitable_batch_size(1)
        look = step = 0.0
        if looked_at - fewer >= self.rows / 2:
            look = max(0.0, self.seconds - self._seconds_of_epoch(batch_size, few=True)) / (looked_at - fewer)
        if batch_size > smallest:
            more = -(-self.rows // smallest) - steps
            step = max(0.0, self._seconds_of_epoch(smallest) - self.seconds) / max(1, more)
        look = min(look, self.seconds / (self.rows + looked_at))  # a look costs no more than learning
        step = min(step, (self.seconds - look * looked_at) / steps)
        return step, (self.seconds - look * looked_at - step * steps) / self.rows, look

    def _looked_at(self, *, few: bool) -> int:
        data = self._data(few=few)
        return len(data.validation) + sum(rows_of_curves(len(data.train), len(data.test)))

    def _data(self, *, few: bool) -> PreparedData:
        """Return a part of the data: as many training rows as are tried, and the others in proportion, or few of them."""
        part = at_most_train_rows(self.data, self.rows, 0)
        if not few:
            return part
        least = max(1, self.rows // 10)
        return replace(part, validation=part.validation[:least], test=part.test[:least])

    def _runs(self) -> list[Run]:
        if self.trains_an_encoder:
            return [Run(next(iter(self.objectives)), "", 0, 1e-5)]
        trials = min(3, self.settings.trials_of_a_cell)
        return [Run(loss, "", 0, 1e-3 * (1 + trial)) for loss in self.objectives for trial in range(trials)]

    def _seconds_of_epoch(self, batch_size: int, *, few: bool = False) -> float:
        """Return the mean over the runs of what an epoch takes, shared with the others of their stacks."""
        data = self._data(few=few)
        recipe = replace(
            self.settings.recipe, epochs=self.epochs, schedule="constant", batch_size=batch_size, keep=(), patience=0
        )
        labels = (data.labels[data.train], data.labels[data.validation])
        jobs = [Job(run, _unscheduled(self.objectives[run.loss]), *labels) for run in self._runs()]
        trained = train_all(jobs, data, recipe, build=self.build, engine=self.engine, alone=self.trains_an_encoder)
        return sum(one.seconds for one in trained) / len(jobs) / self.epochs


def _references_by_rows(data: PreparedData, settings: Settings) -> Iterator[tuple[int, float]]:
    """Yield what references cost with more and more training rows, until they are all or it takes long enough."""
    most, rows = min(len(data.train), MOST_REFERENCE_ROWS), min(len(data.train), 2 * FIRST_ROWS)
    while True:
        part = at_most_train_rows(data, rows, 0)
        start = time.perf_counter()
        train_references(part, part.labels[part.train], part.labels[part.validation], metric=settings.metric, seed=0)
        seconds = time.perf_counter() - start
        yield rows, seconds
        if rows >= most or seconds > ENOUGH_OF_REFERENCES:
            return
        rows = min(most, GROWTH * rows)


def _unscheduled(objective: nn.Module | Objective) -> nn.Module | Objective:
    """A schedule of a whole training does not fit into a few epochs of it."""
    return replace(objective, schedules={}) if isinstance(objective, Objective) else objective
