"""Reference models: what a classical model reaches on the same rows, labels and validation rows as the losses of a study."""

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from sklearn.dummy import DummyClassifier
from threadpoolctl import threadpool_limits
from torch import Tensor

from lossmith.analysis.arrays import as_labels
from lossmith.data import PreparedData
from lossmith.expressions.nearest import nearest
from lossmith.studies.measures import GUESSES, METRICS, OF_PROBABILITIES, merit_of, score_of
from lossmith.studies.references.families import LINEAR, Family, families_for
from lossmith.studies.references.inputs import Matrix, ReferenceInputs, View, reference_inputs
from lossmith.studies.references.predictions import FittedModel, fitted_model
from lossmith.studies.references.search import Clock, Labels, choose
from lossmith.training.merit import Merit

__all__ = ["LARGEST", "LINEAR", "Reference", "reference_inputs", "train_references"]

LARGEST = "largest class"


@dataclass(frozen=True, eq=False)
class Reference:
    """A classical model, tuned and judged like a loss."""

    name: str
    settings: str
    """What was chosen, such as ``C=10, gamma=0.01``, and whatever was left out to save time."""
    measures: dict[str, float]
    """On the test rows, and ``validation_accuracy``, by the names of :data:`lossmith.studies.measures.MEASURES`; NaN where there
    is nothing to judge, as probabilities of SVMs."""
    validation_score: float
    """The study's metric on the validation rows, higher being better; NaN where the model has no probabilities to judge."""
    validation_correct: np.ndarray
    """Whether each validation row is predicted as it is labelled."""
    seconds: float


def train_references(
    data: PreparedData,
    train_labels: Tensor,
    validation_labels: Tensor,
    *,
    metric: str,
    seed: int,
    seconds: float | None = None,
    inputs: ReferenceInputs | None = None,
) -> list[Reference]:
    """Train the reference models of one replicate and noise, on one processor core.

    There are always the largest class and logistic regression; for tables an RBF-SVM and gradient boosting, for texts a linear
    SVM, for images an RBF-SVM; for tables with texts all of them. SVMs have no probabilities: under ``nll`` and ``brier``
    their settings are chosen by accuracy.

    Cost is bounded. A linear model takes in 20,000 training rows at most, or fewer where rows are wide and classes many, an
    RBF-SVM 4,000 and boosting 10,000; there is no boosting above 40 classes, and no RBF-SVM above 200. ``settings`` says where
    rows were left out.

    Args:
        data: The data, with the splits of the replicate.
        train_labels: The labels of the training rows, perhaps wrong, in their order.
        validation_labels: The same of the validation rows.
        metric: What settings are chosen by, on the validation rows.
        seed: Draws training rows, where there are too many, and whatever a model draws. The same seed gives the same models.
        seconds: When to try no further settings, counted over all models; every model is fitted once in any case.
        inputs: What :func:`reference_inputs` returned for the same data and seed, which saves time with several noises.

    Returns:
        The references, in the order in which they are shown.

    Raises:
        ValueError: If the metric is unknown, or there is not one label for each row, each of them a class.
    """
    if metric not in METRICS:
        raise ValueError(
            f"train_references: metric must be one of {', '.join(METRICS)}, got {metric!r}{nearest(metric, METRICS)}"
        )
    labels = Labels(
        _checked(train_labels, "train_labels", len(data.train), data.num_classes),
        _checked(validation_labels, "validation_labels", len(data.validation), data.num_classes),
        data.num_classes,
    )
    task = _Task(
        metric,
        labels,
        (data.labels if data.true_labels is None else data.true_labels)[data.test].numpy(),
    )
    clock = Clock(seconds)
    with threadpool_limits(1):  # threads would wait for one another longer than the work takes
        inputs = inputs or reference_inputs(data, seed)
        families = families_for(inputs, data.num_classes, seed)
        return [_largest_class(task, data.classes), *(_tuned(family, task, inputs.rows, clock) for family in families)]


def _checked(labels: Tensor, name: str, rows: int, num_classes: int) -> np.ndarray:
    if not rows and not len(labels):
        return np.empty(0, np.int64)
    return as_labels("train_references", labels, name=name, rows=rows, classes=num_classes)


@dataclass(frozen=True, eq=False)
class _Task:
    """What every model of a replicate and noise has to learn, and what it is judged by."""

    metric: str
    labels: Labels
    test_labels: np.ndarray

    def judge(self, model: FittedModel, inputs: Matrix, labels: np.ndarray) -> Merit:
        """Return what settings are chosen by."""
        if model.has_probabilities:
            return merit_of(self.metric, model.scores(inputs), labels)
        # Votes of SVMs are no likelihoods: by their score alone they are chosen better.
        return Merit(score_of("accuracy" if self._is_beyond(model) else self.metric, model.scores(inputs), labels))

    def reference(self, name: str, settings: str, model: FittedModel, view: View, began: float) -> Reference:
        """Judge a model that has been chosen."""
        scores = model.scores(view.validation)
        judged = len(scores) > 0 and not self._is_beyond(model)
        correct = scores.argmax(1) == self.labels.validation
        return Reference(
            name,
            settings,
            {**self._measures(model, view.test), "validation_accuracy": float(correct.mean()) if len(correct) else math.nan},
            score_of(self.metric, scores, self.labels.validation) if judged else math.nan,
            correct,
            time.perf_counter() - began,
        )

    def _is_beyond(self, model: FittedModel) -> bool:
        """Whether the metric judges probabilities, and the model has none."""
        return self.metric in OF_PROBABILITIES and not model.has_probabilities

    def _measures(self, model: FittedModel, inputs: Matrix) -> dict[str, float]:
        measures = dict.fromkeys(METRICS, math.nan)
        if not len(self.test_labels):
            return measures
        scores = model.scores(inputs)
        for metric in METRICS:
            if metric in OF_PROBABILITIES:
                measures[metric] = -score_of(metric, scores, self.test_labels) if model.has_probabilities else math.nan
            elif metric != "top5" or self.labels.num_classes > GUESSES:
                measures[metric] = score_of(metric, scores, self.test_labels)
        return measures


def _largest_class(task: _Task, classes: tuple[str, ...]) -> Reference:
    """Predict the most frequent training label, with the shares of all labels as probabilities."""
    began = time.perf_counter()
    labels = task.labels
    nothing = View.of(np.zeros((len(part), 1)) for part in (labels.train, labels.validation, task.test_labels))
    model = fitted_model(DummyClassifier(strategy="prior"), nothing.train, labels.train, labels.num_classes)
    largest = classes[np.bincount(labels.train).argmax()]
    return task.reference(LARGEST, repr(largest), model, nothing, began)


def _tuned(family: Family, task: _Task, rows: np.ndarray, clock: Clock) -> Reference:
    """Choose a setting of a family on the validation rows."""
    began = time.perf_counter()
    labels, total = task.labels, len(task.labels.train)
    chosen = choose(family, replace(labels, train=labels.train[rows]), task.judge, clock)
    parts = [
        ", ".join(f"{name}={value:g}" for name, value in chosen.setting.items()),
        family.view.note,
        f"{chosen.model.rows:,} of {total:,} training rows" if chosen.model.rows < total else "",
        "" if len(labels.validation) else "not tuned: no validation rows",
        "" if chosen.in_time else "time was over before all settings were tried",
    ]
    return task.reference(family.name, "; ".join(filter(None, parts)), chosen.model, family.view, began)
