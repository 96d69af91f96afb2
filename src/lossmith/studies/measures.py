"""What is measured of a run that has ended."""

import math

import numpy as np

from lossmith.analysis.calibration import expected_calibration_error
from lossmith.analysis.scores import (
    accuracy,
    balanced_accuracy,
    brier_score,
    logit_negative_log_likelihood,
    negative_log_likelihood,
    top_k_accuracy,
)
from lossmith.training.recipe import Trained

__all__ = ["MEASURES", "measures_of"]

MEASURES = {
    "accuracy": "share of the test split whose class is predicted",
    "top5": "share of the test split whose class is among the five most probable; of more than five classes",
    "balanced_accuracy": "mean over the classes of the share predicted",
    "nll": "negative log-likelihood of the test split, in nats",
    "ece": "expected calibration error, 15 even bins",
    "brier": "Brier score",
    "false_label_accuracy": "accuracy against the true class on training rows whose label is wrong",
    "memorised": "share of the wrong training labels that are predicted",
    "validation_accuracy": "accuracy on the validation split, by which learning rates are chosen",
    "train_accuracy": "accuracy on the training split, on its labels as given",
}
"""Every measure, and what it is."""

GUESSES = 5


def measures_of(trained: Trained, labels: np.ndarray) -> dict[str, float]:
    """Return the measures of a run, on the true labels of the test split and from its curves."""
    probabilities = trained.test_probabilities
    of_curves = ("false_label_accuracy", "memorised", "validation_accuracy", "train_accuracy")
    return {
        "accuracy": accuracy(probabilities, labels),
        "top5": top_k_accuracy(probabilities, labels, GUESSES) if probabilities.shape[1] > GUESSES else math.nan,
        "balanced_accuracy": balanced_accuracy(probabilities, labels),
        "nll": _likelihood(trained, labels),
        "ece": expected_calibration_error(probabilities, labels),
        "brier": brier_score(probabilities, labels),
        **{name: trained.curves[name][trained.epoch - 1] if trained.epoch else math.nan for name in of_curves},
    }


def _likelihood(trained: Trained, labels: np.ndarray) -> float:
    """Return the negative log-likelihood, of the logits where they tell it: a probability may be too small to write down."""
    if trained.predicts_softmax:
        return logit_negative_log_likelihood(trained.test_logits, labels)
    return negative_log_likelihood(trained.test_probabilities, labels)
