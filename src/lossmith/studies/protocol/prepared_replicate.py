"""A replicate that the built-in trainer trains: networks by name on data that was prepared, in stacks."""

import math
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from lossmith.data import PreparedData, class_counts, make_noise, realised
from lossmith.data.class_balance import weights_by
from lossmith.objectives.named_objectives import make_objective
from lossmith.objectives.objective import Objective, filled_in
from lossmith.statistics.untrained import untrained_reason
from lossmith.statistics.wording import is_share
from lossmith.studies.design.settings import Settings
from lossmith.studies.design.trials import expression_of, seed_of_draws
from lossmith.studies.labels.estimated_matrix import estimated_matrix
from lossmith.studies.measures import measures_of, score_of, validation_measures
from lossmith.studies.protocol.facts import Facts
from lossmith.studies.protocol.tuning import Stored
from lossmith.studies.references.train_references import LARGEST, LINEAR, Reference, train_references
from lossmith.studies.storage.store import Store
from lossmith.theory.fitting import fitted_to_classes
from lossmith.training.engines.engine import Engine, Shared
from lossmith.training.engines.local import LocalEngine
from lossmith.training.job import Build, Job
from lossmith.training.one_by_one import forget_waiting
from lossmith.training.race import Race
from lossmith.training.recipe import Run, Trained
from lossmith.training.workers import OnProgress, stack_tasks

__all__ = ["PreparedReplicate"]


@dataclass(frozen=True)
class _References:
    """Classical models under one noise, for a worker process."""

    noise: str
    data: Shared[PreparedData]
    train_labels: Tensor
    validation_labels: Tensor
    metric: str
    seed: int

    def __call__(self, *_: object) -> tuple[str, list[Reference]]:
        labels = (self.train_labels, self.validation_labels)
        return self.noise, train_references(self.data.get(), *labels, metric=self.metric, seed=self.seed)


@dataclass
class PreparedReplicate:
    """The data of a replicate, with its wrong labels, and what is trained on it."""

    settings: Settings
    data: PreparedData
    seed: int
    own: Mapping[str, nn.Module | Objective]
    """Losses that the user brought, by name."""
    build: Build | None = None
    engine: Engine = field(default_factory=LocalEngine)
    _matrices: dict[str, np.ndarray] = field(default_factory=dict)

    def begin(self, store: Store) -> None:
        """Store what the replicate drew: its test rows, and what each noise did to the labels."""
        store.add_replicate(self.seed, len(self.data.validation), self._test_labels, self.data.test.numpy())
        for noise in self.settings.noise:
            labels = self._labels[noise]
            found = realised(self._truth[self.data.train], labels[self.data.train], self.data.num_classes)
            store.add_noise(noise, self.seed, found.rate, found.matrix, labels.numpy())

    def train(
        self, runs: Sequence[Run], race: Race | None, *, epochs: int, finished: Collection[Run], store: Store, say: OnProgress
    ) -> Generator[list[Trained], None, None]:
        """Train runs in stacks, beside the classical models that are missing.

        Args:
            runs: All that belong together, those that are finished among them.
            race: Which trials of a cell go on to the end.
            epochs: Where they are others than those of the recipe; else 0.
            finished: Runs to leave out.
            store: The study's file, which gets what classical models find.
            say: Called after each epoch of a stack.

        Yields:
            What each stack gave.
        """
        recipe = replace(self.settings.recipe, epochs=epochs) if epochs else self.settings.recipe
        jobs = [self._job(run) for run in runs]
        waiting = self._waiting(store)
        tasks = stack_tasks(
            jobs, self.data, recipe, build=self.build, race=race, finished=finished, waiting=waiting, shared=self._shared
        )
        # A network that fills the memory trains in one process, with all processors.
        for found in self.engine.run([*self._missing_references(store), *tasks], say, alone=waiting is not None):
            if isinstance(found, tuple):
                store.add_references(found[0], self.seed, found[1])
            else:
                yield found

    def _waiting(self, store: Store) -> Path | None:
        """Return where runs wait that are too large to train together: those of an encoder."""
        return None if self.data.encoder is None else store.file.parent / "waiting"

    def stored(self, store: Store) -> None:
        """Let go of runs that waited for the others of their race."""
        if (waiting := self._waiting(store)) is not None:
            forget_waiting(waiting)

    def measures(self, trained: Trained) -> dict[str, float]:
        """Return what is measured of a run, on its test rows and on its validation rows.

        Args:
            trained: What it gave.

        Returns:
            Numbers by name.
        """
        labels = self._labels[trained.run.noise][self.data.validation].numpy()
        of_validation = validation_measures(self.settings.metric, trained, labels)
        return {**measures_of(trained, self._test_labels), **of_validation}

    def _job(self, run: Run) -> Job:
        labels = self._labels[run.noise]
        draws = seed_of_draws(self.settings, run.loss, run.seed)
        return Job(run, self._objective(run), labels[self.data.train], labels[self.data.validation], draws)

    def _objective(self, run: Run) -> nn.Module | Objective:
        labels, classes = self._labels[run.noise][self.data.train], self.data.num_classes
        facts = Facts({"counts": lambda: class_counts(labels, classes), "matrix": lambda: self._matrix(run.noise)})
        if run.loss in self.own:
            return filled_in(self.own[run.loss], facts)
        expression = fitted_to_classes(expression_of(run.loss, run.parameters), classes)
        weights = weights_by(self.settings.class_weight, labels, classes)
        made = make_objective(expression) if weights is None else make_objective(expression, weight=weights)
        return filled_in(made, facts)

    def _matrix(self, noise: str) -> np.ndarray:
        """Return what is taken for what among the training rows, as far as their labels under this noise tell."""
        if noise not in self._matrices:
            labels = self._labels[noise][self.data.train]
            self._matrices[noise] = estimated_matrix(self.data, labels, self.settings.recipe, self.seed)
        return self._matrices[noise]

    @cached_property
    def _shared(self) -> Shared[PreparedData]:
        """The data as workers get it."""
        return self.engine.share(self.data)

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

    def _missing_references(self, store: Store) -> list[_References]:
        if not self.settings.references:
            return []
        there = {(row["noise"], row["seed"]) for row in store.references()}
        return [self._reference_task(noise) for noise in self.settings.noise if (noise, self.seed) not in there]

    def _reference_task(self, noise: str) -> _References:
        labels = self._labels[noise]
        train, validation = labels[self.data.train], labels[self.data.validation]
        return _References(noise, self._shared, train, validation, self.settings.metric, self.seed)

    def untrained(self, run: Stored, store: Store) -> str:
        """Return why a run looks untrained, or nothing.

        Args:
            run: As the file has it.
            store: The study's file.

        Returns:
            A reason in words.
        """
        if run["diverged"]:
            return "diverged"
        labels = self._labels[run["noise"]][self.data.validation].numpy()
        if not len(labels):
            return ""
        linear, own = self._of_reference(LINEAR, run["noise"], store), run[self._judged_by]
        return untrained_reason(
            run["commonest_predicted"],
            own,
            self._of_largest_class(run["noise"], store),
            store.curve(run["id"], "validation_accuracy"),
            len(labels),
            behind=linear - own,
            behind_error=math.sqrt((linear * (1 - linear) + own * (1 - own)) / len(labels)),
        )

    def can_be_learnt(self, noise: str, store: Store) -> bool:
        """Return whether logistic regression, where there is one, is better than the largest class."""
        return not self._of_reference(LINEAR, noise, store) <= self._of_largest_class(noise, store)

    def end(self, store: Store) -> None:
        """Keep the data: the next replicate may need it."""

    @property
    def _judged_by(self) -> str:
        """What tells on validation rows whether a run has learnt: the study's metric where it is a share, else accuracy."""
        return "validation_score" if is_share(self.settings.metric) else "validation_accuracy"

    def _of_largest_class(self, noise: str, store: Store) -> float:
        """Return how good it is on validation rows to predict the largest class, by what runs are judged by."""
        found = self._of_reference(LARGEST, noise, store)
        if math.isfinite(found):
            return found
        metric = self.settings.metric if is_share(self.settings.metric) else "accuracy"
        return _of_commonest(metric, self._labels[noise][self.data.validation].numpy(), self.data.num_classes)

    def _of_reference(self, name: str, noise: str, store: Store) -> float:
        """Return how good a classical model is on the validation rows; NaN where there are no references."""
        own = (row for row in store.references() if row["seed"] == self.seed and row["noise"] == noise)
        return next((row[self._judged_by] for row in own if row["name"] == name), math.nan)


def _of_commonest(metric: str, labels: np.ndarray, num_classes: int) -> float:
    """Return the score of always predicting the commonest label."""
    if not len(labels):
        return math.nan
    commonest = np.bincount(labels, minlength=num_classes).argmax()
    return score_of(metric, np.tile(np.eye(num_classes)[commonest], (len(labels), 1)), labels)
