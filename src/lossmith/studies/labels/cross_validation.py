"""Probabilities of every row by networks that have not seen it."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossmith.data import PreparedData
from lossmith.objectives.named_objectives import make_objective
from lossmith.studies.design.usual_training import (
    UNFINISHED,
    completed_recipe,
    decay_range,
    rate_range,
    suitable_augmentation,
    untuned_decay,
)
from lossmith.theory.fitting import fitted_to_classes
from lossmith.training.engines.engine import Engine
from lossmith.training.engines.local import LocalEngine
from lossmith.training.job import Job
from lossmith.training.recipe import Recipe, Run, Trained
from lossmith.training.seeds import derived_seed
from lossmith.training.workers import Progress, train_all

__all__ = ["DECAYS", "FOLDS", "LOSSES", "CrossValidation", "Probabilities", "folds_of"]

LOSSES = ("ce", "gce")
"""Cross-entropy, whose probabilities are those of labels, wrong ones among them, and a robust loss, which learns fewer of these.
"""
FOLDS = 5
DECAYS = 3
"""How many weight decays are tried, from what is usual without a search to the end of the range: strong ones keep wrong labels
from being learnt by heart, and the strongest, where labels are right, from learning."""

Probabilities = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


def folds_of(labels: Labels, folds: int, seed: int) -> Labels:
    """Divide rows into folds, every class as evenly as can be.

    Args:
        labels: The class of each row.
        folds: How many.
        seed: Draws them.

    Returns:
        The fold of each row, from 0.

    >>> np.bincount(folds_of(np.repeat([0, 1], [7, 3]), 5, 0))
    array([2, 2, 2, 2, 2])
    """
    order = np.random.default_rng(derived_seed(seed, "folds")).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    found = np.empty(len(labels), np.int64)
    found[order] = np.arange(len(labels)) % folds
    return found


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Networks that are trained on all folds but one, and predict that one.

    Args:
        data: Inputs, whatever its splits are.
        rows: The rows that are divided into folds.
        labels: A class for each of them.
        model: The name of the network.
        losses: What they are trained with.
        folds: How many folds, 2 at least.
        epochs: How long a network is trained; 0 for what suits the number of rows.
        seed: Of folds, initial weights and batches.
        engine: What trains; this process by default.
    """

    data: PreparedData
    rows: Tensor
    labels: Tensor
    model: str
    losses: Sequence[str] = LOSSES
    folds: int = FOLDS
    epochs: int = 0
    seed: int = 0
    engine: Engine = field(default_factory=lambda: LocalEngine(1))

    def __post_init__(self) -> None:
        if not 2 <= self.folds <= len(self.rows):
            raise ValueError(f"folds must be from 2 to the number of rows, {len(self.rows)}, got {self.folds}.")
        if not self.losses:
            raise ValueError("losses must name at least one, got none.")
        for loss in self.losses:
            make_objective(loss)  # raises for what cannot be trained with

    @cached_property
    def recipe(self) -> Recipe:
        """How a network is trained: as a study would train it on so many rows."""
        rows = len(self.rows) * (self.folds - 1) // self.folds
        given = replace(UNFINISHED, epochs=self.epochs)
        return completed_recipe(given, self.model, rows, suitable_augmentation(self.data.name))

    @property
    def runs(self) -> int:
        """How many networks are trained."""
        return self.folds * len(self.losses) * DECAYS

    def probabilities(self, on_runs: Callable[[float], object] = lambda _: None) -> dict[str, Probabilities]:
        """Train, and return by loss the probabilities of all classes for each row, with the weight decay that predicts best.

        Args:
            on_runs: Called with how many runs more are done; an epoch of a run is a fraction of it.

        Returns:
            ``(rows, classes)`` for each loss.
        """
        fold_of = folds_of(self.labels.numpy(), self.folds, self.seed)
        found: dict[tuple[str, float], Probabilities] = {}
        for fold in range(self.folds):
            for trained in self._without(fold, torch.from_numpy(fold_of == fold), on_runs):
                key = (trained.run.loss, trained.run.weight_decay)
                whole = found.setdefault(key, np.zeros((len(self.rows), self.data.num_classes)))
                whole[fold_of == fold] = _finite(trained.test_probabilities)
        return {loss: self._best([each for (name, _), each in found.items() if name == loss]) for loss in self.losses}

    def _without(self, fold: int, is_out: Tensor, on_runs: Callable[[float], object]) -> Iterator[Trained]:
        """Train without a fold, and yield what each loss with each weight decay predicts for it."""
        none, labels = self.rows[:0], self.data.labels.index_put((self.rows,), self.labels)
        part = replace(self.data, train=self.rows[~is_out], validation=none, test=self.rows[is_out], labels=labels)

        def say(progress: Progress) -> None:
            on_runs(progress.runs / progress.epochs)

        jobs = list(self._jobs(fold, self.labels[~is_out]))
        with closing(train_all(jobs, part, self.recipe, engine=self.engine, on_progress=say)) as results:
            yield from results

    def _jobs(self, fold: int, labels: Tensor) -> Iterator[Job]:
        rate = math.sqrt(math.prod(rate_range(self.recipe)))
        low, high = untuned_decay(self.recipe), decay_range(self.recipe)[1]
        for loss in self.losses:
            objective = make_objective(fitted_to_classes(loss, self.data.num_classes))
            for decay in np.geomspace(low, high, DECAYS).tolist():
                yield Job(Run(loss, "none", derived_seed(self.seed, f"fold {fold}"), rate, decay), objective, labels, labels[:0])

    def _best(self, tried: Sequence[Probabilities]) -> Probabilities:
        """Return what makes the labels most likely: that is cross-entropy's own measure of probabilities."""
        return min(tried, key=lambda each: _surprise(each, self.labels.numpy()))


def _finite(probabilities: npt.NDArray[np.float32]) -> Probabilities:
    """Return probabilities in double precision; a network that diverged knows nothing."""
    values = probabilities.astype(np.float64)
    values = np.where(np.isfinite(values).all(1, keepdims=True), values, 1.0)
    found: Probabilities = values / values.sum(1, keepdims=True)
    return found


def _surprise(probabilities: Probabilities, labels: Labels) -> float:
    own = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(own, np.finfo(np.float32).tiny)).mean())
