"""Replicates that share rows: what their overlap adds to the error of a mean difference.

Replicates draw their splits from the same data, so that they agree with one another more than with fresh data. The t-test over
independent runs would be too sure of itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["INDEPENDENT", "Overlap", "row_scores"]

_TOP = 5


@dataclass(frozen=True)
class Overlap:
    """What the replicates of a study share.

    >>> Overlap(ratio=0.25).ratio
    0.25
    """

    ratio: float = 0.0
    """Test rows to training rows, where replicates draw their test rows; validation rows to training rows where the test split
    is the user's; 0 where the whole split is."""
    rows: bool = False
    """Whether all replicates are judged on the same test rows, whose own luck then adds to every difference."""

    def __post_init__(self) -> None:
        if not 0 <= self.ratio < float("inf"):
            raise ValueError(f"Overlap: ratio must be at least 0 and finite, got {self.ratio}.")


INDEPENDENT = Overlap()
"""Replicates that share nothing."""


def row_scores(metric: str, probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return a number for each test row, such that their mean is the metric, and their spread tells what other rows might give.

    Balanced accuracy and macro F1 are no means over rows. Theirs are the first-order influences of the rows, with the shares of
    the classes as they are.

    Args:
        metric: ``accuracy``, ``balanced_accuracy``, ``macro_f1``, ``nll``, ``brier`` or ``top5``.
        probabilities: ``(rows, classes)``.
        labels: The true class of each row.

    Returns:
        ``(rows,)``.

    Raises:
        ValueError: If the metric is not one of these.

    >>> row_scores("accuracy", np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 1]))
    array([1., 0.])
    """
    scores: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
        "accuracy": lambda p, y: (p.argmax(1) == y).astype(float),
        "balanced_accuracy": _recalls,
        "macro_f1": _f1_influences,
        "nll": lambda p, y: -np.log(np.maximum(p[np.arange(len(y)), y], np.finfo(np.float64).tiny)),
        "brier": lambda p, y: ((p - np.eye(p.shape[1])[y]) ** 2).sum(1),
        "top5": lambda p, y: (np.argsort(-p, 1, kind="stable")[:, :_TOP] == y[:, None]).any(1).astype(float),
    }
    if metric not in scores:
        raise ValueError(f"row_scores: metric must be one of {', '.join(scores)}, got {metric}.")
    return scores[metric](np.asarray(probabilities, np.float64), np.asarray(labels))


def _recalls(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    right = (probabilities.argmax(1) == labels).astype(float)
    counts = np.bincount(labels, minlength=probabilities.shape[1])
    present = np.flatnonzero(counts)
    recalls = np.array([right[labels == label].mean() for label in present])
    of_row = dict(zip(present, recalls, strict=True))
    own = np.array([of_row[label] for label in labels])
    return np.asarray(recalls.mean() + (right - own) * len(labels) / (len(present) * counts[labels]))


def _f1_influences(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the influences of rows on the mean over classes of ``2 TP / (predicted + true)``."""
    classes = np.union1d(labels, predicted := probabilities.argmax(1))
    said, true = predicted[:, None] == classes, labels[:, None] == classes
    sizes = said.sum(0) + true.sum(0)
    scores = 2 * (said & true).sum(0) / sizes
    influences = (2.0 * (said & true) - scores * (said.astype(float) + true)) * len(labels) / sizes
    return np.asarray(scores.mean() + influences.mean(1))
