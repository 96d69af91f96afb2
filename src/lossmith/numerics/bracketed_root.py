"""Roots of functions of one number."""

from collections.abc import Callable

__all__ = ["bracketed_root"]

MOST_STEPS = 200


def bracketed_root(function: Callable[[float], float], low: float, high: float, *, tolerance: float = 1e-12) -> float:
    """Return where a continuous function changes its sign between ``low`` and ``high``, to within ``tolerance``.

    Chandrupatla's method: inverse quadratic interpolation where three points promise that it converges, else bisection.

    Args:
        function: A continuous function.
        low: One end of the interval.
        high: The other end.
        tolerance: How far off the root may be.

    Returns:
        The root, or one of several.

    Raises:
        ValueError: If the function has the same sign at both ends.

    >>> round(bracketed_root(lambda x: x * x - 2, 0.0, 2.0), 12)
    1.414213562373
    """
    newest, other = high, low
    f_newest, f_other = function(high), function(low)
    if 0 in (f_newest, f_other):
        return low if f_other == 0 else high
    if (f_newest > 0) == (f_other > 0):
        raise ValueError(
            f"bracketed_root: the function must change its sign, got {f_other:g} at {low:g}, {f_newest:g} at {high:g}."
        )
    share = 0.5
    for _ in range(MOST_STEPS):
        point = newest + share * (other - newest)
        f_point = function(point)
        if (f_point > 0) == (f_newest > 0):
            dropped, f_dropped = newest, f_newest
        else:
            dropped, f_dropped, other, f_other = other, f_other, newest, f_newest
        newest, f_newest = point, f_point
        best, f_best = (newest, f_newest) if abs(f_newest) < abs(f_other) else (other, f_other)
        least_share = tolerance / max(abs(other - newest), 5e-324)
        if f_best == 0 or least_share > 0.5:
            return best
        share = min(1 - least_share, max(least_share, _next_share((newest, other, dropped), (f_newest, f_other, f_dropped))))
    return best


def _next_share(points: tuple[float, float, float], values: tuple[float, float, float]) -> float:
    """Return how far to go from the newest point to the one on the other side of the root."""
    newest, other, dropped = points
    f_newest, f_other, f_dropped = values
    position = (newest - other) / (dropped - other)
    height = (f_newest - f_other) / (f_dropped - f_other)
    if not (height**2 < position and (1 - height) ** 2 < 1 - position):
        return 0.5
    first = f_newest / (f_other - f_newest) * f_dropped / (f_other - f_dropped)
    second = (dropped - newest) / (other - newest) * f_newest / (f_dropped - f_newest) * f_other / (f_dropped - f_other)
    return first + second
