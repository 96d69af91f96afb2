"""Calibration and accuracy against double loops, scikit-learn, SciPy and torchmetrics."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, f1_score, log_loss, top_k_accuracy_score
from torchmetrics.functional.classification import multiclass_calibration_error

from lossmith.analysis import (
    CalibrationBins,
    accuracy,
    adaptive_calibration_error,
    balanced_accuracy,
    brier_score,
    classwise_calibration_error,
    expected_calibration_error,
    logit_negative_log_likelihood,
    macro_f1,
    negative_log_likelihood,
    reliability_diagram,
    top_k_accuracy,
)

ERRORS = [expected_calibration_error, classwise_calibration_error, adaptive_calibration_error]


def predictions(rows=200, classes=5, seed=0):
    random = np.random.default_rng(seed)
    logits = 2.0 * random.normal(size=(rows, classes))
    return logits, softmax(logits, 1), random.integers(classes, size=rows)


def calibration_error_by_loops(confidences, right, bins):
    total = 0.0
    for m in range(bins):
        members = [i for i, c in enumerate(confidences) if (m / bins < c or m == 0) and (c <= (m + 1) / bins or m == bins - 1)]
        if members:
            gap = abs(sum(confidences[i] for i in members) - sum(right[i] for i in members))
            total += gap / len(confidences)
    return total


@pytest.mark.parametrize("bins", [1, 2, 15, 100])
def test_calibration_errors_against_loops(bins):
    _, probabilities, labels = predictions()
    top, right = probabilities.max(1), probabilities.argmax(1) == labels
    assert expected_calibration_error(probabilities, labels, bins) == pytest.approx(
        calibration_error_by_loops(top, right, bins), abs=1e-14
    )
    by_class = [calibration_error_by_loops(probabilities[:, c], labels == c, bins) for c in range(5)]
    assert classwise_calibration_error(probabilities, labels, bins) == pytest.approx(np.mean(by_class), abs=1e-14)


def test_adaptive_bins_hold_equally_many():
    _, probabilities, labels = predictions(rows=50)
    order = np.argsort(probabilities.max(1))
    gap = (probabilities.max(1) - (probabilities.argmax(1) == labels))[order]
    expected = sum(abs(gap[start : start + 10].sum()) for start in range(0, 50, 10)) / 50
    assert adaptive_calibration_error(probabilities, labels, bins=5) == pytest.approx(expected, abs=1e-14)


@given(st.permutations(range(12)))
@settings(max_examples=30, deadline=None)
def test_adaptive_error_does_not_depend_on_the_order_of_ties(order):
    probabilities = np.repeat([[0.75, 0.25], [0.5, 0.5]], 6, axis=0)
    labels = np.array([0, 0, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0])
    order = list(order)
    expected = adaptive_calibration_error(probabilities, labels, bins=5)
    assert adaptive_calibration_error(probabilities[order], labels[order], bins=5) == pytest.approx(expected, abs=1e-15)


def test_expected_calibration_error_agrees_with_torchmetrics_away_from_edges():
    _, probabilities, labels = predictions(rows=1000)
    theirs = multiclass_calibration_error(torch.from_numpy(probabilities), torch.from_numpy(labels), 5, n_bins=15)
    assert expected_calibration_error(probabilities, labels) == pytest.approx(float(theirs), abs=1e-6)


def test_confidence_one_is_in_the_last_bin():
    """Sure and wrong beside nearly sure and right: (1 + 0.97 - 1) / 2. In a bin of its own the gap would be 0.515."""
    probabilities, labels = [[1.0, 0.0], [0.97, 0.03]], [1, 0]
    assert expected_calibration_error(probabilities, labels) == pytest.approx(0.485)
    assert reliability_diagram(probabilities, labels).counts[-1] == 2


def test_edges_belong_to_the_bin_below():
    diagram = reliability_diagram([[0.5, 0.5], [0.75, 0.25]], [0, 0], bins=4)
    assert diagram.counts.tolist() == [0, 1, 1, 0]
    assert diagram.edges.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_likelihood_and_brier_against_scikit_learn():
    logits, probabilities, labels = predictions()
    reference = log_loss(labels, probabilities, labels=range(5))
    assert negative_log_likelihood(probabilities, labels) == pytest.approx(reference, rel=1e-12)
    assert logit_negative_log_likelihood(logits, labels) == pytest.approx(reference, rel=1e-12)
    warm = log_loss(labels, softmax(logits / 3.0, 1), labels=range(5))
    assert logit_negative_log_likelihood(logits, labels, temperature=3.0) == pytest.approx(warm, rel=1e-12)
    brier = brier_score_loss(labels, probabilities, labels=range(5), scale_by_half=False)
    assert brier_score(probabilities, labels) == pytest.approx(brier, rel=1e-12)


def test_impossible_label():
    assert negative_log_likelihood([[0.0, 1.0]], [0]) == math.inf
    assert logit_negative_log_likelihood([[0.0, 2000.0]], [0]) == 2000.0
    assert brier_score([[0.0, 1.0]], [0]) == 2.0


def test_small_likelihoods_keep_their_digits():
    assert logit_negative_log_likelihood([[50.0, 0.0]], [0]) == pytest.approx(math.log1p(math.exp(-50.0)), rel=1e-12)


def test_scores_against_scikit_learn():
    logits, _, labels = predictions()
    predicted = logits.argmax(1)
    assert accuracy(logits, labels) == accuracy(predicted, labels) == np.mean(predicted == labels)
    assert balanced_accuracy(logits, labels) == pytest.approx(balanced_accuracy_score(labels, predicted), rel=1e-14)
    assert macro_f1(logits, labels) == pytest.approx(f1_score(labels, predicted, average="macro"), rel=1e-14)
    for k in (1, 2, 4):
        assert top_k_accuracy(logits, labels, k) == pytest.approx(top_k_accuracy_score(labels, logits, k=k), rel=1e-7)
    assert top_k_accuracy(logits, labels, k=9) == 1.0


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(2, 8))
@settings(max_examples=60, deadline=None)
def test_macro_f1_where_classes_are_missing(seed, rows, classes):
    generator = np.random.default_rng(seed)
    predicted, labels = generator.integers(classes, size=(2, rows))
    expected = f1_score(labels, predicted, average="macro", zero_division=0.0)
    assert macro_f1(predicted, labels) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_tensors_of_any_precision(dtype):
    _, probabilities, labels = predictions(rows=50)
    rounded = torch.from_numpy(probabilities).to(dtype).requires_grad_()
    for function in (*ERRORS, negative_log_likelihood, brier_score, accuracy, balanced_accuracy, macro_f1):
        got = function(rounded, torch.from_numpy(labels))
        assert got == pytest.approx(function(probabilities, labels), abs=0.01 if dtype is torch.bfloat16 else 2e-3)
        assert type(got) is float


def test_batches_add_up():
    _, probabilities, labels = predictions()
    bins = CalibrationBins()
    for rows in np.array_split(np.arange(200), 7):
        bins.update(probabilities[rows], labels[rows])
    whole, parts = reliability_diagram(probabilities, labels), bins.diagram()
    assert (whole.counts == parts.counts).all()
    np.testing.assert_allclose(parts.confidence, whole.confidence, rtol=1e-13)
    np.testing.assert_allclose(parts.accuracy, whole.accuracy, rtol=1e-13)
    assert parts.maximum_calibration_error >= parts.expected_calibration_error > 0


@pytest.mark.parametrize("function", ERRORS)
def test_degenerate_input(function):
    assert function([[1.0]], [0]) == 0.0  # one class, one example
    assert function([[1.0, 0.0]] * 3, [0, 0, 0]) == 0.0  # always sure, always right
    assert function([[1.0, 0.0]] * 3, [1, 1, 1]) == 1.0  # always sure, always wrong
    assert function([[0.25] * 4] * 4, [0, 1, 2, 3]) == pytest.approx(0.0, abs=1e-15)  # knows nothing and says so


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 6), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_errors_are_between_zero_and_one(seed, rows, classes, bins):
    _, probabilities, labels = predictions(rows, classes, seed)
    for function in ERRORS:
        assert 0.0 <= function(probabilities, labels, bins) <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.5, 0.6]], [0]), "probabilities must sum to 1 in each row, got 1.1."),
        (([[3.0, -2.0]], [0]), "probabilities must be in [0, 1], got -2 to 3."),
        (([[math.nan, 1.0]], [0]), "probabilities must be finite, got 1 values that are not."),
        (([0.5, 0.5], [0]), "probabilities must be (n, d) with n, d >= 1, got shape (2,)."),
        ((np.zeros((0, 3)), []), "probabilities must be (n, d) with n, d >= 1, got shape (0, 3)."),
        (([[0.5, 0.5]], [2]), "labels must be in [0, 2), got 2."),
        (([[0.5, 0.5]], [-1]), "labels must be in [0, 2), got -1."),
        (([[0.5, 0.5]], [0, 1]), "labels must have 1 entries, one for each row, got 2."),
        (([[0.5, 0.5]], [0.0]), "labels must be integers, got float64."),
    ],
)
def test_bad_input(arguments, message):
    for function in (negative_log_likelihood, brier_score, classwise_calibration_error):
        with pytest.raises((ValueError, TypeError)) as error:
            function(*arguments)
        assert str(error.value) == f"{function.__name__}: {message}"


def test_bad_bins_and_temperature():
    with pytest.raises(ValueError, match=r"^CalibrationBins: bins must be >= 1, got 0\.$"):
        expected_calibration_error([[1.0]], [0], bins=0)
    with pytest.raises(ValueError, match=r"^CalibrationBins: no examples were added\.$"):
        CalibrationBins().diagram()
    with pytest.raises(ValueError, match=r"^logit_negative_log_likelihood: temperature must be > 0, got 0\.0\.$"):
        logit_negative_log_likelihood([[1.0]], [0], temperature=0.0)
