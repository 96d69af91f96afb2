"""Accuracy by how frequent classes are among the training rows: many, medium, few."""

from typing import Protocol

import numpy as np
import pandas as pd

from lossmith.analysis.run_tables import by_loss

__all__ = ["FrequencyStudy", "accuracy_by_frequency", "frequency_groups"]


class FrequencyStudy(Protocol):
    """A study, as far as its classes matter."""

    @property
    def results(self) -> pd.DataFrame: ...  # noqa: D102 - as Study has them
    @property
    def class_rows(self) -> tuple[int, ...]: ...  # noqa: D102
    def test_labels(self, seed: int = 0) -> np.ndarray: ...  # noqa: D102
    def test_probabilities(self, run: int) -> np.ndarray: ...  # noqa: D102


def frequency_groups(class_rows: tuple[int, ...]) -> dict[str, list[int]]:
    """Divide classes by their training rows: a third of them is frequent, a third rare, the rest between the two.

    Args:
        class_rows: How many training rows each class has.

    Returns:
        The classes of ``many``, ``medium`` and ``few``, from the most frequent to the rarest; without groups that are empty.

    >>> frequency_groups((5, 500, 50, 20))
    {'many': [1], 'medium': [2, 3], 'few': [0]}
    >>> frequency_groups((900, 100))
    {'many': [0], 'few': [1]}
    """
    order = sorted(range(len(class_rows)), key=lambda label: -class_rows[label])
    third = max(1, len(order) // 3)
    groups = {"many": order[:third], "medium": order[third:-third], "few": order[-third:]}
    return {name: classes for name, classes in groups.items() if classes}


def accuracy_by_frequency(study: FrequencyStudy, noise: str) -> pd.DataFrame:
    """Return the accuracy of each loss on frequent and on rare classes.

    Args:
        study: The study, whose file tells how many training rows each class has.
        noise: The label noise.

    Returns:
        A row for each loss, columns ``(group, mean or se)``: the mean accuracy of the classes of a group, over the replicates.

    Raises:
        ValueError: If there are no results, or the study does not know how frequent its classes are.
    """
    if len(study.class_rows) < 2:
        raise ValueError("accuracy_by_frequency: the study must know how many training rows each class has, got none.")
    groups = frequency_groups(study.class_rows)
    runs = study.results[study.results["noise"] == noise]
    measured = []
    for loss, run, seed in zip(runs["loss"], runs["run"], runs["seed"], strict=True):
        found = _class_accuracies(study.test_labels(seed), study.test_probabilities(run), len(study.class_rows))
        measured.append((loss, {name: float(np.nanmean(found[classes])) for name, classes in groups.items()}))
    return by_loss(measured)


def _class_accuracies(labels: np.ndarray, probabilities: np.ndarray, num_classes: int) -> np.ndarray:
    """Return the share of each class that is predicted; NaN for a class without test rows."""
    rows = np.bincount(labels, minlength=num_classes)
    right = np.bincount(labels[probabilities.argmax(1) == labels], minlength=num_classes)
    return np.where(rows > 0, right / np.maximum(rows, 1), np.nan)
