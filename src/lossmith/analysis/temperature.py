"""One number that makes probabilities less or more sure, chosen to make the labels as likely as possible.

With ``b = 1 / T`` the mean negative log-likelihood ``f(b)`` of ``softmax(b x)`` is convex, and its slope is the mean of
``E[x] - x_y``, E the expectation under the probabilities. The slope rises from ``mean x - x_y`` at b = 0 to ``max x - x_y`` at
infinity, averaged over examples, so the two ends say where the minimum is before any search.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax

from lossmith.analysis.arrays import Array, Numbers, as_labels, as_matrix, as_probabilities, at_labels
from lossmith.analysis.calibration import expected_calibration_error
from lossmith.analysis.scores import logit_negative_log_likelihood, negative_log_likelihood

__all__ = [
    "TemperatureScaling",
    "best_temperature",
    "cross_fitted_scaling",
    "log_probabilities",
    "scaled_probabilities",
    "temperature_scaling",
    "tempered_likelihood",
]

_EXTREME = 2.0**900


@dataclass(frozen=True)
class TemperatureScaling:
    """Likelihood and calibration before and after division of the logits by the best temperature."""

    temperature: float
    """0 and infinity are limits: see :func:`best_temperature`."""
    nll: float
    ece: float
    scaled_nll: float
    scaled_ece: float


def temperature_scaling(
    logits: Numbers, labels: Numbers, *, fit_on: tuple[Numbers, Numbers] | None = None, bins: int = 15
) -> TemperatureScaling:
    """Return the NLL and the ECE of ``softmax(logits)`` before and after temperature scaling.

    The temperature is chosen on ``fit_on``, logits and labels of a validation split; without it on the examples themselves, as in
    table 3 of Kornblith et al. 2021. For probabilities that are no softmax, pass :func:`log_probabilities` of them.

    Args:
        logits: Scores of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.
        fit_on: Logits and labels that choose the temperature.
        bins: The number of bins of the calibration error.

    Returns:
        The temperature, and both measures before and after.

    Raises:
        ValueError: If lengths do not match, a label is no class, or a logit is not finite.

    >>> scaling = temperature_scaling([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]], [0, 0, 1, 1])
    >>> round(scaling.temperature, 4), round(scaling.scaled_nll, 4)
    (1.8205, 0.5623)
    """
    temperature = best_temperature(*((logits, labels) if fit_on is None else fit_on))
    before, after = scaled_probabilities(logits, 1.0), scaled_probabilities(logits, temperature)
    return TemperatureScaling(
        temperature,
        logit_negative_log_likelihood(logits, labels),
        expected_calibration_error(before, labels, bins),
        _nll(logits, labels, temperature, after),
        expected_calibration_error(after, labels, bins),
    )


def cross_fitted_scaling(
    logits: Numbers, labels: Numbers, *, folds: int = 5, seed: int = 0, bins: int = 15
) -> TemperatureScaling:
    """Return the NLL and the ECE before and after temperature scaling without a validation split, yet honestly.

    The examples are dealt into ``folds``, and the logits of each fold are divided by the temperature that is best for the others.
    Where that is a limit, 0 because all of them are right or infinity, a fold stays as it is. The temperature that is returned is
    the best for all examples.

    Args:
        logits: Scores of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.
        folds: The parts that temperatures are chosen on and judged by in turn, from 2 to n.
        seed: Deals the examples into folds.
        bins: The number of bins of the calibration error.

    Returns:
        The temperature, and both measures before and after.

    Raises:
        ValueError: If ``folds`` is out of its range, lengths do not match, or a logit is not finite.

    >>> scaling = cross_fitted_scaling([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]], [0, 0, 1, 1], folds=2)
    >>> scaling.temperature == best_temperature([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]], [0, 0, 1, 1])
    True
    """
    values = as_matrix("cross_fitted_scaling", "logits", logits)
    truth = as_labels("cross_fitted_scaling", labels, rows=len(values), classes=values.shape[1])
    if not 2 <= folds <= len(values):
        raise ValueError(f"cross_fitted_scaling: folds must be from 2 to the number of examples, {len(values)}, got {folds}.")
    fold = np.random.default_rng(seed).permutation(len(values)) % folds
    scaled = values.copy()
    for number in range(folds):
        inside = fold == number
        temperature = best_temperature(values[~inside], truth[~inside])
        if 0.0 < temperature < np.inf:
            scaled[inside] /= temperature
    return TemperatureScaling(
        best_temperature(values, truth),
        logit_negative_log_likelihood(values, truth),
        expected_calibration_error(scaled_probabilities(values, 1.0), truth, bins),
        logit_negative_log_likelihood(scaled, truth),
        expected_calibration_error(scaled_probabilities(scaled, 1.0), truth, bins),
    )


def tempered_likelihood(logits: Numbers, labels: Numbers, *, weights: Numbers | None = None) -> float:
    """Return the mean log-likelihood of the labels at the temperature that suits them best.

    It tells how much logits know of the labels, whatever their scale: a loss may make a network as sure as it likes. Where every
    label has the largest logit it is 0, the highest there is; where logits are no better than guessing it is that of guessing.

    Args:
        logits: Scores of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.
        weights: How much each example counts, ``(n,)``; all alike without.

    Returns:
        The mean over examples, in nats.

    Raises:
        ValueError: If lengths do not match, a label is no class, a logit is not finite, or a weight is not above 0.

    >>> round(tempered_likelihood([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]], [0, 0, 1, 1]), 4)
    -0.5623
    """
    values = as_matrix("tempered_likelihood", "logits", logits)
    truth = as_labels("tempered_likelihood", labels, rows=len(values), classes=values.shape[1])
    shares = _shares("tempered_likelihood", weights, len(values))
    temperature = best_temperature(values, truth, weights=weights)
    if temperature == 0.0:  # the largest logits share 1, and the label is one of them
        return float(shares @ np.log(at_labels(scaled_probabilities(values, 0.0), truth)))
    return float(shares @ at_labels(log_softmax(values / temperature, axis=1), truth))


def best_temperature(logits: Numbers, labels: Numbers, *, weights: Numbers | None = None) -> float:
    """Return the temperature T > 0 at which ``softmax(logits / T)`` has the least negative log-likelihood, to rounding.

    It is 0 where every label has the largest logit, for then sharper is always better; infinite where the logits are no better
    than guessing, for then flatter is; and 1 where all classes of each example have the same logit, for then it does not matter.

    Args:
        logits: Scores of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.
        weights: How much each example counts, ``(n,)``; all alike without.

    Returns:
        The temperature, 0 and infinity included.

    Raises:
        ValueError: If lengths do not match, a label is no class, a logit is not finite, or a weight is not above 0.

    >>> best_temperature([[1.0, 0.0]], [0]), best_temperature([[1.0, 0.0]], [1]), best_temperature([[1.0, 1.0]], [1])
    (0.0, inf, 1.0)
    """
    values = as_matrix("best_temperature", "logits", logits)
    truth = as_labels("best_temperature", labels, rows=len(values), classes=values.shape[1])
    shares = _shares("best_temperature", weights, len(values))
    # The logits of one example may be shifted, and all of them scaled: differences of order 1 from that of the label.
    differences = values - values[np.arange(len(values)), truth][:, None]
    scale = float(np.abs(differences).max())
    if scale == 0.0:
        return 1.0
    differences /= scale
    if differences.max() <= 0.0:
        return 0.0
    if shares @ differences.mean(1) >= 0.0:
        return float("inf")
    sharpness = _root(lambda sharpness: _slope(differences, shares, sharpness))
    return scale / sharpness if sharpness > 0.0 else float("inf")


def scaled_probabilities(logits: Numbers, temperature: float) -> Array:
    """Return ``softmax(logits / temperature)``; for temperature 0 the limit, which shares 1 between the largest logits.

    Args:
        logits: Scores of the classes, ``(n, C)``.
        temperature: What they are divided by, >= 0.

    Returns:
        A distribution for each example, ``(n, C)``.

    Raises:
        ValueError: If the temperature is negative, or a logit is not finite.

    >>> scaled_probabilities([[3.0, 3.0, 1.0]], 0.0)
    array([[0.5, 0.5, 0. ]])
    """
    if not temperature >= 0.0:
        raise ValueError(f"scaled_probabilities: temperature must be >= 0, got {temperature}.")
    values = as_matrix("scaled_probabilities", "logits", logits)
    values = values - values.max(1, keepdims=True)
    if temperature == 0.0:
        largest = values == 0.0
        return np.asarray(largest / largest.sum(1, keepdims=True))
    return np.asarray(softmax(values / temperature, axis=1))


def log_probabilities(probabilities: Numbers) -> Array:
    """Return the logarithms, which are logits of probabilities; those that are 0 count as the least number of single precision.

    Args:
        probabilities: Those of the classes, ``(n, C)``.

    Returns:
        Logits whose softmax they are, ``(n, C)``.

    Raises:
        ValueError: If a row is no distribution.

    >>> log_probabilities([[1.0, 0.0]]).round(2)
    array([[   0.  , -103.28]])
    """
    smallest = float(np.finfo(np.float32).smallest_subnormal)
    return np.asarray(np.log(np.maximum(as_probabilities("log_probabilities", probabilities), smallest)))


def _shares(owner: str, weights: Numbers | None, rows: int) -> Array:
    """Return what share of a mean each example has."""
    if weights is None:
        return np.full(rows, 1.0 / rows)
    given = np.asarray(weights, float)
    if given.shape != (rows,) or not (np.isfinite(given).all() and given.min() > 0.0):
        raise ValueError(f"{owner}: weights must be {rows} numbers above 0, got {given}.")
    return np.asarray(given / given.sum())


def _slope(differences: Array, shares: Array, sharpness: float) -> float:
    """Return the derivative of the mean NLL with respect to ``sharpness``, of logits relative to that of the label."""
    return float(shares @ (softmax(sharpness * differences, axis=1) * differences).sum(1))


def _root(increasing: Callable[[float], float]) -> float:
    """Return where a function that is negative at 0 and positive at infinity becomes 0, or the end where it does so too near."""
    low, high = 0.5, 1.0
    while increasing(high) < 0.0:
        low, high = high, 2.0 * high
        if high > _EXTREME:
            return float("inf")
    while increasing(low) > 0.0:
        low, high = low / 2.0, low
        if low < 1.0 / _EXTREME:
            return 0.0
    return float(brentq(increasing, low, high, xtol=1e-15 * high, rtol=1e-15))


def _nll(logits: Numbers, labels: Numbers, temperature: float, probabilities: Array) -> float:
    # A limit that was chosen on other examples may rule out a label: then it is infinite.
    if temperature == 0.0 or np.isinf(temperature):
        return negative_log_likelihood(probabilities, labels)
    return logit_negative_log_likelihood(logits, labels, temperature=temperature)
