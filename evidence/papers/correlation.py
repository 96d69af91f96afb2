"""Correlations of a handful of objectives, with intervals that say how little a handful shows."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

__all__ = ["correlation", "rank_correlation"]

DRAWS = 10_000


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    """Return Spearman's rank correlation with the 95 % interval of a bootstrap over the losses.

    Args:
        first: A number for each loss.
        second: Another.

    Returns:
        ``losses``, ``rho``, ``low`` and ``high``.

    >>> rank_correlation([1, 2, 3, 4], [10, 20, 30, 40])["rho"]
    1.0
    """
    pairs = np.column_stack([first, second]).astype(float)
    draws = np.random.default_rng(0).integers(len(pairs), size=(DRAWS, len(pairs)))
    ranks = stats.rankdata(pairs[draws], axis=1)
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    products = (centred[..., 0] * centred[..., 1]).sum(1)
    sizes = np.sqrt(np.square(centred).sum(axis=1).prod(axis=1))
    drawn = products[sizes > 0] / sizes[sizes > 0]
    low, high = np.quantile(drawn, [0.025, 0.975]) if len(drawn) else (-1.0, 1.0)
    return {"losses": len(pairs), "rho": float(stats.spearmanr(*pairs.T).statistic), "low": float(low), "high": float(high)}


def correlation(first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    """Return Pearson's correlation with its 95 % interval by Fisher's transform.

    Args:
        first: A number for each objective, four at least.
        second: Another.

    Returns:
        ``objectives``, ``r``, ``low`` and ``high``; NaN with fewer than four, or where one does not vary.
    """
    count, varies = len(first), len(first) > 3 and np.ptp(first) > 0 and np.ptp(second) > 0
    if not varies:
        return {"objectives": count, "r": math.nan, "low": math.nan, "high": math.nan}
    r = float(np.corrcoef(first, second)[0, 1])
    middle, half = math.atanh(max(-1 + 1e-12, min(r, 1 - 1e-12))), 1.96 / math.sqrt(count - 3)
    return {"objectives": count, "r": r, "low": math.tanh(middle - half), "high": math.tanh(middle + half)}
