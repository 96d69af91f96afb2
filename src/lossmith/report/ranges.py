"""The ranges that axes show."""

from collections.abc import Sequence

import numpy as np

__all__ = ["fitting_range", "spanned"]


def fitting_range(curves: Sequence[Sequence[np.ndarray]], *, skip: float = 0.0, margin: float = 0.0) -> tuple[float, float]:
    """Return the range of curves and their bands with a margin; a share of each curve's beginning may be left out of it."""
    return spanned([part[int(skip * len(part)) :] for parts in curves for part in parts], margin)


def spanned(parts: Sequence[np.ndarray], margin: float) -> tuple[float, float]:
    """Return the range of all finite values and a margin, never empty."""
    values = np.concatenate([np.asarray(part, float) for part in parts]) if parts else np.empty(0)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if low == high:
        low, high = low - 0.05 * (abs(low) or 1), high + 0.05 * (abs(high) or 1)
    extra = margin * (high - low)
    return low - extra, high + extra
