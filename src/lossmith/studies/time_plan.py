"""What a study costs, and how it is made to fit into the time there is.

Without a word from the user five replicates fit into fifteen minutes, and quick studies get more of them. What does not fit is
made smaller in an order that treats all losses alike: first fewer training rows, then fewer trials, then fewer replicates, never
below five.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from torch import nn

from lossmith.data import PreparedData
from lossmith.objectives.objective import Objective
from lossmith.statistics.wording import counted
from lossmith.studies.procedure import race_of
from lossmith.studies.progress import duration
from lossmith.studies.references.train_references import train_references
from lossmith.studies.settings import FEWEST_SEEDS, MOST_SEEDS, USUAL_TRIALS, Settings
from lossmith.studies.usual_training import suitable_epochs
from lossmith.training.crew import processors
from lossmith.training.job import Build, Job
from lossmith.training.recipe import Run
from lossmith.training.workers import train_all

__all__ = ["Cost", "TimePlan", "measured_cost", "plan_in_time", "trainings_of"]

USUAL_SECONDS = 80.0
"""What quick studies use for further replicates."""
LONGEST_SECONDS = 15 * 60.0
FEWEST_TRIALS = 4
FEWEST_ROWS = 500
SAMPLE_ROWS = 20_000  # that are trained on to measure the cost, at most
EXTRA = 1.15
"""Edges, second chances, and processes that wait for the last of them, as a factor."""


@dataclass(frozen=True)
class Cost:
    """What was measured before training."""

    epoch: float
    """Seconds of a processor for an epoch of one run on all training rows."""
    rows: int
    """Those training rows."""
    references: float
    """Seconds of a processor for the references of one noise."""
    workers: int

    def seconds(self, settings: Settings) -> float:
        """Return the time that a study takes."""
        rows = min(self.rows, settings.train_rows or self.rows)
        epochs = trainings_of(settings) * settings.recipe.epochs
        beside = self.references * len(settings.noise) * settings.references
        return EXTRA * settings.seeds * (epochs * self.epoch * rows / self.rows + beside) / self.workers


@dataclass(frozen=True)
class TimePlan:
    """Settings that fit into the time there is."""

    settings: Settings
    seconds: float
    shrunk: str = ""
    """What was made smaller, and what the whole would cost; empty where nothing was."""


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
    workers: int | None = None,
) -> Cost:
    """Train an epoch of some runs of each loss as the study will, on a part of the rows where there are many.

    Args:
        settings: The study, with a model and epochs.
        data: Of one replicate.
        objectives: What is trained, by name.
        build: Makes a user's own model in place of the recipe's.
        workers: How many processes train.

    Returns:
        Times, for the whole of the rows.
    """
    count = workers or processors()
    step = max(1, len(data.train) // SAMPLE_ROWS)
    part = replace(data, **{split: getattr(data, split)[::step] for split in ("train", "validation", "test")})
    recipe = replace(settings.recipe, epochs=1, schedule="constant", keep=(), patience=0)
    labels = (part.labels[part.train], part.labels[part.validation])
    trials = min(3, settings.trials_of_a_cell)
    runs = [Run(loss, "", 0, 1e-3 * (1 + trial)) for loss in objectives for trial in range(trials)]
    jobs = [Job(run, _unscheduled(objectives[run.loss]), *labels) for run in runs]
    seconds = [trained.seconds for trained in train_all(jobs, part, recipe, build=build, workers=count)]
    start = time.perf_counter()
    if settings.references and len(data.validation):
        train_references(data, data.labels[data.train], data.labels[data.validation], metric=settings.metric, seed=0)
    return Cost(step * fmean(seconds), len(data.train), time.perf_counter() - start, count)


def _unscheduled(objective: nn.Module | Objective) -> nn.Module | Objective:
    """A schedule of a whole training does not fit into one epoch of it."""
    return replace(objective, schedules={}) if isinstance(objective, Objective) else objective


def plan_in_time(settings: Settings, cost: Cost, *, epochs_given: bool) -> TimePlan:
    """Return settings that fit: as many replicates as there is time for, and less of everything else only where there is not.

    What the user gave stays as it is.

    Args:
        settings: Where 0 stands for what is to be found.
        cost: What was measured.
        epochs_given: Whether the epochs are the user's; otherwise fewer rows are trained for more of them.

    Returns:
        Settings in which nothing is open any more.

    Raises:
        ValueError: If ``minutes`` are given that no plan fits into.
    """
    open_ = replace(settings, seeds=settings.seeds or FEWEST_SEEDS, trials=settings.trials or USUAL_TRIALS)
    longest = 60 * settings.minutes or LONGEST_SECONDS
    plan = open_
    for smaller in _smaller_plans(settings, open_, cost, epochs_given):
        if cost.seconds(plan) <= longest:
            break
        plan = smaller
    if not settings.seeds:
        time_there = 60 * settings.minutes or USUAL_SECONDS
        fitting = int(time_there / (cost.seconds(plan) / plan.seeds))
        plan = replace(plan, seeds=min(max(fitting, FEWEST_SEEDS), MOST_SEEDS))
    return TimePlan(plan, cost.seconds(plan), _what_was_shrunk(open_, plan, cost))


def _smaller_plans(asked: Settings, plan: Settings, cost: Cost, epochs_given: bool) -> list[Settings]:
    """Return plans that are smaller one after another, each by less than a half."""
    plans = [plan]
    if not asked.train_rows:
        steps = max(0, math.ceil(math.log(cost.rows / FEWEST_ROWS, 1.5))) if cost.rows > FEWEST_ROWS else 0
        for step in range(1, steps + 1):
            rows = max(FEWEST_ROWS, round(cost.rows / 1.5**step))
            epochs = plan.recipe.epochs if epochs_given else suitable_epochs(rows, plan.recipe.model)
            plans.append(replace(plan, train_rows=rows, recipe=replace(plan.recipe, epochs=epochs)))
    if not asked.trials and not asked.rates:
        plans += [replace(plans[-1], trials=trials) for trials in (6, FEWEST_TRIALS)]
    return plans[1:]


def _what_was_shrunk(whole: Settings, plan: Settings, cost: Cost) -> str:
    changes = []
    if plan.train_rows != whole.train_rows:
        changes.append(f"{plan.train_rows} of {counted(cost.rows, 'training row')} in each replicate")
    if plan.trials != whole.trials:
        changes.append(f"{plan.trials} of {whole.trials} trials")
    if not changes:
        return ""
    return f"to fit into the time: {', '.join(changes)}; the whole would take about {duration(cost.seconds(whole))}"
