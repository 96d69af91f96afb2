"""What is measured of a run that has ended."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lossmith.analysis.calibration import expected_calibration_error
from lossmith.analysis.scores import (
    accuracy,
    balanced_accuracy,
    brier_score,
    logit_negative_log_likelihood,
    macro_f1,
    negative_log_likelihood,
    top_k_accuracy,
)
from lossmith.analysis.temperature import log_probabilities, tempered_likelihood
from lossmith.expressions.nearest import nearest
from lossmith.statistics.trial_frames import score_error
from lossmith.training.merit import NO_MERIT, Merit
from lossmith.training.recipe import Trained

__all__ = [
    "MEASURES",
    "METRICS",
    "OF_PROBABILITIES",
    "measures_of",
    "measures_of_curves",
    "measures_of_predictions",
    "merit_of",
    "merit_of_stored",
    "score_of",
    "validation_measures",
]

MEASURES = {
    "accuracy": "share of the test split whose class is predicted",
    "top5": "share of the test split whose class is among the five most probable; of more than five classes",
    "balanced_accuracy": "mean over the classes of the share predicted",
    "macro_f1": "mean over the classes of the F1 score, in which precision and recall count alike",
    "nll": "negative log-likelihood of the test split, in nats",
    "ece": "expected calibration error, 15 even bins",
    "brier": "Brier score",
    "false_label_accuracy": "accuracy against the true class on training rows whose label is wrong",
    "memorised": "share of the wrong training labels that are predicted",
    "validation_accuracy": "accuracy on the validation split, on its labels as given",
    "validation_score": "what settings are chosen by: the study's metric on the validation split, higher being better",
    "validation_error": "the standard error of the validation score",
    "validation_likelihood": "log-likelihood of the validation split at the best temperature: decides where scores are near",
    "train_accuracy": "accuracy on the training split, on its labels as given",
}
"""Every measure, and what it is."""

METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "nll", "brier", "top5")
"""The measures by which a study may choose and judge."""

OF_MERIT = ("validation_score", "validation_error", "validation_likelihood")
"""The measures that trials are chosen by."""
OF_PROBABILITIES = ("nll", "brier")
OF_CLASSES = ("balanced_accuracy", "macro_f1")
"""Metrics that judge probabilities, and those in which all classes count alike, however rare."""

GUESSES = 5


def measures_of(trained: Trained, labels: np.ndarray) -> dict[str, float]:
    """Return the measures of a run, on the true labels of the test split and from its curves."""
    return {**measures_of_predictions(trained, labels), **measures_of_curves(trained), "memory": trained.memory}


def measures_of_curves(trained: Trained) -> dict[str, float]:
    """Return what the curves of a run show at the epoch that counts; NaN where they show nothing."""
    of_curves = ("false_label_accuracy", "memorised", "validation_accuracy", "train_accuracy")
    place = trained.epoch - 1
    return {name: trained.curves[name][place] if 0 <= place < len(trained.curves[name]) else math.nan for name in of_curves}


def measures_of_predictions(trained: Trained, labels: np.ndarray) -> dict[str, float]:
    """Return the measures of a run on the true labels of the test split."""
    probabilities = trained.test_probabilities
    return {
        "accuracy": accuracy(probabilities, labels),
        "top5": top_k_accuracy(probabilities, labels, GUESSES) if probabilities.shape[1] > GUESSES else math.nan,
        "balanced_accuracy": balanced_accuracy(probabilities, labels),
        "macro_f1": macro_f1(probabilities, labels),
        "nll": _likelihood(trained, labels),
        "ece": expected_calibration_error(probabilities, labels),
        "brier": brier_score(probabilities, labels),
    }


def validation_measures(metric: str, trained: Trained, labels: np.ndarray) -> dict[str, float]:
    """Return what is measured on the validation rows at the end of a run.

    Args:
        metric: One of :data:`METRICS`.
        trained: The run.
        labels: The labels of the rows, as given to the run.

    Returns:
        ``validation_score``, ``validation_error`` and ``validation_likelihood``, NaN where the run diverged or there are no
        rows, and ``commonest_predicted``, the share of the class that is predicted most often.
    """
    probabilities = trained.validation_probabilities
    if trained.diverged or not len(labels) or not np.isfinite(probabilities).all():
        return dict.fromkeys((*OF_MERIT, "commonest_predicted"), math.nan)
    predicted = np.bincount(probabilities.argmax(1))
    merit = merit_of(metric, probabilities, labels)
    return {**dict(zip(OF_MERIT, merit[:3], strict=True)), "commonest_predicted": float(predicted.max() / len(labels))}


def score_of(metric: str, probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Return how good predictions are by a metric, higher being better: losses have their sign changed.

    Args:
        metric: One of :data:`METRICS`.
        probabilities: Those of the classes, ``(n, C)``.
        labels: The class of each row, ``(n,)``.

    Returns:
        A number by which models can be ordered; of ``top5``, 1 where there are no more than five classes.

    Raises:
        ValueError: If the metric is none of these, a row is no distribution, or lengths do not match.

    >>> score_of("brier", np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 0]))
    -0.25
    """
    if metric not in _SCORES:
        raise ValueError(f"score_of: metric must be one of {', '.join(METRICS)}, got {metric!r}{nearest(metric, METRICS)}")
    return _SCORES[metric](probabilities, labels)


def merit_of(metric: str, probabilities: np.ndarray, labels: np.ndarray) -> Merit:
    """Return what validation rows say of a model that is to be good by a metric.

    The likelihood is taken at the temperature that suits the labels best, so that it does not matter how sure of itself a loss
    makes a network, up to probabilities too small for single precision, which count as its least number. Where classes count
    alike in the metric, they do so in the likelihood. Metrics of probabilities have none besides themselves.

    Args:
        metric: One of :data:`METRICS`.
        probabilities: Those of the classes, ``(n, C)``.
        labels: The class of each row, ``(n,)``.

    Returns:
        Its score, and the likelihood that decides between models with about the same one.

    Raises:
        ValueError: If the metric is none of these, a row is no distribution, or lengths do not match.

    >>> merit = merit_of("accuracy", np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1]))
    >>> merit.score, round(merit.error, 4), round(merit.likelihood, 4)
    (0.5, 0.3536, -0.3466)
    """
    score = score_of(metric, probabilities, labels)
    error = float(score_error(score, len(labels), metric))
    if metric in OF_PROBABILITIES:
        return Merit(score, error)
    weights = 1.0 / np.bincount(labels)[labels] if metric in OF_CLASSES else None
    likelihood = tempered_likelihood(log_probabilities(probabilities), labels, weights=weights)
    return Merit(score, error, likelihood)


def merit_of_stored(run: Mapping[str, Any]) -> Merit:
    """Return the merit of a run as the file of a study has it: one of earlier versions has no likelihood."""
    if run["diverged"]:
        return NO_MERIT
    merit = Merit(*(float(run.get(name, math.nan)) for name in OF_MERIT))
    return merit.beside(*(float(run.get(name, math.nan)) for name in ("train_accuracy", "validation_accuracy")))


_SCORES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "macro_f1": macro_f1,
    "nll": lambda probabilities, labels: -negative_log_likelihood(probabilities, labels),
    "brier": lambda probabilities, labels: -brier_score(probabilities, labels),
    "top5": lambda probabilities, labels: top_k_accuracy(probabilities, labels, GUESSES),
}


def _likelihood(trained: Trained, labels: np.ndarray) -> float:
    """Return the negative log-likelihood, of the logits where they tell it: a probability may be too small to write down."""
    if trained.predicts_softmax:
        return logit_negative_log_likelihood(trained.test_logits, labels)
    return negative_log_likelihood(trained.test_probabilities, labels)
