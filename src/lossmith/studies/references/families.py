"""Families of classical models, each with a few settings to choose from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from lossmith.studies.references.inputs import Matrix, ReferenceInputs, View

__all__ = ["LINEAR", "Family", "Place", "families_for"]

LINEAR = "logistic regression"
"""The family that is there for all data."""

Place = tuple[int, ...]
"""Where a setting is: a step on the ladder of each of its numbers."""

_STEPS_OF_TEN = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
_LINEAR_WORK = 2e8  # rows x numbers in a row x classes: about a second a fit
_KERNEL_ROWS = 4_000
_MOST_CLASSES_OF_KERNELS = 200  # there is a model for each pair of them
_TREE_ROWS = 10_000
_MOST_TREES = 400  # of a setting, by which time stays in bounds where there are many classes
_MOST_CLASSES_OF_TREES = 40
_MOST_COLUMNS_OF_TREES = 128


@dataclass(frozen=True)
class Family:
    """Models of one kind, and the settings that they may have."""

    name: str
    view: View
    ladders: Mapping[str, tuple[float, ...]]
    """The values of each number, the simplest model first."""
    first: Mapping[str, tuple[int, ...]]
    """The steps of each ladder that are tried first, in all combinations."""
    make: Callable[..., BaseEstimator]
    """Takes a setting, by name, and returns a model that is not fitted."""
    most_rows: int

    def first_places(self) -> list[Place]:
        """Return the places that are tried first."""
        return list(product(*self.first.values()))

    def near(self, place: Place) -> list[Place]:
        """Return the places one step away."""
        sizes = [len(ladder) for ladder in self.ladders.values()]
        moved = [(*place[:axis], place[axis] + step, *place[axis + 1 :]) for axis in range(len(place)) for step in (-1, 1)]
        return [other for other in moved if all(0 <= step < size for step, size in zip(other, sizes, strict=True))]

    def setting(self, place: Place) -> dict[str, float]:
        """Return the setting at a place."""
        return {name: ladder[step] for (name, ladder), step in zip(self.ladders.items(), place, strict=True)}


def families_for(inputs: ReferenceInputs, num_classes: int, seed: int) -> list[Family]:
    """Return logistic regression, and what is known to be strong on this kind of data.

    Args:
        inputs: The data.
        num_classes: How many classes it has.
        seed: Whatever the models draw, they draw by it.

    Returns:
        The families, in the order in which they are shown.
    """
    families = [_logistic_regression(inputs, num_classes)]
    if inputs.kind in ("text", "mixed"):
        families.append(_linear_svm(inputs.linear, num_classes, seed))
    if inputs.encoded is not None:
        families += _of_vectors(inputs.encoded, num_classes, seed)
    if inputs.kernel is not None and num_classes <= _MOST_CLASSES_OF_KERNELS:
        families.append(_rbf_svm(inputs.kernel))
    if inputs.trees is not None and num_classes <= _MOST_CLASSES_OF_TREES:
        families.append(_gradient_boosting(inputs.trees, num_classes, seed))
    return families


def _of_vectors(view: View, num_classes: int, seed: int) -> list[Family]:
    """Return linear models of what a pretrained encoder says of texts."""
    rows = _affordable_rows(view.train, num_classes)

    def regression(C: float) -> BaseEstimator:  # noqa: N803
        return LogisticRegression(C=C, tol=1e-3, max_iter=200)

    return [
        Family(f"{LINEAR}, encoder", view, {"C": _STEPS_OF_TEN}, {"C": (1, 2, 3)}, regression, rows),
        replace(_linear_svm(view, num_classes, seed), name="linear SVM, encoder", ladders={"C": _STEPS_OF_TEN}),
    ]


def _logistic_regression(inputs: ReferenceInputs, num_classes: int) -> Family:
    def make(C: float) -> BaseEstimator:  # noqa: N803
        model = LogisticRegression(C=C, tol=1e-3, max_iter=200)
        # The columns of a table have a scale each; pixels share one, and so do the terms of a text.
        return make_pipeline(StandardScaler(), model) if inputs.kind == "table" else model

    view = inputs.linear
    most_rows = _affordable_rows(view.train, num_classes)
    if inputs.kind == "table":
        return Family(LINEAR, view, {"C": _STEPS_OF_TEN}, {"C": (1, 3, 5)}, make, most_rows)
    ladder = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0) if sparse.issparse(view.train) else _STEPS_OF_TEN
    return Family(LINEAR, view, {"C": ladder}, {"C": (1, 3, 5)}, make, most_rows)


def _linear_svm(view: View, num_classes: int, seed: int) -> Family:
    def make(C: float) -> BaseEstimator:  # noqa: N803
        return LinearSVC(C=C, dual=True, tol=1e-2, random_state=seed)

    ladder = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    return Family("linear SVM", view, {"C": ladder}, {"C": (1, 3, 5)}, make, _affordable_rows(view.train, num_classes))


def _affordable_rows(train: Matrix, num_classes: int) -> int:
    """Return how many rows a linear model may take in, so that a fit ends in seconds."""
    numbers = train.nnz / train.shape[0] if sparse.issparse(train) else train.shape[1]
    return max(2_000, int(_LINEAR_WORK / (max(numbers, 1) * num_classes)))


def _rbf_svm(view: View) -> Family:
    def make(C: float, gamma: float) -> BaseEstimator:  # noqa: N803
        return SVC(C=C, gamma=gamma, cache_size=500)

    spread = view.train.shape[1] * float(view.train.var())
    # Two digits, so that whoever reads the setting can make the same model.
    gammas = tuple(float(f"{factor / (spread or 1.0):.1e}") for factor in (0.05, 0.15, 0.5, 1.5, 5.0))
    ladders = {"C": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0), "gamma": gammas}
    return Family("RBF-SVM", view, ladders, {"C": (1, 3, 5), "gamma": (1, 2, 3)}, make, _KERNEL_ROWS)


def _gradient_boosting(view: View, num_classes: int, seed: int) -> Family:
    rows, columns = view.train.shape

    def make(iterations: float, leaves: float) -> BaseEstimator:
        model = HistGradientBoostingClassifier(
            max_iter=int(iterations),
            max_leaf_nodes=int(leaves),
            learning_rate=rate,
            min_samples_leaf=int(np.clip(rows // 50, 3, 20)),
            max_bins=63,
            early_stopping=False,  # the number of iterations is chosen on validation rows, as everything is
            random_state=seed,
        )
        if columns <= _MOST_COLUMNS_OF_TREES:
            return model
        return make_pipeline(SelectKBest(f_classif, k=_MOST_COLUMNS_OF_TREES), model)

    trees = 1 if num_classes == 2 else num_classes  # of an iteration
    longest = max(10, min(160, _MOST_TREES // trees, max(80, rows // 2)))
    rate = 0.1 if _MOST_TREES // trees >= 100 else 0.2
    ladders = {
        "iterations": tuple(longest // 2**step for step in (4, 3, 2, 1, 0) if longest >= 2**step),
        "leaves": (4, 8, 16, 31),
    }
    return Family("gradient boosting", view, ladders, {"iterations": (1, 3), "leaves": (1,)}, make, _TREE_ROWS)
