"""How useful frozen features are: accuracy of logistic regression on them.

For strength s the weights minimise ``sum of losses + s / 2 |W|**2``, W having one row for each class; biases are free.
scikit-learn minimises ``C * sum of losses + |W|**2 / 2``, which is the same for ``C = 1 / s``. For two classes it keeps only the
difference w of the two rows; at the minimum they are w / 2 and -w / 2, whose squares sum to ``|w|**2 / 2``, so that
``C = 2 / s``.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from lossmith.analysis.arrays import Array, Numbers, as_labels, as_matrix, check_same_rows

__all__ = ["STRENGTHS", "Transfer", "transfer", "transfer_to_classes"]

STRENGTHS = tuple(float(strength) for strength in np.logspace(-6.0, 5.0, 45))


@dataclass(frozen=True, eq=False)
class Transfer:
    """Accuracy of logistic regression on frozen features."""

    accuracy: float
    """On the test examples, after a last fit to all training examples, those for validation among them."""
    strength: float
    """The strength that was best on the validation examples; the greatest, where several are equally good."""
    strengths: tuple[float, ...]
    """Those that were tried."""
    validation_accuracy: Array
    """``(len(strengths),)``."""
    converged: bool
    """Whether every fit reached its minimum within the tolerance."""


def transfer(
    features: Numbers,
    labels: Numbers,
    test_features: Numbers,
    test_labels: Numbers,
    *,
    validation_rows: Numbers | None = None,
    strengths: Sequence[float] = STRENGTHS,
    seed: int = 0,
    tolerance: float = 1e-5,
    max_iterations: int = 1000,
) -> Transfer:
    """Return the test accuracy of L2-regularised multinomial logistic regression, its strength chosen on held-out rows.

    For features of other data this is table 5 of Kornblith et al. 2021; for features of the data that the network was trained on
    it relearns the classifier. ``validation_rows`` are numbers of training rows; without them a fifth of each class is drawn.
    Fits go from strong to weak, each from where the last one ended, until no entry of the gradient of the mean loss exceeds
    ``tolerance``.

    Args:
        features: Those to learn from, ``(n, d)``.
        labels: Their classes, ``(n,)``.
        test_features: Those to judge by, ``(m, d)``.
        test_labels: Their classes, ``(m,)``.
        validation_rows: The training rows that choose the strength; by default a fifth of each class.
        strengths: The factors of the L2 penalty to try, each > 0.
        seed: Draws the validation rows.
        tolerance: The largest entry of the gradient at which a fit ends.
        max_iterations: The steps after which a fit ends in any case.

    Returns:
        The accuracy, and how it came about.

    Raises:
        ValueError: If sizes do not match, there is one class only, a class has no example to spare for validation, or a
            strength is not above 0.

    >>> features, labels = np.array([[0.0], [0.1], [0.2], [0.8], [0.9], [1.0]]), np.array([0, 0, 0, 1, 1, 1])
    >>> transfer(features, labels, [[0.05], [0.95]], [0, 1]).accuracy
    1.0
    """
    x, y = as_matrix("transfer", "features", features), as_labels("transfer", labels)
    check_same_rows("transfer", "labels", len(y), len(x))
    test_x = as_matrix("transfer", "test_features", test_features)
    if test_x.shape[1] != x.shape[1]:
        raise ValueError(f"transfer: test_features must have {x.shape[1]} columns, as features have, got {test_x.shape[1]}.")
    test_y = as_labels("transfer", test_labels, name="test_labels", rows=len(test_x))
    held_out = _validation_mask(y, validation_rows, seed)
    solver = _Solver(tolerance, max_iterations)
    ordered = sorted(strengths, reverse=True)
    scores = solver.path(x[~held_out], y[~held_out], x[held_out], y[held_out], ordered)
    best = ordered[int(np.argmax(scores))]
    accuracy = solver.path(x, y, test_x, test_y, [best])[0]
    by_strength = dict(zip(ordered, scores, strict=True))
    return Transfer(accuracy, best, tuple(strengths), np.array([by_strength[s] for s in strengths]), solver.converged)


def transfer_to_classes(
    features: Numbers, labels: Numbers, test_features: Numbers, test_labels: Numbers, classes: Sequence[int], *, seed: int = 0
) -> Transfer:
    """Return the transfer to some classes only, for example to those that the network was not trained on.

    Args:
        features: Those to learn from, ``(n, d)``.
        labels: Their classes, ``(n,)``.
        test_features: Those to judge by, ``(m, d)``.
        test_labels: Their classes, ``(m,)``.
        classes: The classes that count; examples of others are left out.
        seed: Draws the validation rows.

    Returns:
        The accuracy among these classes, and how it came about.

    Raises:
        ValueError: If sizes do not match, or none of the classes occurs.

    >>> features, labels = np.arange(12.0)[:, None], np.repeat([0, 1, 2, 3], 3)
    >>> transfer_to_classes(features, labels, features, labels, classes=[1, 3]).accuracy
    1.0
    """
    owner = "transfer_to_classes"
    splits: list[Array] = []
    for name, values, truth in (("features", features, labels), ("test_features", test_features, test_labels)):
        x = as_matrix(owner, name, values)
        y = as_labels(owner, truth, rows=len(x))
        chosen = np.isin(y, classes)
        if not chosen.any():
            raise ValueError(f"{owner}: classes must occur among the labels of {name}, got {list(classes)}.")
        splits += [x[chosen], y[chosen]]
    return transfer(*splits, seed=seed)


class _Solver:
    """Fits logistic regressions, and remembers whether all of them converged."""

    def __init__(self, tolerance: float, max_iterations: int) -> None:
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.converged = True

    def model(self) -> LogisticRegression:
        """Return a model that starts where its last fit ended."""
        return LogisticRegression(warm_start=True, tol=self.tolerance, max_iter=self.max_iterations)

    def fit(self, model: LogisticRegression, x: Array, y: Array, strength: float) -> LogisticRegression:
        """Fit the model with the given strength."""
        if not (strength > 0.0 and np.isfinite(strength)):
            raise ValueError(f"transfer: strengths must be > 0, got {strength}.")
        classes = len(np.unique(y))
        if classes < 2:
            raise ValueError(f"transfer: labels must have at least 2 classes to fit to, got {classes}.")
        model.set_params(C=(2.0 if classes == 2 else 1.0) / strength)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model.fit(x, y)
        self.converged &= not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        return model

    def path(self, x: Array, y: Array, test_x: Array, test_y: Array, strengths: Sequence[float]) -> list[float]:
        """Return the accuracy on the test examples for each strength, each fit starting from the last."""
        model = self.model()
        # The biases are free, so that centred features have the same minimum. They need a quarter of the iterations.
        centre = x.mean(0)
        fits = (self.fit(model, x - centre, y, strength) for strength in strengths)
        return [float(np.mean(fitted.predict(test_x - centre) == test_y)) for fitted in fits]


def _validation_mask(labels: Array, rows: Numbers | None, seed: int) -> Array:
    """Return which training rows choose the strength: those given, or a fifth of each class, and one if there are two."""
    mask = np.zeros(len(labels), dtype=bool)
    if rows is not None:
        mask[as_labels("transfer", rows, name="validation_rows", classes=len(labels))] = True
        return mask
    random = np.random.default_rng(seed)
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        mask[members[: max(len(members) // 5, int(len(members) > 1))]] = True
    if not mask.any():
        raise ValueError("transfer: a class must have at least 2 examples, one of them for validation, got 1 of each.")
    return mask
