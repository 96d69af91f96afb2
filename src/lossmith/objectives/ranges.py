"""Where a parameter is looked for when it is tuned."""

import math
from dataclasses import dataclass
from typing import Any

from lossmith.expressions.limits import Limits

__all__ = ["Range", "range_of"]

# A factor or a temperature without an upper end is looked for from a tenth of its value to ten times its value.
WIDE = 10.0
# A parameter without ends, or one below 0, is looked for up to this share of its value to both sides, so that its sign stays.
SIDE = 0.9
# An end that is out of range itself is kept away from by this share of the interval.
MARGIN = 0.01
# What a search draws is written into expressions: digits beyond these change nothing that training can tell.
DIGITS = 4


@dataclass(frozen=True)
class Range:
    """The values of a parameter that a search may take, both ends included.

    >>> Range(0.1, 10.0, log=True).at(0.5)
    1.0
    >>> [Range(1, 5, whole=True).at(share) for share in (0.0, 0.5, 1.0)]
    [1, 3, 5]

    Args:
        low: The smallest value.
        high: The largest value.
        log: Whether equal factors count as equally far apart, and not equal differences.
        whole: Whether values are integers.

    Raises:
        ValueError: If the ends are not finite, not in order, or not above 0 where ``log`` needs it.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"Range: low and high must be finite and in order, got {self.low} and {self.high}.")
        if self.log and self.low <= 0:
            raise ValueError(f"Range: low must be > 0 where log is true, got {self.low}.")
        if self.whole and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise ValueError(f"Range: low and high must be integers where whole is true, got {self.low} and {self.high}.")

    def at(self, share: float) -> float:
        """Return the value at a share of the way from low to high, to four digits.

        Args:
            share: How far, from 0 to 1; even draws of it make even draws from the range.

        Returns:
            The value, an int if ``whole``.

        Raises:
            TypeError: If the share is not a number.
            ValueError: If it is not in [0, 1].
        """
        Limits(0.0, 1.0).check("share", share, owner="Range")
        if self.whole:
            return min(int(self.low) + math.floor(self._between(0, 1, share) * self._count()), int(self.high))
        if self.log:
            value = math.exp(self._between(math.log(self.low), math.log(self.high), share))
        else:
            value = self._between(self.low, self.high, share)
        return min(max(float(f"{value:.{DIGITS}g}"), float(self.low)), float(self.high))

    def suggest(self, trial: Any, name: str) -> float:
        """Let a trial of Optuna choose the value.

        Args:
            trial: What has ``suggest_float`` and ``suggest_int`` as ``optuna.Trial`` has them.
            name: What the study calls the parameter.

        Returns:
            The value, an int if ``whole``.
        """
        if self.whole:
            return int(trial.suggest_int(name, int(self.low), int(self.high), log=self.log))
        return float(trial.suggest_float(name, float(self.low), float(self.high), log=self.log))

    def _count(self) -> int:
        return int(self.high) - int(self.low) + 1

    @staticmethod
    def _between(low: float, high: float, share: float) -> float:
        return low * (1 - share) + high * share


def range_of(limits: Limits, value: float) -> Range:
    """Return where to look for a parameter, from the values that it may take and the one that it has.

    What the limits call usual, widened to the value at hand; else the whole interval where it has two ends; else, above 0,
    a tenth of the value to ten times the value; else nearly its size to both sides. A whole number, such as the k of a top-k
    loss, is looked for up to its value, for more may not fit the number of classes.

    Args:
        limits: The values that it may take.
        value: The one that it has.

    Returns:
        The range; the value is in it.

    >>> range_of(Limits(0.0, 1.0, high_open=True), 0.7)
    Range(low=0.0, high=0.99, log=False, whole=False)
    >>> range_of(Limits(0.0), 20.0)
    Range(low=2.0, high=200.0, log=True, whole=False)
    """
    if limits.whole:
        return Range(int(limits.low), int(value), whole=True)
    if limits.usual is not None:
        low, high = limits.usual
        return Range(min(low, value), max(high, value))
    if math.isfinite(limits.low) and math.isfinite(limits.high):
        margin = MARGIN * (limits.high - limits.low)
        low, high = limits.low + margin * limits.low_open, limits.high - margin * limits.high_open
        return Range(min(low, value), max(high, value))
    if value > 0 and math.isfinite(limits.low):
        return Range(value / WIDE, value * WIDE, log=True)
    side = SIDE * abs(value) or 1.0
    return Range(max(value - side, limits.low), min(value + side, limits.high))
