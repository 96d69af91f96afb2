"""Fitted models of scikit-learn, whose predictions cover all classes."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning

from lossmith.studies.references.inputs import Matrix

__all__ = ["FittedModel", "fitted_model"]

_MOST_ROWS = 4_096  # at a time: kernels take memory for each of them
_MOST_PAIRS = 16_000_000  # rows x pairs of classes


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted model, and what it was fitted to."""

    estimator: Any
    num_classes: int
    rows: int
    """How many training rows it has seen."""

    @property
    def has_probabilities(self) -> bool:
        """Whether scores are probabilities."""
        return hasattr(self.estimator, "predict_proba")

    def scores(self, inputs: Matrix) -> np.ndarray:
        """Return a score for every class, ``(n, num_classes)``; the predicted class has the first largest one.

        Args:
            inputs: One row an example.

        Returns:
            Probabilities where the model has them. A class without a training row has the probability of a first sighting
            by Laplace's rule, and otherwise a score below all others.
        """
        size = min(_MOST_ROWS, max(1, _MOST_PAIRS // self.num_classes**2))
        blocks = [self._known_scores(inputs[start : start + size]) for start in range(0, inputs.shape[0], size)]
        classes = self.estimator.classes_
        known = np.concatenate(blocks) if blocks else np.empty((0, len(classes)))
        absent = self.num_classes - len(classes)
        if self.has_probabilities:
            first = 1.0 / (self.rows + self.num_classes)
            known, rest = known * (1.0 - absent * first), first
        else:
            rest = known.min(initial=0.0) - 1.0
        scores = np.full((len(known), self.num_classes), rest)
        scores[:, classes] = known
        return scores

    def _known_scores(self, inputs: Matrix) -> np.ndarray:
        if self.has_probabilities:
            return np.asarray(self.estimator.predict_proba(inputs), np.float64)
        values = np.asarray(self.estimator.decision_function(inputs), np.float64)
        return values if values.ndim == 2 else np.stack([-values, values], axis=1)


def fitted_model(estimator: BaseEstimator, inputs: Matrix, labels: np.ndarray, num_classes: int) -> FittedModel:
    """Fit a model; where there is one class only, which few models take, it predicts that class.

    Args:
        estimator: A classifier that is not fitted.
        inputs: Training rows.
        labels: Their classes.
        num_classes: How many classes there are, whether or not they occur.

    Returns:
        The fitted model.
    """
    if len(np.unique(labels)) < 2:
        estimator = DummyClassifier(strategy="prior")
    with warnings.catch_warnings():
        # A model that is not quite at its minimum is judged as it is; a column that is constant in these rows does no harm.
        for category in (ConvergenceWarning, RuntimeWarning, UserWarning):
            warnings.simplefilter("ignore", category)
        return FittedModel(estimator.fit(inputs, labels), num_classes, len(labels))
