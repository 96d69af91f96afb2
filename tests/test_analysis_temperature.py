"""Temperature scaling: the minimum is the minimum, and its limits are what they are said to be."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from lossmith.analysis import expected_calibration_error, logit_negative_log_likelihood, negative_log_likelihood
from lossmith.analysis.temperature import (
    best_temperature,
    cross_fitted_scaling,
    log_probabilities,
    scaled_probabilities,
    temperature_scaling,
    tempered_likelihood,
)


def noisy_logits(rows=300, classes=4, scale=6.0, seed=0):
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=rows)
    return scale * (np.eye(classes)[labels] + random.normal(size=(rows, classes))), labels


@pytest.mark.parametrize("scale", [1e-6, 0.3, 6.0, 1e8])
def test_minimum_against_a_search(scale):
    logits, labels = noisy_logits(scale=scale)
    search = minimize_scalar(lambda t: logit_negative_log_likelihood(logits, labels, temperature=scale * math.exp(t)), tol=1e-10)
    assert best_temperature(logits, labels) == pytest.approx(scale * math.exp(search.x), rel=1e-6)


@given(st.integers(0, 1000), st.floats(0.01, 100.0), st.floats(-50.0, 50.0))
@settings(max_examples=40, deadline=None)
def test_scaling_and_shifting_logits(seed, factor, shift):
    logits, labels = noisy_logits(rows=40, seed=seed)
    temperature = best_temperature(logits, labels)
    assert best_temperature(factor * logits + shift, labels) == pytest.approx(factor * temperature, rel=1e-9)


@given(st.integers(0, 1000), st.integers(1, 30), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_scaling_never_hurts_the_likelihood(seed, rows, classes):
    random = np.random.default_rng(seed)
    result = temperature_scaling(random.normal(size=(rows, classes)), random.integers(classes, size=rows))
    assert result.scaled_nll <= result.nll + 1e-14
    assert 0.0 <= result.scaled_ece <= 1.0


def test_slope_at_the_minimum_is_rounding():
    """Newton's decrement ``slope**2 / curvature`` bounds how far the likelihood is from its minimum."""
    logits, labels = noisy_logits()
    temperature = best_temperature(logits, labels)
    step = 1e-4 * temperature
    below, at, above = (logit_negative_log_likelihood(logits, labels, temperature=temperature + d) for d in (-step, 0.0, step))
    assert at < min(below, above)
    probabilities = softmax(logits / temperature, 1)
    slope = ((probabilities - np.eye(4)[labels]) * logits).sum(1).mean()
    assert abs(slope) < 1e-13 * np.abs(logits).max()


def test_limits():
    assert best_temperature([[2.0, 1.0], [0.0, 5.0]], [0, 1]) == 0.0
    assert best_temperature([[2.0, 1.0], [0.0, 5.0]], [1, 0]) == math.inf
    assert best_temperature([[2.0, 2.0], [7.0, 7.0]], [1, 0]) == 1.0
    assert best_temperature([[2.0]], [0]) == 1.0
    right = temperature_scaling([[2.0, 1.0], [0.0, 5.0]], [0, 1])
    assert (right.scaled_nll, right.scaled_ece) == (0.0, 0.0)
    wrong = temperature_scaling([[2.0, 1.0], [0.0, 5.0]], [1, 0])
    assert wrong.scaled_nll == pytest.approx(math.log(2.0))
    tied = temperature_scaling([[2.0, 2.0, 1.0]], [0])
    assert tied.scaled_nll == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("gap", [1e-300, 1e-12])
def test_extreme_ratios_end(gap):
    assert best_temperature([[1.0, 0.0], [0.0, gap]], [0, 0]) >= 0.0
    assert best_temperature([[0.0, gap], [0.0, 1.0]], [1, 0]) > 1.0


def test_validation_split_chooses():
    logits, labels = noisy_logits()
    fit, fit_labels = noisy_logits(seed=1)
    result = temperature_scaling(logits, labels, fit_on=(fit, fit_labels))
    assert result.temperature == best_temperature(fit, fit_labels) != best_temperature(logits, labels)
    scaled = softmax(logits / result.temperature, 1)
    assert result.scaled_nll == pytest.approx(negative_log_likelihood(scaled, labels), rel=1e-12)
    assert result.scaled_ece == pytest.approx(expected_calibration_error(scaled, labels), rel=1e-12)


def test_sure_on_validation_wrong_on_test():
    result = temperature_scaling([[0.0, 1.0]], [0], fit_on=([[1.0, 0.0]], [0]))
    assert (result.temperature, result.scaled_nll) == (0.0, math.inf)


def test_log_probabilities_are_logits():
    logits, _ = noisy_logits()
    probabilities = softmax(logits, 1)
    np.testing.assert_allclose(softmax(log_probabilities(probabilities), 1), probabilities, rtol=1e-12)
    assert np.isfinite(log_probabilities([[1.0, 0.0]])).all()


def test_bad_temperature():
    with pytest.raises(ValueError, match=r"^scaled_probabilities: temperature must be >= 0, got nan\.$"):
        scaled_probabilities([[1.0]], math.nan)


class TestCrossFitting:
    def test_every_fold_is_scaled_by_what_is_best_for_the_others(self):
        logits, labels = noisy_logits(rows=101)
        fold = np.random.default_rng(3).permutation(101) % 4
        scaled = np.empty_like(logits)
        for row, number in enumerate(fold):
            others = fold != number
            found = minimize_scalar(
                lambda t, others=others: logit_negative_log_likelihood(logits[others], labels[others], temperature=math.exp(t)),
                tol=1e-10,
            )
            scaled[row] = logits[row] / math.exp(found.x)
        scaling = cross_fitted_scaling(logits, labels, folds=4, seed=3)
        chosen = -np.log(softmax(scaled, axis=1)[np.arange(101), labels])
        assert scaling.scaled_nll == pytest.approx(chosen.mean(), rel=1e-6)
        assert scaling.scaled_ece == pytest.approx(expected_calibration_error(softmax(scaled, axis=1), labels), abs=1e-6)
        before = temperature_scaling(logits, labels)
        assert (scaling.nll, scaling.ece, scaling.temperature) == (before.nll, before.ece, before.temperature)
        assert before.scaled_nll < scaling.scaled_nll < scaling.nll  # honest, and still of use

    def test_a_single_mistake_does_not_become_infinitely_unlikely(self):
        logits, labels = np.eye(2)[[0, 1] * 10] * 3.0, np.array([0, 1] * 10)
        labels[0] = 1  # the fold with the mistake has nothing to learn from: all others are right
        scaling = cross_fitted_scaling(logits, labels)
        assert np.isfinite(scaling.scaled_nll)

    def test_what_is_always_right_stays_as_it_is(self):
        logits, labels = np.eye(3)[[0, 1, 2] * 4], np.array([0, 1, 2] * 4)
        scaling = cross_fitted_scaling(logits, labels)
        assert scaling.temperature == 0.0
        assert (scaling.scaled_nll, scaling.scaled_ece) == (scaling.nll, scaling.ece)

    @pytest.mark.parametrize("folds", [1, 13])
    def test_folds(self, folds):
        message = rf"^cross_fitted_scaling: folds must be from 2 to the number of examples, 12, got {folds}\.$"
        with pytest.raises(ValueError, match=message):
            cross_fitted_scaling(np.zeros((12, 2)), np.zeros(12, int), folds=folds)


@given(st.integers(0, 1000), st.integers(1, 30), st.integers(1, 5), st.floats(0.01, 100.0))
@settings(max_examples=60, deadline=None)
def test_the_tempered_likelihood_is_that_of_the_best_temperature_on_any_scale(seed, rows, classes, factor):
    random = np.random.default_rng(seed)
    logits, labels = random.normal(size=(rows, classes)), random.integers(classes, size=rows)
    expected = -temperature_scaling(logits, labels).scaled_nll
    assert tempered_likelihood(logits, labels) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert tempered_likelihood(factor * logits, labels) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_weights_count_rows_several_times():
    logits, labels = noisy_logits(rows=50)
    times = np.random.default_rng(1).integers(1, 4, size=50)
    repeated = np.repeat(logits, times, axis=0), np.repeat(labels, times)
    assert best_temperature(logits, labels, weights=times) == pytest.approx(best_temperature(*repeated), rel=1e-12)
    assert tempered_likelihood(logits, labels, weights=times) == pytest.approx(tempered_likelihood(*repeated), rel=1e-12)


def test_limits_of_the_tempered_likelihood():
    assert tempered_likelihood([[2.0, 1.0], [0.0, 5.0]], [0, 1]) == 0.0
    assert tempered_likelihood([[2.0, 1.0], [0.0, 5.0]], [1, 0]) == pytest.approx(-math.log(2))
    assert tempered_likelihood([[3.0, 3.0, 0.0]], [0]) == pytest.approx(-math.log(2))  # two classes share the largest logit


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, math.nan], [1.0, -1.0]])
def test_weights_are_positive_numbers_one_for_each_row(weights):
    with pytest.raises(ValueError, match="weights must be 2 numbers above 0, got"):
        tempered_likelihood([[1.0, 0.0], [0.0, 1.0]], [0, 1], weights=weights)
