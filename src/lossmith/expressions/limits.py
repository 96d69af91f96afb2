"""The values that a loss's parameter may take, checked whenever it is set."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TypeGuard

from lossmith.expressions.quotes import quote

__all__ = ["Limits", "is_whole"]


@dataclass(frozen=True)
class Limits:
    """An interval of real or of whole numbers, closed unless said otherwise.

    >>> Limits(0.0, 1.0).check("q", 0.7, owner="GCE")
    0.7
    >>> Limits(0.0).check("gamma", -1.0, owner="FocalLoss")
    Traceback (most recent call last):
    ValueError: FocalLoss: gamma must be >= 0, got -1.0.

    Args:
        low: The lower end.
        high: The upper end.
        low_open: Whether the lower end is out of range itself.
        high_open: Whether the upper end is out of range itself.
        optional: Whether None is allowed.
        whole: Whether only integers are allowed.
        usual: Where values are looked for when it is tuned, if that cannot be told from the interval and the value at hand.
    """

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    optional: bool = False
    whole: bool = False
    usual: tuple[float, float] | None = None

    def check(self, name: str, value: object, *, owner: str) -> float | None:
        """Return ``value`` as a float, or as an int if ``whole``, or raise an error that names it.

        Args:
            name: What the parameter is called.
            value: What was given.
            owner: Whom the error names.

        Returns:
            The number, or None where that is allowed.

        Raises:
            TypeError: If the value is not a number, or not an integer where only those are allowed.
            ValueError: If it is out of range or not finite.
        """
        if value is None and self.optional:
            return None
        if self.whole and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise TypeError(f"{owner}: {name} must be an integer {self}, got {_shown(value)}.")
        if isinstance(value, bool) or not isinstance(value, Real):
            kind = "a finite number" if str(self) == "finite" else f"a number {self}"
            raise TypeError(f"{owner}: {name} must be {kind}, got {_shown(value)}.")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not (math.isfinite(number) and self._contains(number)):
            raise ValueError(f"{owner}: {name} must be {self}, got {quote(value) if self.whole else number}.")
        return int(value) if self.whole else number  # type: ignore[call-overload]

    def _contains(self, number: float) -> bool:
        above = number > self.low if self.low_open else number >= self.low
        below = number < self.high if self.high_open else number <= self.high
        return above and below

    def __str__(self) -> str:
        if math.isfinite(self.low) and math.isfinite(self.high):
            brackets = "(" if self.low_open else "[", ")" if self.high_open else "]"
            return f"in {brackets[0]}{self.low:g}, {self.high:g}{brackets[1]}"
        if math.isfinite(self.low):
            return f"{'>' if self.low_open else '>='} {self.low:g}"
        if math.isfinite(self.high):
            return f"{'<' if self.high_open else '<='} {self.high:g}"
        return "finite"


def is_whole(number: object) -> TypeGuard[int]:
    """Return whether a number is an integer.

    Args:
        number: Anything.

    Returns:
        True for integers; truth values are none.

    >>> is_whole(3), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(number, int) and not isinstance(number, bool)


def _shown(value: object) -> str:
    text = quote(value)
    return f"{type(value).__name__} {text}" if len(text) <= 40 else type(value).__name__
