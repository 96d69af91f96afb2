"""Confident learning, the published method that others are compared with."""

import numpy as np

from lossmith.analysis.arrays import Array, Numbers, at_labels, probabilities_and_labels

__all__ = ["confident_joint", "confident_suspects"]


def confident_joint(probabilities: Numbers, labels: Numbers) -> Array:
    """Return the share of rows of each true class, a row, that carry each label, a column, by confident learning.

    A row counts for the class with the largest probability among those whose probability is at least as large as it is on average
    where it is the label. Counts are scaled so that labels are as frequent as they are.

    Args:
        probabilities: Those of the classes for rows that were not trained on, ``(n, C)``.
        labels: The label of each row, ``(n,)``.

    Returns:
        ``(C, C)``, which adds up to 1.

    Raises:
        ValueError: If a row is no distribution, a label is no class, or lengths do not match.

    >>> confident_joint([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.9, 0.1]], [0, 0, 1, 1]).round(2)
    array([[0.5 , 0.25],
           [0.  , 0.25]])

    Reference: Northcutt, Jiang and Chuang 2021, "Confident learning: estimating uncertainty in dataset labels", section 3.1.
    """
    values, given = probabilities_and_labels("confident_joint", probabilities, labels)
    classes = values.shape[1]
    likely, is_counted = _confident_classes(values, given)
    counts = np.zeros((classes, classes))
    np.add.at(counts, (likely[is_counted], given[is_counted]), 1.0)
    frequencies = np.bincount(given, minlength=classes)
    counts += np.diag((counts.sum(0) == 0) * 1.0)  # a label of which no row is counted is taken as it is
    joint: Array = counts / counts.sum(0) * frequencies / len(given)
    return joint


def confident_suspects(probabilities: Numbers, labels: Numbers) -> Array:
    """Return how suspect each label is by confident learning: by how much the most probable other class is ahead of it.

    Args:
        probabilities: Those of the classes for rows that were not trained on, ``(n, C)``.
        labels: The label of each row, ``(n,)``.

    Returns:
        Numbers between -1 and 1, the larger the more suspect ("normalized margin" in the paper's code).

    Raises:
        ValueError: If a row is no distribution, a label is no class, or lengths do not match.
    """
    values, given = probabilities_and_labels("confident_suspects", probabilities, labels)
    others = values.copy()
    others[np.arange(len(given)), given] = -np.inf
    margin: Array = others.max(1) - at_labels(values, given)
    return margin


def _confident_classes(values: Array, given: Array) -> tuple[Array, Array]:
    """Return the class that each row is confidently of, and whether there is one."""
    counts = np.bincount(given, minlength=values.shape[1])
    sums = np.bincount(given, at_labels(values, given), minlength=values.shape[1])
    thresholds = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    is_above: Array = np.greater_equal(values, thresholds)
    return np.where(is_above, values, -1.0).argmax(1), np.any(is_above, 1)
