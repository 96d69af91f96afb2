"""The mean probability of a class whose logit carries a bias, and the bias that gives a wanted mean, for any number of classes.

With logits ``sigma z``, z standard normal, the class k has the probability ``A / (A + S)``: A is log-normal, times
``exp(epsilon)``, and S is the sum of K - 1 log-normal numbers X. Because ``A / (A + S)`` is the integral of
``A exp(-t A) exp(-t S)`` over t > 0, S enters its mean only through a function of one number, ``phi(t) = E exp(-t X)``. With
``t = exp(u)``

    E A / (A + S) = integral of g(u + epsilon) phi(exp(u))**(K-1) du,   g(v) = E[x exp(-x)] for x = exp(v) X.

Both integrands, over u and over z, are analytic in a strip around the real line and decay on both sides, so the trapezoidal
rule converges geometrically: a smaller step, which gives the error, changes only the last digits.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lossmith.numerics.bracketed_root import bracketed_root

__all__ = ["SolvedBias", "bias_for_mean_activation", "mean_activation"]

Array = NDArray[np.float64]

# exp(-45) is below the rounding of 1, and so is the normal density at 9.
NEGLIGIBLE_LOG = 45.0
NORMAL_REACH = 9.0
# Steps of the trapezoidal rule: with the second one its error is about exp(-2 pi (pi/2) / step), far below rounding.
STEPS = (0.3, 0.2)


class SolvedBias(NamedTuple):
    """A logit bias and how far off it may be."""

    epsilon: float
    error: float


def mean_activation(epsilon: float, num_classes: int, sigma: float = 1.0) -> float:
    """Return the mean softmax probability of a class with logit ``sigma z + epsilon``, the others having ``sigma z``.

    Args:
        epsilon: The logit bias.
        num_classes: How many classes there are, at least 2.
        sigma: Standard deviation of the logits, >= 0.

    Returns:
        A probability.

    >>> round(mean_activation(0.0, num_classes=8), 12)
    0.125
    """
    return _Integral(num_classes, sigma, abs(epsilon), STEPS[-1])(epsilon)


def bias_for_mean_activation(mean: float, num_classes: int, sigma: float = 1.0) -> SolvedBias:
    """Return the epsilon for which :func:`mean_activation` is ``mean``.

    Args:
        mean: The wanted probability, in (0, 1).
        num_classes: How many classes there are, at least 2.
        sigma: Standard deviation of the logits, >= 0.

    Returns:
        The bias, with a bound of its error.

    >>> round(bias_for_mean_activation(0.15, num_classes=1000).epsilon, 3)
    5.358
    """
    # Exact where sigma = 0; and E 1 / (1 + exp(x)) is within the reach of the normal density of that of its median.
    middle = math.log(num_classes - 1) + math.log(mean) - math.log1p(-mean)
    reach = NORMAL_REACH * sigma + sigma**2 + 1
    largest = abs(middle) + reach
    coarse, fine = (_root(_Integral(num_classes, sigma, largest, step), mean, middle, reach) for step in STEPS)
    return SolvedBias(fine, abs(fine - coarse) + 1e-12)


def _root(integral: "_Integral", mean: float, middle: float, reach: float) -> float:
    return bracketed_root(lambda epsilon: integral(epsilon) - mean, middle - reach, middle + reach)


class _Integral:
    """The mean activation as a function of epsilon, with what does not depend on epsilon computed once."""

    def __init__(self, num_classes: int, sigma: float, largest_epsilon: float, step: float) -> None:
        self._normals = np.arange(-NORMAL_REACH, NORMAL_REACH + sigma, step / max(1.0, sigma))
        density = np.exp(-(self._normals**2) / 2)
        self._weights = density / density.sum()
        self._logs = sigma * self._normals
        lowest = -(NEGLIGIBLE_LOG + largest_epsilon + sigma**2 / 2 + math.log(num_classes))
        self._u = np.arange(lowest, NORMAL_REACH * sigma + 5.0, step)
        missing = -np.expm1(-self._x(self._u)) @ self._weights
        # Where nothing is left of phi, its logarithm is -inf; the rounding of the sum must not make it NaN.
        with np.errstate(divide="ignore"):
            self._factors = step * np.exp((num_classes - 1) * np.log1p(-np.minimum(missing, 1.0)))

    def __call__(self, epsilon: float) -> float:
        x = self._x(self._u + epsilon)
        return float(self._factors @ (x * np.exp(-x) @ self._weights))

    def _x(self, shifts: Array) -> Array:
        # Beyond exp(700) the product x exp(-x) would be inf * 0; it is 0 long before.
        result: Array = np.exp(np.minimum(shifts[:, None] + self._logs, 700.0))
        return result
