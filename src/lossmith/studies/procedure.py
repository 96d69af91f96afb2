"""One replicate, from its split to the runs that count: the whole procedure, again from the beginning for every seed.

Trials race; a best rate at the edge of those tried gets further ones beyond it; a loss that looks untrained gets a second
chance; then one trial of each cell counts. Every step asks the file what is missing, so that a replicate that was stopped goes
on where it was.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from lossmith.data import PreparedData, class_weights, make_noise, realised
from lossmith.objectives.named_objectives import make_objective
from lossmith.objectives.objective import Objective
from lossmith.statistics.untrained import untrained_reason
from lossmith.statistics.wording import is_share
from lossmith.studies.measures import measures_of, score_of, validation_measures
from lossmith.studies.progress import ProgressDisplay
from lossmith.studies.references.train_references import LARGEST, LINEAR, Reference, train_references
from lossmith.studies.settings import CLEAN, Settings
from lossmith.studies.storage.store import Store
from lossmith.studies.trials import expression_of, seed_of_draws, trial_runs
from lossmith.studies.tuning import Stored, best_trial, edge_runs, second_chance_runs
from lossmith.theory.fitting import fitted_to_classes
from lossmith.training.crew import Task, in_processes, processors
from lossmith.training.job import Build, Job
from lossmith.training.one_by_one import forget_waiting
from lossmith.training.race import Race
from lossmith.training.recipe import Cell, Run, Trained
from lossmith.training.workers import Progress, StackTask, stack_tasks

__all__ = ["Procedure", "race_of"]


@dataclass(frozen=True)
class _References:
    """Classical models under one noise, for a worker process."""

    noise: str
    seed: int
    train: Callable[[], list[Reference]]

    def __call__(self, _: object) -> tuple[str, list[Reference]]:
        return self.noise, self.train()


def race_of(settings: Settings) -> Race | None:
    """Return how trials compete: after a third of the epochs the better third goes on; None where there are few of either."""
    epochs, trials = settings.recipe.epochs, settings.trials_of_a_cell
    if epochs < 3 or trials < 4 or settings.gives_rates:
        return None
    return Race(-(-epochs // 3), -(-trials // 3), partial(score_of, settings.metric))


@dataclass
class Procedure:
    """A replicate in the making."""

    settings: Settings
    data: PreparedData
    seed: int
    store: Store
    display: ProgressDisplay
    own: Mapping[str, nn.Module | Objective]
    """Losses that the user brought, by name."""
    build: Build | None = None
    workers: int | None = None

    def run(self) -> None:
        """Do what is missing, and store which runs count."""
        cells = [cell for cell in self.settings.cells if cell.seed == self.seed]
        if all(cell in self.store.choices() for cell in cells):
            return
        self._store_split()
        tuned = [cell for cell in cells if cell.noise in self.settings.tuned_noise]
        self._train([run for cell in tuned for run in self._trials(cell)], race_of(self.settings), self._missing_references())
        self._train_edges(tuned)
        self._train([self._as_on_clean_rows(cell) for cell in cells if cell not in set(tuned)])
        self._give_second_chances(cells)
        trials = self._trials_by_cell()
        best = {cell: best_trial(trials[cell]) for cell in cells}
        self.store.choose([(cell, one["id"], self._untrained(one)) for cell, one in best.items()])

    def _trials(self, cell: Cell) -> list[Run]:
        return trial_runs(self.settings, cell, own=cell.loss in self.own)

    def _train_edges(self, cells: Sequence[Cell]) -> None:
        """Try rates beyond the best where that is at the edge of those tried, until it no longer is or enough were tried."""
        while True:
            trials = self._trials_by_cell()
            further = [run for cell in cells for run in edge_runs(self.settings, cell, trials[cell])]
            if not self._train(further):
                return

    def _as_on_clean_rows(self, cell: Cell) -> Run:
        """Return the run of a cell whose setting was chosen on clean labels."""
        best = best_trial(self._trials_by_cell()[cell._replace(noise=CLEAN)])
        return Run(*cell, best["learning_rate"], best["weight_decay"], best["parameters"])

    def _give_second_chances(self, cells: Sequence[Cell]) -> None:
        if not self.settings.searched:
            return
        trials = self._trials_by_cell()
        best = {cell: best_trial([trial for trial in trials[cell] if not trial["epochs"]]) for cell in cells}
        again = [cell for cell in cells if self._is_worth_another(best[cell])]
        runs = [run for cell in again for run in second_chance_runs(self.settings, cell, best[cell])]
        self._train(runs, epochs=max((run.epochs for run in runs), default=0))

    def _train(self, runs: Iterable[Run], race: Race | None = None, others: Sequence[Task] = (), *, epochs: int = 0) -> bool:
        """Train the runs that the file lacks, beside other tasks, and return whether there were any."""
        wanted, finished = list(runs), self.store.finished()
        missing = [run for run in wanted if run not in finished]
        if not missing and not others:
            return False
        recipe = replace(self.settings.recipe, epochs=epochs) if epochs else self.settings.recipe
        jobs = [self._job(run) for run in wanted]
        tasks: list[StackTask] = []
        if missing:
            waiting = self._waiting
            tasks = stack_tasks(jobs, self.data, recipe, build=self.build, race=race, finished=finished, waiting=waiting)
        # A network that fills the memory trains in one process, with all processors.
        crew = (self.workers, 1) if self._waiting is None else (1, processors())
        for found in in_processes([*others, *tasks], self._say, workers=crew[0], threads=crew[1]):
            if isinstance(found, tuple):
                self.store.add_references(found[0], self.seed, found[1])
            else:
                self._keep(found, beyond=race is None and self.settings.searched)
        return True

    @property
    def _waiting(self) -> Path | None:
        """Where runs wait that are too large to train together: those of an encoder."""
        return None if self.data.encoder is None else self.store.file.parent / "waiting"

    def _say(self, progress: Progress) -> None:
        self.display.advance(progress.runs * (progress.epoch > 0) / self.settings.recipe.epochs)

    def _keep(self, stack: Sequence[Trained], *, beyond: bool) -> None:
        """Store a stack, with the predictions of those that may count: the best of each cell."""
        measured = []
        cells: dict[Cell, list[Stored]] = {}
        for trained in stack:
            labels = self._labels[trained.run.noise][self.data.validation].numpy()
            of_validation = validation_measures(self.settings.metric, trained, labels)
            if beyond:  # not one of the trials that were drawn
                trained.stands_for = 0.0
            measured.append((trained, {**measures_of(trained, self._test_labels), **of_validation}))
            flags = {"run": trained.run, "stopped": trained.stopped, "diverged": trained.diverged}
            cells.setdefault(trained.run.cell, []).append({**trained.run._asdict(), **of_validation, **flags})
        self.store.add(measured, keep={best_trial(trials)["run"] for trials in cells.values()})
        if self._waiting is not None:
            forget_waiting(self._waiting)
        self.display.store(len(measured))

    def _job(self, run: Run) -> Job:
        labels = self._labels[run.noise]
        draws = seed_of_draws(self.settings, run.loss, run.seed)
        return Job(run, self._objective(run), labels[self.data.train], labels[self.data.validation], draws)

    def _objective(self, run: Run) -> nn.Module | Objective:
        if run.loss in self.own:
            return self.own[run.loss]
        expression = fitted_to_classes(expression_of(run.loss, run.parameters), self.data.num_classes)
        if self.settings.class_weight == "none":
            return make_objective(expression)
        return make_objective(expression, weight=class_weights(self._labels[run.noise][self.data.train], self.data.num_classes))

    @cached_property
    def _labels(self) -> dict[str, Tensor]:
        """The labels of all rows under each noise."""
        noises = dict.fromkeys((*self.settings.noise, *self.settings.tuned_noise))
        return {noise: self._noisy_labels(noise) for noise in noises}

    def _noisy_labels(self, noise: str) -> Tensor:
        labels = self.data.labels.clone()
        for rows in [self.data.train] if self.settings.clean_validation else [self.data.train, self.data.validation]:
            labels[rows] = make_noise(noise).corrupt(self.data, rows, self.seed)
        return labels

    @cached_property
    def _truth(self) -> Tensor:
        return self.data.labels if self.data.true_labels is None else self.data.true_labels

    @cached_property
    def _test_labels(self) -> np.ndarray:
        return self._truth[self.data.test].numpy()

    def _store_split(self) -> None:
        """Store what the replicate drew: its test rows, and what each noise did to the labels."""
        self.store.add_replicate(self.seed, len(self.data.validation), self._test_labels, self.data.test.numpy())
        for noise in self.settings.noise:
            labels = self._labels[noise]
            found = realised(self._truth[self.data.train], labels[self.data.train], self.data.num_classes)
            self.store.add_noise(noise, self.seed, found.rate, found.matrix, labels.numpy())

    def _missing_references(self) -> list[_References]:
        if not self.settings.references:
            return []
        there = {(row["noise"], row["seed"]) for row in self.store.references()}
        return [self._reference_task(noise) for noise in self.settings.noise if (noise, self.seed) not in there]

    def _reference_task(self, noise: str) -> _References:
        labels = self._labels[noise]
        given = (self.data, labels[self.data.train], labels[self.data.validation])
        return _References(noise, self.seed, partial(train_references, *given, metric=self.settings.metric, seed=self.seed))

    def _trials_by_cell(self) -> dict[Cell, list[Stored]]:
        cells: dict[Cell, list[Stored]] = {}
        for run in self.store.runs(self.seed):
            cells.setdefault(Cell(run["loss"], run["noise"], run["seed"]), []).append(run)
        return cells

    def _untrained(self, run: Stored) -> str:
        """Return why a run looks untrained, or nothing."""
        if run["diverged"]:
            return "diverged"
        labels = self._labels[run["noise"]][self.data.validation].numpy()
        if not len(labels):
            return ""
        by = self._judged_by
        linear, own = self._of_linear_model(run["noise"]), run[by]
        return untrained_reason(
            run["commonest_predicted"],
            own,
            self._of_largest_class(run["noise"]),
            self.store.curve(run["id"], "validation_accuracy"),
            len(labels),
            behind=linear - own,
            behind_error=math.sqrt((linear * (1 - linear) + own * (1 - own)) / len(labels)),
        )

    @property
    def _judged_by(self) -> str:
        """What tells on validation rows whether a run has learnt: the study's metric where it is a share, else accuracy."""
        return "validation_score" if is_share(self.settings.metric) else "validation_accuracy"

    def _of_linear_model(self, noise: str) -> float:
        """Return how good logistic regression is on the validation rows; NaN where there are no references."""
        return self._of_reference(LINEAR, noise)

    def _of_largest_class(self, noise: str) -> float:
        """Return the same of always predicting the largest class of the training rows; without references, its share."""
        found = self._of_reference(LARGEST, noise)
        labels = self._labels[noise][self.data.validation].numpy()
        return found if math.isfinite(found) else _largest_share(labels)

    def _of_reference(self, name: str, noise: str) -> float:
        own = (row for row in self.store.references() if row["seed"] == self.seed and row["noise"] == noise)
        return next((row[self._judged_by] for row in own if row["name"] == name), math.nan)

    def _is_worth_another(self, run: Stored) -> bool:
        """Return whether a run looks untrained although its data can be learnt."""
        noise = run["noise"]
        return bool(self._untrained(run)) and not self._of_linear_model(noise) <= self._of_largest_class(noise)


def _largest_share(labels: np.ndarray) -> float:
    return float(np.bincount(labels).max() / len(labels)) if len(labels) else math.nan
