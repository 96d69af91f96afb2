"""The logit bias that suits a number of classes."""

import math

from lossmith.expressions.limits import Limits
from lossmith.losses.logits.bias import MEAN_ACTIVATION
from lossmith.numerics.mean_activation import SolvedBias, bias_for_mean_activation
from lossmith.theory.per_example import check_classes, check_sigma

__all__ = ["SolvedBias", "solve_logit_bias"]


def solve_logit_bias(num_classes: int, mean_activation: float = MEAN_ACTIVATION, *, sigma: float = 1.0) -> SolvedBias:
    """Return the epsilon that gives the target's class a wanted mean probability in a fresh network, and its error.

    The logits of the network are normal with standard deviation ``sigma``, see :func:`logit_scale`. The default of
    0.15 is the paper's, which lets the mean absolute error learn. Computed by quadrature, not by sampling, for any number of
    classes from 2 on; see ``lossmith.numerics.mean_activation``.

    Args:
        num_classes: How many classes there are, at least 2.
        mean_activation: The mean probability that the target is to have, in (0, 1).
        sigma: The standard deviation of the logits, > 0.

    Returns:
        The bias, and a bound of its error.

    Raises:
        ValueError: If a number is out of its range.

    >>> epsilon, error = solve_logit_bias(100)
    >>> round(epsilon, 6), error < 1e-9
    (3.034087, True)
    >>> [round(solve_logit_bias(10**power).epsilon, 2) for power in range(1, 7)]
    [0.52, 3.03, 5.36, 7.66, 9.97, 12.27]

    Reference: equation 4 and appendix figure 1 of Staats, Thamm and Rosenow, "Noise-robust loss functions".
    """
    owner = "solve_logit_bias"
    check_classes("num_classes", num_classes, owner, most=math.inf)
    check_sigma(sigma, owner)
    Limits(0.0, 1.0, low_open=True, high_open=True).check("mean_activation", mean_activation, owner=owner)
    return bias_for_mean_activation(mean_activation, num_classes, sigma)
