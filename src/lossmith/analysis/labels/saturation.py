"""How many labels are wrong: where agreement with labels stops growing although predictions become more certain.

A prediction that is as certain as can be is right, so that what it disagrees with is a wrong label. Less certain ones are wrong
themselves, too. Rows are put in the order of how certain their prediction is. At the rank u, between 0 and 1, a prediction is
taken to be wrong with probability

    error(u) = (1 - 1/K) sigmoid(-(centre + spread * normal_quantile(u))),

and to agree with a label that is wrong at the rate eta with probability

    (1 - eta) (1 - error(u)) + eta / (K - 1) error(u).

Three numbers, whose likelihood is summed up on a grid. Psychologists fit such a curve to people who press the wrong
button at times although they see well; the rate of that is called the lapse rate.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from lossmith.analysis.arrays import Array

__all__ = ["Saturation", "fit_saturation"]

BINS = 40
RATES = np.linspace(0.0, 0.8, 81)
CENTRES = np.linspace(-1.0, 9.0, 41)
SPREADS = np.array([0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0])
# Most classifiers of tables have a centre of 1 to 5 and a spread of 1 to 4, whatever the noise. It matters only where the data is
# silent, at high rates or with few rows.
_CENTRE, _OF_CENTRES = 2.0, 1.5
_SPREAD, _OF_SPREADS = 2.0, 0.5
_LIKELIHOOD = 0.6
"""The power of the likelihood: the curve is a model, and without this 95 % intervals held the rate 85 times in 100."""


@dataclass(frozen=True)
class Saturation:
    """What the curve says."""

    rate: float
    """The share of wrong labels, the mean over all curves that the data allows."""
    interval: tuple[float, float]
    """Where it is with 95 %."""
    error: float
    """The share of predictions that are wrong themselves, whatever the labels."""


def fit_saturation(certainty: Array, agrees: Array, num_classes: int) -> Saturation:
    """Fit the curve.

    Args:
        certainty: How certain each prediction is, on any scale.
        agrees: Whether it is the label.
        num_classes: How many classes there are, 2 at least.

    Returns:
        The share of wrong labels, and that of wrong predictions.
    """
    order = np.argsort(certainty, kind="stable")
    edges = np.unique(np.linspace(0, len(order), min(BINS, len(order)) + 1).astype(int))
    sizes = np.diff(edges)
    hits = np.add.reduceat(agrees[order].astype(float), edges[:-1])
    quantiles = norm.ppf((edges[:-1] + edges[1:]) / 2 / len(order))
    posterior = _posterior(hits, sizes, quantiles, num_classes)
    by_rate = posterior.sum((1, 2))
    errors = np.einsum("cs,csb->b", posterior.sum(0), _errors(quantiles, num_classes))
    return Saturation(float(by_rate @ RATES), _interval(by_rate), float(errors @ sizes / sizes.sum()))


def _errors(quantiles: Array, num_classes: int) -> Array:
    """Return the error at each quantile, ``(centres, spreads, bins)``."""
    certain = CENTRES[:, None, None] + SPREADS[None, :, None] * quantiles
    found: Array = (1 - 1 / num_classes) * expit(-certain)
    return found


def _posterior(hits: Array, sizes: Array, quantiles: Array, num_classes: int) -> Array:
    """Return how probable each curve is, ``(rates, centres, spreads)``."""
    errors = _errors(quantiles, num_classes)
    prior = -0.5 * ((CENTRES[:, None] - _CENTRE) / _OF_CENTRES) ** 2 - 0.5 * (np.log(SPREADS / _SPREAD) / _OF_SPREADS) ** 2
    logs = np.empty((len(RATES), *prior.shape))
    for number, rate in enumerate(RATES):
        agreement = np.clip((1 - rate) * (1 - errors) + rate / (num_classes - 1) * errors, 1e-9, 1 - 1e-9)
        logs[number] = prior + _LIKELIHOOD * (np.log(agreement) @ hits + np.log1p(-agreement) @ (sizes - hits))
    weights = np.exp(logs - logs.max())
    found: Array = weights / weights.sum()
    return found


def _interval(by_rate: Array) -> tuple[float, float]:
    """Return the rates between which 95 % lie, each rate of the grid standing for all that are nearest to it."""
    step = RATES[1] / 2
    ends = np.concatenate([[0.0], np.cumsum(by_rate)])
    places = np.concatenate([[max(RATES[0] - step, 0.0)], RATES + step])
    low, high = np.interp([0.025, 0.975], ends, places)
    return float(low), float(high)
