"""A replicate that a function of the user's own trains: one trial a call."""

import math
import shutil
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from lossmith.objectives.named_objectives import make_objective
from lossmith.objectives.objective import Objective
from lossmith.statistics.untrained import FAILED, untrained_reason
from lossmith.studies.design.settings import Settings
from lossmith.studies.design.trials import loss_expression, settings_of_trial
from lossmith.studies.measures import MEASURES, measures_of_curves, measures_of_predictions, validation_measures
from lossmith.studies.protocol.tuning import Stored
from lossmith.studies.storage.store import Replicate, Store
from lossmith.theory.fitting import fitted_to_classes
from lossmith.training.engines.engine import Engine, Shared
from lossmith.training.engines.local import LocalEngine
from lossmith.training.merit import Merit
from lossmith.training.own.outcome import OwnTrained
from lossmith.training.own.trial_task import TrainFunction, TrialTask, folder_of, last_accuracy
from lossmith.training.race import Race
from lossmith.training.recipe import Run, Trained
from lossmith.training.workers import OnProgress

__all__ = ["OwnReplicate", "failure_of"]

FAILURES = "failures"
"""Under which name the file of a study has the reason why a trial gave nothing, with the trial behind it."""
_NOTHING_TO_CHOOSE_BY = (
    "train gave nothing to choose settings by: return validation_{metric}, or validation_logits with validation_labels,"
    " or report the accuracy on validation rows."
)
USUAL_SHARE = 0.25
"""Test rows for each row that is learnt from, where the function does not say: those of a split into five parts."""


def _failure_name(run: Run) -> str:
    """Return under which name the reason of a trial is stored; a name for each, as ten thousand trials may fail."""
    return f"{FAILURES} {tuple(run)!r}"


def failure_of(run: Run, store: Store) -> str:
    """Return why a trial failed, or nothing.

    Args:
        run: The trial.
        store: The study's file; one of an earlier version has all reasons under one name.

    Returns:
        A reason in one line.
    """
    return str(store.meta(_failure_name(run)) or (store.meta(FAILURES) or {}).get(repr(tuple(run)), ""))


@dataclass
class OwnReplicate:
    """The trials of a replicate, and what has been learnt of its test rows from those that have ended."""

    settings: Settings
    seed: int
    function: Shared[TrainFunction]
    folder: Path
    """Of all trials of the study."""
    store: Store
    own: Mapping[str, nn.Module | Objective] = field(default_factory=dict)
    engine: Engine = field(default_factory=LocalEngine)
    _noises: set[str] = field(default_factory=set)
    """Those whose doings are stored."""

    def begin(self, store: Store) -> None:
        """Wait for the first trial: only the function knows the rows."""

    def train(
        self, runs: Sequence[Run], race: Race | None, *, epochs: int, finished: Collection[Run], store: Store, say: OnProgress
    ) -> Generator[list[Trained], None, None]:
        """Train the trials that are not finished, one a task; in a race each until it is judged, then the better ones on.

        Args:
            runs: All that belong together, those that are finished among them.
            race: Which trials of a cell go on to the end.
            epochs: Where they are others than those of the study; else 0.
            finished: Runs to leave out.
            store: The study's file.
            say: Called with the progress of every trial.

        Yields:
            What each trial gave.
        """
        standing = {} if race is None else (yield from self._raced(runs, race, finished, say))
        going = [run for run in runs if run not in finished and standing.get(run, 1.0)]
        for found in self._results([self._task(number, run, epochs) for number, run in enumerate(going)], say):
            found.stands_for = standing.get(found.run, 1.0)
            yield [found]

    def _raced(
        self, runs: Sequence[Run], race: Race, finished: Collection[Run], say: OnProgress
    ) -> Generator[list[Trained], None, dict[Run, float]]:
        """Train every trial until it is judged, yield those that end there, and return what each of the others stands for."""
        tasks = [self._task(number, run, 0, race.epoch) for number, run in enumerate(runs)]
        judged = list(self._results([task for task in tasks if task.run not in finished or task.was_judged], say))
        paused = {found.run: found for found in judged if found.stopped}
        raced = [run for run in runs if run in paused]
        merits = [Merit(last_accuracy(paused[run].curves)) for run in raced]
        standing = dict(zip(raced, race.stands_for(raced, merits), strict=True))
        for found in judged:
            if found.run not in finished and not standing.get(found.run):
                found.stands_for = 1.0 - found.stopped
                yield [found]
        # What came to its end before it could be judged is not trained again.
        return standing | {found.run: 0.0 for found in judged if not found.stopped}

    def _results(self, tasks: Sequence[TrialTask], say: OnProgress) -> Generator[OwnTrained, None, None]:
        for found in self.engine.run(tasks, say):
            yield from found

    def _task(self, number: int, run: Run, epochs: int, stop_after: int | None = None) -> TrialTask:
        whole = epochs or self.settings.recipe.epochs
        given = settings_of_trial(self.settings, run) | ({"epochs": whole} if whole else {})
        folder = folder_of(self.folder, run)
        processes = self.settings.processes
        return TrialTask(number, run, self.function, self._objective(run), given, folder, whole, stop_after, processes)

    def _objective(self, run: Run) -> nn.Module | Objective:
        if run.loss in self.own:
            return self.own[run.loss]
        expression = loss_expression(self.settings, run)
        classes = self.settings.num_classes
        return make_objective(fitted_to_classes(expression, classes) if classes else expression)

    def measures(self, trained: Trained) -> dict[str, float]:
        """Return what is measured of a trial, and store the labels and the noise that came with it.

        Args:
            trained: What it gave.

        Returns:
            Numbers by name; NaN for what nobody knows.
        """
        assert isinstance(trained, OwnTrained)
        of_validation = self._of_validation(trained)
        if self.settings.searched and not (
            trained.failure or trained.stopped or math.isfinite(of_validation["validation_score"])
        ):
            trained.failure, trained.diverged = _NOTHING_TO_CHOOSE_BY.format(metric=self.settings.metric), True
        self._store_rows(trained)
        if trained.failure:
            self._store_failure(trained)
        numbers = dict.fromkeys(MEASURES, math.nan) | {"commonest_predicted": math.nan, "memory": trained.memory}
        numbers |= measures_of_curves(trained)
        if trained.test_labels is not None and not trained.failure:
            numbers |= measures_of_predictions(trained, trained.test_labels)
        numbers |= {name: value for name, value in trained.numbers.items() if name in MEASURES}
        return numbers | of_validation

    def stored(self, store: Store) -> None:
        """Keep the folders of trials: which of them count is not known yet."""

    def _of_validation(self, trained: OwnTrained) -> dict[str, float]:
        """Return what trials are chosen by: the metric on validation rows, given by predictions, by name, or as last reported."""
        labels, metric = trained.validation_labels, self.settings.metric
        reported = last_accuracy(trained.curves)
        accuracy = trained.numbers.get("validation_accuracy", reported)
        if labels is not None:
            measured = validation_measures(metric, trained, labels)
            rows = {"validation_rows": float(len(labels)), "largest_share": float(np.bincount(labels).max() / len(labels))}
            right = float((trained.validation_probabilities.argmax(1) == labels).mean())
            return {**measured, **rows, "validation_accuracy": right}
        score = trained.numbers.get(f"validation_{metric}", accuracy if metric == "accuracy" else math.nan)
        signed = -score if metric in ("nll", "brier") else score
        return {"validation_score": signed, "validation_accuracy": accuracy}  # and of their likelihood nobody knows

    def _store_rows(self, trained: OwnTrained) -> None:
        """Store the test rows of the replicate, which all its trials must share, and what the noise did."""
        if trained.failure or trained.stopped:
            return
        known = self._known_rows
        labels = np.empty(0, np.int64) if trained.test_labels is None else trained.test_labels
        if known is not None and not np.array_equal(known.labels, labels):
            trained.failure = "train must return the same labels of test rows for every trial of a replicate, got others."
            trained.diverged = True
            return
        if known is None:
            rows = 0 if trained.validation_labels is None else len(trained.validation_labels)
            numbers = np.arange(len(labels)) if trained.test_rows is None else trained.test_rows
            self.store.add_replicate(self.seed, rows, labels, numbers)
            self._store_about(trained, labels, rows)
            del self._known_rows
        self._store_noise(trained)

    @cached_property
    def _known_rows(self) -> Replicate | None:
        return self.store.replicate(self.seed)

    def _store_noise(self, trained: OwnTrained) -> None:
        made = trained.noise_made
        if trained.run.noise in self._noises:
            return
        self._noises.add(trained.run.noise)
        if made is not None and trained.noisy_labels is not None:
            self.store.add_noise(trained.run.noise, self.seed, made.rate, made.matrix, trained.noisy_labels)
        elif made is None:
            self.store.add_noise(trained.run.noise, self.seed, 0.0, np.eye(max(1, self._classes())), np.empty(0))

    def _store_about(self, trained: OwnTrained, labels: np.ndarray, validation: int) -> None:
        """Store what the study did not know of its rows before its first result, and what replicates have in common."""
        about: dict[str, Any] = self.store.meta("data")
        if not about["classes"] and len(labels):
            names = trained.classes or tuple(map(str, range(trained.test_probabilities.shape[1])))
            rows = {"train": trained.train_rows, "validation": validation, "test": len(labels)}
            self.store.set_meta("data", {**about, "classes": list(names), "rows": rows})
        first = self._another()
        if first is not None and self.store.meta("overlap") is None:
            numbers = np.arange(len(labels)) if trained.test_rows is None else trained.test_rows
            same = len(labels) > 0 and np.array_equal(first.labels, labels) and np.array_equal(first.test, numbers)
            ratio = len(labels) / trained.train_rows if trained.train_rows else USUAL_SHARE
            self.store.set_meta("overlap", [0.0 if same else ratio, bool(same)])

    def _another(self) -> Replicate | None:
        """Return the first other replicate whose rows are known; several may be trained at a time."""
        others = (self.store.replicate(seed) for seed in range(self.settings.seeds) if seed != self.seed)
        return next((one for one in others if one is not None), None)

    def _classes(self) -> int:
        return len(self.store.meta("data")["classes"])

    def _store_failure(self, trained: OwnTrained) -> None:
        self.store.set_meta(_failure_name(trained.run), trained.failure)

    def untrained(self, run: Stored, store: Store) -> str:
        """Return why a trial failed or looks untrained, or nothing.

        Args:
            run: As the file has it.
            store: The study's file.

        Returns:
            A reason in words.
        """
        reason = failure_of(Run(*(run[name] for name in Run._fields)), store) if run["diverged"] else ""
        if reason:
            return f"{FAILED}{reason}"
        if run["diverged"]:
            return "diverged"
        if not run.get("validation_rows"):
            return ""
        curve = store.curve(run["id"], "validation_accuracy")
        rows = int(run["validation_rows"])
        return untrained_reason(run["commonest_predicted"], run["validation_accuracy"], run["largest_share"], curve, rows)

    def can_be_learnt(self, noise: str, store: Store) -> bool:
        """Return True: nothing is known that would tell."""
        return True

    def end(self, store: Store) -> None:
        """Delete the folders of trials that do not count; those that do may hold the trained model."""
        counting = {run for cell, (run, _) in store.choices().items() if cell.seed == self.seed}
        for row in store.run_rows(f"seed = {self.seed}"):
            folder = folder_of(self.folder, Run(*(row[name] for name in Run._fields)))
            folder.with_suffix(".json").unlink(missing_ok=True)
            if row["id"] not in counting:
                shutil.rmtree(folder, ignore_errors=True)
