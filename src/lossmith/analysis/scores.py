"""How often predictions are right."""

import numpy as np
import torch

from lossmith.analysis.arrays import Array, Numbers, as_labels, as_matrix
from lossmith.losses.top_k_prediction import topk_accuracy

__all__ = ["accuracy", "balanced_accuracy", "predicted_classes", "top_k_accuracy"]


def accuracy(predictions: Numbers, labels: Numbers) -> float:
    """Return the share of the predictions that are right.

    ``predictions`` are classes ``(n,)``, or scores of the classes ``(n, C)``: logits, probabilities.

    >>> accuracy([0, 1, 1, 2], [0, 1, 2, 2])
    0.75
    """
    predicted = predicted_classes("accuracy", predictions)
    return float(np.mean(predicted == as_labels("accuracy", labels, rows=len(predicted))))


def balanced_accuracy(predictions: Numbers, labels: Numbers) -> float:
    """Return the accuracy on each class, averaged over the classes that occur, however rare they are.

    >>> balanced_accuracy([0, 0, 0, 0], [0, 0, 0, 1])
    0.5
    """
    predicted = predicted_classes("balanced_accuracy", predictions)
    truth = as_labels("balanced_accuracy", labels, rows=len(predicted))
    examples = np.bincount(truth)
    right = np.bincount(truth[predicted == truth], minlength=len(examples))
    occurring = examples > 0
    return float(np.mean(right[occurring] / examples[occurring]))


def top_k_accuracy(scores: Numbers, labels: Numbers, k: int = 5) -> float:
    """Return the share of the examples whose class is among the k largest of its scores ``(n, C)``; 1 where k >= C.

    Chance decides between equal scores, as in :func:`lossmith.topk_accuracy`, which does the counting.

    >>> top_k_accuracy([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]], [1, 2], k=2)
    0.5
    """
    values = as_matrix("top_k_accuracy", "scores", scores)
    truth = as_labels("top_k_accuracy", labels, rows=len(values), classes=values.shape[1])
    return float(topk_accuracy(torch.from_numpy(values), torch.from_numpy(truth), k))


def predicted_classes(owner: str, predictions: Numbers) -> Array:
    """Return classes ``(n,)`` as they are, and of scores ``(n, C)`` the class of the first largest one."""
    if np.ndim(predictions) == 2:
        best: Array = as_matrix(owner, "predictions", predictions).argmax(1)
        return best
    return as_labels(owner, predictions, name="predictions")
