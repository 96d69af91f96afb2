"""What predicts rows for ``evidence.labels`` that it did not see: the networks of ``lossmith inspect``, or classical models."""

import math
import warnings
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import Tensor

from lossmith.data import PreparedData
from lossmith.data.sparse_rows import SparseRows
from lossmith.objectives import make_objective
from lossmith.studies.design.usual_training import decay_range, rate_range, untuned_decay
from lossmith.studies.labels.cross_validation import FOLDS, CrossValidation, Probabilities, folds_of
from lossmith.training.job import Job
from lossmith.training.recipe import Run
from lossmith.training.workers import train_all

__all__ = ["Classical", "Models", "Networks"]


class Models(Protocol):
    """What predicts."""

    def probabilities(self, data: PreparedData, labels: Tensor, seed: int) -> dict[str, Probabilities]:
        """Return by model the probabilities of training rows that it was not trained on; confident learning gets the first.

        Args:
            data: The data.
            labels: A label for each training row.
            seed: Of folds and all else that is drawn.

        Returns:
            ``(rows, classes)`` for each model.
        """
        ...

    def accuracy(self, data: PreparedData, is_kept: Tensor, labels: Tensor, seed: int) -> float:
        """Train the first model on some of the training rows, and return its accuracy on the test rows.

        Args:
            data: The data.
            is_kept: Which training rows.
            labels: A label for each training row.
            seed: Of all that is drawn.

        Returns:
            A share.
        """
        ...


@dataclass(frozen=True)
class Networks:
    """The networks of ``lossmith inspect``."""

    model: str
    epochs: int = 0

    def probabilities(self, data: PreparedData, labels: Tensor, seed: int) -> dict[str, Probabilities]:
        """Return what networks of cross-entropy and of a robust loss predict."""
        return self._trained(data, labels, seed).probabilities()

    def accuracy(self, data: PreparedData, is_kept: Tensor, labels: Tensor, seed: int) -> float:
        """Return the accuracy of a network of cross-entropy."""
        recipe = self._trained(data, labels, seed).recipe
        part = replace(data, train=data.train[is_kept], validation=data.train[:0])
        rate, decay = math.sqrt(math.prod(rate_range(recipe))), math.sqrt(untuned_decay(recipe) * decay_range(recipe)[1])
        job = Job(Run("ce", "none", seed, rate, decay), make_objective("ce"), labels[is_kept], labels[:0])
        with closing(train_all([job], part, recipe, workers=1)) as results:
            predicted = next(results).test_probabilities.argmax(1)
        return float(np.mean(predicted == _truth(data)))

    def _trained(self, data: PreparedData, labels: Tensor, seed: int) -> CrossValidation:
        return CrossValidation(data, data.train, labels, self.model, epochs=self.epochs, seed=seed)


class Classical:
    """Models of scikit-learn that are nobody's network: a support vector machine and trees, or linear models for texts."""

    def probabilities(self, data: PreparedData, labels: Tensor, seed: int) -> dict[str, Probabilities]:
        """Return what both models predict."""
        inputs, given = _matrix(data, data.train), labels.numpy()
        fold_of = folds_of(given, FOLDS, seed)
        found = {}
        for name, model in _models(data, seed).items():
            whole = np.zeros((len(given), data.num_classes))
            for fold in range(FOLDS):
                _fit(model, inputs[fold_of != fold], given[fold_of != fold])
                whole[np.ix_(fold_of == fold, model.classes_)] = model.predict_proba(inputs[fold_of == fold])
            found[name] = whole
        return found

    def accuracy(self, data: PreparedData, is_kept: Tensor, labels: Tensor, seed: int) -> float:
        """Return the accuracy of the first model."""
        model = next(iter(_models(data, seed).values()))
        _fit(model, _matrix(data, data.train[is_kept]), labels[is_kept].numpy())
        return float(np.mean(model.predict(_matrix(data, data.test)) == _truth(data)))


def _truth(data: PreparedData) -> np.ndarray:
    """Return the classes of the test rows."""
    labels: np.ndarray = (data.labels if data.true_labels is None else data.true_labels)[data.test].numpy()
    return labels


def _models(data: PreparedData, seed: int) -> Mapping[str, Any]:
    if data.is_sparse:
        return {"logistic regression": LogisticRegression(C=10.0, max_iter=300), "naive Bayes": ComplementNB()}
    trees = ExtraTreesClassifier(200, min_samples_leaf=5, random_state=seed)
    return {"RBF-SVM": make_pipeline(StandardScaler(), SVC(probability=True, random_state=seed)), "extra trees": trees}


def _fit(model: Any, inputs: Any, labels: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of the machine's own calibration, which is to go
        model.fit(inputs, labels)


def _matrix(data: PreparedData, rows: Tensor) -> Any:
    if isinstance(data.inputs, SparseRows):
        parts = data.inputs
        whole = csr_array((parts.values.numpy(), parts.columns.numpy(), parts.starts.numpy()), shape=tuple(parts.shape))
        return whole[rows.numpy()]
    return data.inputs[rows].flatten(1).to(torch.float64).numpy()
