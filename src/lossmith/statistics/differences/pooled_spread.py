"""How much replicates differ beyond the luck of their rows, told by all losses of a study together.

Five replicates tell the spread of one difference badly, which makes a t-test with four degrees of freedom blind. But all losses
are trained and tuned alike. In units of what the luck of their rows makes, their spreads are much the same, and each is seen
together with the others, as limma does with thousands of genes (Smyth 2004).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Spread", "pooled_spreads"]

_IN_COMMON = 0.25
"""Correlation of the spreads of two differences to the same baseline: the square of that of the differences, which is a half."""


@dataclass(frozen=True)
class Spread:
    """A variance, and how well it is known."""

    variance: float
    freedom: float


def pooled_spreads(own: Sequence[Spread], scales: Sequence[float]) -> list[Spread]:
    """Return the spreads of differences to one baseline, each seen together with all others.

    A spread below the mean of all is taken as that mean: that some loss is steadier than others is hardly ever true, and
    believing it by mistake is what false alarms are made of. One above it is moved towards the mean.

    Args:
        own: The variance between replicates of each difference.
        scales: What the luck of rows gives each of them, in which they are measured; 0 where that is not known, and such a spread
            stays as it is.

    Returns:
        The spreads in the same order.

    >>> [round(one.variance, 2) for one in pooled_spreads([Spread(1, 4), Spread(2, 4), Spread(9, 4)], [1, 1, 1])]
    [4.0, 4.0, 4.38]
    >>> round(pooled_spreads([Spread(1, 4), Spread(2, 4), Spread(9, 4)], [1, 1, 1])[0].freedom, 1)
    10.4
    """
    pooled = [place for place, scale in enumerate(scales) if scale > 0 and own[place].freedom > 0]
    ratios = np.array([own[place].variance / scales[place] for place in pooled])
    weights = np.array([own[place].freedom for place in pooled])
    found = list(own)
    for place, ratio, weight in zip(pooled, ratios, weights, strict=True):
        others = len(pooled) - 1
        told_by_others = (weights.sum() - weight) / (1 + _IN_COMMON * (others - 1)) if others else 0.0
        of_others = ((weights @ ratios) - weight * ratio) / (weights.sum() - weight) if others else 0.0
        moved = (weight * ratio + told_by_others * of_others) / (weight + told_by_others)
        believed = max(moved, float(weights @ ratios / weights.sum()))
        found[place] = Spread(float(scales[place] * believed), float(weight + told_by_others))
    return found
