"""What a study says, seen together with what happened on other data.

A study of a few hundred rows leaves an error of several points, while losses differ by one or two. Other data sets have had
their own true differences; how these spread tells what to expect before the study, and the study moves that as far as its error
allows: the posterior of a normal prior, by empirical Bayes. ``python -m evidence.experience`` measures how good that is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, fmean, variance

import pandas as pd

from lossmith.statistics.evidence import Evidence
from lossmith.statistics.wording import interval, listed, percent

__all__ = ["FEWEST", "Elsewhere", "Expected", "Experience", "expected", "experience_lines"]

FEWEST = 10
"""Data sets that a spread can be told from well enough."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Elsewhere:
    """How losses did against the baseline on other data with about as many wrong labels."""

    what: str
    """The data in words: ``24 tables with labels as they are``."""
    differences: Mapping[str, Sequence[float]]
    """Of each loss, a mean difference for each data set."""


Experience = Callable[[str, float], Elsewhere | None]
"""From a noise level and its share of wrong labels to what is known of such data."""


@dataclass(frozen=True)
class Expected:
    """What difference to expect on this data."""

    difference: float
    low: float
    high: float
    """The 95 % interval."""
    ahead: float
    """The probability that the loss is better."""


def expected(difference: float, error: float, others: Sequence[float]) -> Expected:
    """Return what to expect of a loss from a study and from other data.

    The spread of other data counts in full, what chance added to it included: that makes the prior wider than it should be, and
    leaves the study more weight than it would have.

    Args:
        difference: What the study found.
        error: Its standard error, all corrections included.
        others: What was found on other data sets, two at least that differ.

    Returns:
        The mean of both, each weighted by how little it varies, with its interval.

    Raises:
        ValueError: If the error is not positive, or others do not vary.

    >>> found = expected(0.06, 0.03, [0.01, 0.03, 0.02, 0.00, 0.04, 0.02])
    >>> print(f"{found.difference:.3f} from {found.low:.3f} to {found.high:.3f}, ahead with {found.ahead:.2f}")
    0.028 from 0.002 to 0.055, ahead with 0.98
    """
    before = variance(others) * (1 + 1 / len(others)) if len(others) > 1 else 0.0
    if not error > 0 or not before > 0:
        raise ValueError(f"expected: error and the spread of others must be positive, got {error} and {sqrt(before)}.")
    weight = before / (before + error**2)
    mean = weight * difference + (1 - weight) * fmean(others)
    posterior = NormalDist(mean, sqrt(weight) * error)
    low, high = (posterior.inv_cdf((1 + sign * CONFIDENCE) / 2) for sign in (-1, 1))
    return Expected(mean, low, high, 1 - posterior.cdf(0.0))


def experience_lines(evidence: Evidence, noise: str, elsewhere: Elsewhere | None) -> list[str]:
    """Return what to expect of the losses at a noise level, in a sentence or none.

    Args:
        evidence: That of the study.
        noise: The level.
        elsewhere: How losses did on other data with as many wrong labels.

    Returns:
        A sentence about the loss of which most is to be expected, and about those that come close; nothing where other data is
        scarce, or no loss is expected to be ahead.
    """
    found = {} if elsewhere is None else _expectations(evidence, noise, elsewhere)
    promising = {loss: each for loss, each in found.items() if each.difference > 0}
    if elsewhere is None or not promising:
        return []
    best = max(promising, key=lambda loss: promising[loss].difference)
    told = interval(pd.Series(vars(promising[best])), evidence.metric)
    likely = [loss for loss, each in promising.items() if each.low > 0 and loss != best]
    also = f" Expected to be ahead, too: {listed(likely)}." if likely else ""
    said = "is to be expected ahead" if promising[best].low > 0 else "is the most promising"
    chance = f"better than {evidence.baseline} with a probability of {percent(promising[best].ahead)}"
    return [f"Together with {elsewhere.what}, {best} {said}: {told}, {chance}.{also}"]


def _expectations(evidence: Evidence, noise: str, elsewhere: Elsewhere) -> dict[str, Expected]:
    level = evidence.differences[evidence.differences["noise"] == noise].set_index("loss")
    sound = set(evidence.sound(noise))
    return {
        str(loss): expected(float(row["difference"]), float(row["deviation"]), elsewhere.differences[str(loss)])
        for loss, row in level.iterrows()
        if loss in sound and 0 < row["deviation"] < float("inf")
        if len(elsewhere.differences.get(str(loss), ())) >= FEWEST
    }
