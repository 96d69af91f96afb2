"""What is tuned, as it is written: ``learning_rate=1e-4:0.1``, ``width=64|128|256``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lossmith.expressions.quotes import quote
from lossmith.objectives.ranges import Range

__all__ = ["Choice", "Tuned", "as_value", "read_tuned", "written_tuned"]

_WIDE = 10.0  # a range over a decade or more is looked through by factors, not by differences


@dataclass(frozen=True)
class Choice:
    """Some values of a setting, each as likely as the others."""

    values: tuple[float | int | str, ...]

    def at(self, share: float) -> float | int | str:
        """Return the value at a share of the way from the first to the last.

        Args:
            share: How far, in [0, 1).

        Returns:
            One of the values.

        >>> Choice(("relu", "mish")).at(0.7)
        'mish'
        """
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]


Tuned = Range | Choice


def read_tuned(written: str) -> tuple[str, Tuned]:
    """Read what is tuned.

    Args:
        written: A name, ``=``, and two ends with a colon between them or values with bars between them.

    Returns:
        The name, and where to look for it.

    Raises:
        ValueError: If it is written in another way.

    >>> read_tuned("learning_rate=1e-4:0.1")
    ('learning_rate', Range(low=0.0001, high=0.1, log=True, whole=False))
    >>> read_tuned("width=64|128")
    ('width', Choice(values=(64, 128)))
    """
    name, equals, values = (part.strip() for part in written.partition("="))
    if not equals or not name.isidentifier() or not values:
        raise ValueError(f"compare: tune must be settings, parameters, or such as learning_rate=1e-4:0.1, got {quote(written)}.")
    if "|" in values or ":" not in values:
        return name, Choice(tuple(as_value(part.strip()) for part in values.split("|")))
    ends = [as_value(part) for part in values.split(":")]
    return name, _range(name, ends)


def written_tuned(tune: Mapping[str, Any]) -> list[str]:
    """Write down what is tuned: a pair is a range, a list holds values.

    Args:
        tune: Ranges and values by name.

    Returns:
        A text for each.

    Raises:
        ValueError: If it is neither.

    >>> written_tuned({"learning_rate": (1e-4, 0.1), "width": [64, 128]})
    ['learning_rate=0.0001:0.1', 'width=64|128']
    """
    return [f"{name}={_written(name, values)}" for name, values in tune.items()]


def _written(name: str, values: Any) -> str:
    if isinstance(values, Range):
        values = (values.low, values.high)
    if isinstance(values, tuple):
        _range(name, list(values))
        return ":".join(map(str, values))
    chosen = values if isinstance(values, list) else [values]
    texts = [str(value) for value in chosen]
    if not texts or any(
        not text or set(text) & set("|=:,") or as_value(text) != value for text, value in zip(texts, chosen, strict=True)
    ):
        raise ValueError(
            f"compare: tune must be a pair of numbers or a list of numbers and words for {name}, got {quote(values)}."
        )
    return "|".join(texts)


def _range(name: str, ends: list[Any]) -> Range:
    if len(ends) != 2 or not all(type(end) in (int, float) for end in ends) or not ends[0] < ends[1]:
        raise ValueError(f"compare: tune must be two numbers in order for {name}, got {quote(':'.join(map(str, ends)))}.")
    low, high = ends
    wide = low > 0 and high / low >= _WIDE
    return Range(low, high, log=wide and isinstance(low + high, float), whole=isinstance(low, int) and isinstance(high, int))


def as_value(text: str) -> float | int | str:
    """Return a number where the text is one, else the text."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else text
    return text
