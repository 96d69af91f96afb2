"""What was taken for what: the matrix that makes labels most probable, given how probable the true classes of rows are."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from lossmith.analysis.arrays import Array, at_labels

__all__ = ["Confusion", "clean_probabilities", "fit_confusion", "wrong_chances"]

ROUNDS = 100
PSEUDO_ROWS = 100.0
"""So many rows of each class are imagined whose labels are wrong at the overall rate, evenly: what few rows
seem to say of pairs of classes that are much alike is mostly how much they are alike."""
_LEAST = 1e-6
"""Added to probabilities, of which networks in single precision know no more digits."""
_LOG_POWERS = (-3.0, 3.0)
_CONVERGED = 1e-6


class Confusion(NamedTuple):
    """What was taken for what."""

    joint: Array
    """``(C, C)``: the share of all rows with each true class, a row, and each label, a column."""
    transition: Array
    """``(C, C)``: the share of each true class that carries each label."""
    truths: Array
    """``(n, C)``: how probable each class is the true one, given inputs and label."""


def clean_probabilities(probabilities: Array, error: float) -> Array:
    """Return the probabilities of true classes: those predicted, to the power by which as many are wrong as they say.

    Networks that learn from wrong labels are less sure than they could be, and those of a robust loss are surer.

    Args:
        probabilities: Those that were predicted, ``(n, C)``.
        error: The share of predictions that are wrong.

    Returns:
        ``(n, C)``.
    """
    logs = np.log(probabilities + _LEAST)

    def missing(log_power: float) -> float:
        return float(1 - error - _to_the_power(logs, log_power).max(1).mean())

    low, high = _LOG_POWERS
    if missing(low) <= 0 or missing(high) >= 0:
        return _to_the_power(logs, low if missing(low) <= 0 else high)
    return _to_the_power(logs, brentq(missing, low, high, xtol=1e-4))


def _to_the_power(logs: Array, log_power: float) -> Array:
    found: Array = softmax(np.exp(log_power) * logs, axis=1)
    return found


def fit_confusion(clean: Array, labels: Array, rate: float) -> Confusion:
    """Find the matrix by expectation and maximisation, and scale it to the share of wrong labels.

    Args:
        clean: The probabilities of true classes, whatever the label, ``(n, C)``.
        labels: The label of each row.
        rate: The share of wrong labels.

    Returns:
        The matrices, and what they say of each row.
    """
    classes = clean.shape[1]
    evenly = (1 - rate) * np.eye(classes) + rate / (classes - 1) * (1 - np.eye(classes))
    one_hot = np.eye(classes)[labels]
    transition = evenly
    for _ in range(ROUNDS):
        counts = _truths(clean, labels, transition).T @ one_hot + PSEUDO_ROWS * evenly
        before, transition = transition, counts / counts.sum(1, keepdims=True)
        if np.abs(transition - before).max() < _CONVERGED:
            break
    joint = _with_rate(_truths(clean, labels, transition).T @ one_hot / len(labels), rate)
    shares = joint.sum(1, keepdims=True)
    transition = np.where(shares > 0, joint / np.where(shares > 0, shares, 1.0), evenly)
    return Confusion(joint, transition, _truths(clean, labels, transition))


def _truths(clean: Array, labels: Array, transition: Array) -> Array:
    found: Array = clean * transition[:, labels].T
    total = found.sum(1, keepdims=True)
    return np.where(total > 0, found / np.where(total > 0, total, 1.0), clean)


def _with_rate(joint: Array, rate: float) -> Array:
    """Return the matrix with so much off its diagonal, the proportions of either part as they were."""
    right = np.trace(joint)
    if right >= 1 or right <= 0:
        return joint
    wrong = joint - np.diag(np.diag(joint))
    scaled: Array = np.diag(np.diag(joint)) * (1 - rate) / right + wrong * rate / (1 - right)
    return scaled


def wrong_chances(truths: Array, labels: Array) -> Array:
    """Return how likely each label is wrong.

    Args:
        truths: How probable each class is the true one, ``(n, C)``.
        labels: The label of each row.

    Returns:
        ``(n,)``.
    """
    found: Array = np.clip(1 - at_labels(truths, labels), 0.0, 1.0)
    return found
