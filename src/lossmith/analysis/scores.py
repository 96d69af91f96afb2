"""How good predictions are: how often they are right, and how likely they found what happened."""

import numpy as np
import torch
from scipy.special import logsumexp

from lossmith.analysis.arrays import Array, Numbers, as_labels, as_matrix, at_labels, probabilities_and_labels
from lossmith.expressions.limits import Limits
from lossmith.losses.contract.top_k_prediction import topk_accuracy

__all__ = [
    "accuracy",
    "balanced_accuracy",
    "brier_score",
    "logit_negative_log_likelihood",
    "macro_f1",
    "negative_log_likelihood",
    "predicted_classes",
    "top_k_accuracy",
]


def accuracy(predictions: Numbers, labels: Numbers) -> float:
    """Return the share of the predictions that are right.

    ``predictions`` are classes ``(n,)``, or scores of the classes ``(n, C)``: logits, probabilities.

    Args:
        predictions: Classes ``(n,)``, or scores of the classes ``(n, C)``.
        labels: The class of each example, ``(n,)``.

    Returns:
        A share, between 0 and 1.

    Raises:
        ValueError: If lengths do not match.

    >>> accuracy([0, 1, 1, 2], [0, 1, 2, 2])
    0.75
    """
    predicted = predicted_classes("accuracy", predictions)
    return float(np.mean(predicted == as_labels("accuracy", labels, rows=len(predicted))))


def balanced_accuracy(predictions: Numbers, labels: Numbers) -> float:
    """Return the accuracy on each class, averaged over the classes that occur, however rare they are.

    Args:
        predictions: Classes ``(n,)``, or scores of the classes ``(n, C)``.
        labels: The class of each example, ``(n,)``.

    Returns:
        A share, between 0 and 1.

    Raises:
        ValueError: If lengths do not match.

    >>> balanced_accuracy([0, 0, 0, 0], [0, 0, 0, 1])
    0.5
    """
    predicted = predicted_classes("balanced_accuracy", predictions)
    truth = as_labels("balanced_accuracy", labels, rows=len(predicted))
    examples = np.bincount(truth)
    right = np.bincount(truth[predicted == truth], minlength=len(examples))
    occurring = examples > 0
    return float(np.mean(right[occurring] / examples[occurring]))


def macro_f1(predictions: Numbers, labels: Numbers) -> float:
    """Return the F1 score of each class, averaged over the classes that occur or are predicted, however rare they are.

    The F1 score is the harmonic mean of precision and recall, ``2 right / (predicted + occurring)``: 0 for a class that is
    never predicted rightly.

    Args:
        predictions: Classes ``(n,)``, or scores of the classes ``(n, C)``.
        labels: The class of each example, ``(n,)``.

    Returns:
        A share, between 0 and 1.

    Raises:
        ValueError: If lengths do not match.

    >>> round(macro_f1([0, 0, 0, 0], [0, 0, 0, 1]), 4)
    0.4286
    """
    predicted = predicted_classes("macro_f1", predictions)
    truth = as_labels("macro_f1", labels, rows=len(predicted))
    classes = int(max(predicted.max(), truth.max())) + 1
    named = np.bincount(truth, minlength=classes) + np.bincount(predicted, minlength=classes)
    right = np.bincount(truth[predicted == truth], minlength=classes)
    met = named > 0
    return float(np.mean(2 * right[met] / named[met]))


def top_k_accuracy(scores: Numbers, labels: Numbers, k: int = 5) -> float:
    """Return the share of the examples whose class is among the k largest of its scores ``(n, C)``; 1 where k >= C.

    Chance decides between equal scores, as in :func:`lossmith.losses.topk_accuracy`, which does the counting.

    Args:
        scores: Those of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.
        k: How many guesses count, at least 1.

    Returns:
        A share, between 0 and 1.

    Raises:
        ValueError: If lengths do not match, a label is no class, or ``k`` is below 1.

    >>> top_k_accuracy([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]], [1, 2], k=2)
    0.5
    """
    values = as_matrix("top_k_accuracy", "scores", scores)
    truth = as_labels("top_k_accuracy", labels, rows=len(values), classes=values.shape[1])
    return float(topk_accuracy(torch.from_numpy(values), torch.from_numpy(truth), k))


def predicted_classes(owner: str, predictions: Numbers) -> Array:
    """Return classes ``(n,)`` as they are, and of scores ``(n, C)`` the class of the first largest one.

    Args:
        owner: Who asks, named in errors.
        predictions: Classes or scores.

    Returns:
        A class for each example, ``(n,)``.

    Raises:
        ValueError: If the predictions have neither form.
    """
    if np.ndim(predictions) == 2:
        best: Array = as_matrix(owner, "predictions", predictions).argmax(1)
        return best
    return as_labels(owner, predictions, name="predictions")


def negative_log_likelihood(probabilities: Numbers, labels: Numbers) -> float:
    """Return the mean of ``-log p_y``. It is infinite if a label had probability 0: the model ruled out what happened.

    Where probabilities come from a softmax, a 0 is mostly a number too small for its precision, and
    :func:`logit_negative_log_likelihood` of the logits has the exact value.

    Args:
        probabilities: Those of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.

    Returns:
        The mean over examples, in nats.

    Raises:
        ValueError: If a row is no distribution, a label is no class, or lengths do not match.

    >>> round(negative_log_likelihood([[0.5, 0.5], [0.2, 0.8]], [0, 1]), 4)
    0.4581
    >>> negative_log_likelihood([[0.0, 1.0]], [0])
    inf
    """
    values, truth = probabilities_and_labels("negative_log_likelihood", probabilities, labels)
    with np.errstate(divide="ignore"):
        return float(-np.log(at_labels(values, truth)).mean())


def logit_negative_log_likelihood(logits: Numbers, labels: Numbers, *, temperature: float = 1.0) -> float:
    """Return the mean of ``-log softmax(logits / temperature)_y``, finite for every finite logit.

    Args:
        logits: Scores of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.
        temperature: What logits are divided by, > 0.

    Returns:
        The mean over examples, in nats.

    Raises:
        ValueError: If a logit is not finite, a label is no class, lengths do not match, or the temperature is not above 0.

    >>> logit_negative_log_likelihood([[0.0, 1000.0]], [0])
    1000.0
    """
    owner = "logit_negative_log_likelihood"
    Limits(0.0, low_open=True).check("temperature", temperature, owner=owner)
    values = as_matrix(owner, "logits", logits) / temperature
    truth = as_labels(owner, labels, rows=len(values), classes=values.shape[1])
    return float(logsumexp(values - at_labels(values, truth)[:, None], axis=1).mean())


def brier_score(probabilities: Numbers, labels: Numbers) -> float:
    """Return the mean squared distance between the probabilities and the one-hot label: 0 is perfect, 2 is surely wrong.

    Args:
        probabilities: Those of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.

    Returns:
        The mean over examples.

    Raises:
        ValueError: If a row is no distribution, a label is no class, or lengths do not match.

    >>> round(brier_score([[0.5, 0.5], [0.2, 0.8]], [0, 1]), 4)
    0.29
    """
    values, truth = probabilities_and_labels("brier_score", probabilities, labels)
    target = at_labels(values, truth)
    others = np.square(values).sum(1) - target**2
    return float(np.maximum(others, 0.0).mean() + np.mean((1.0 - target) ** 2))
