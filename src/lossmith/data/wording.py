"""Lists in sentences."""

from collections.abc import Iterable

__all__ = ["listed", "quoted"]


def listed(words: Iterable[str], most: int = 10) -> str:
    """Write a list, of so many words at most.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], most=1)
    ('a, b, c', 'a and 2 more')
    """
    words = list(words)
    shown = ", ".join(words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"


def quoted(names: Iterable[str], most: int = 10) -> str:
    """Write a list of names.

    >>> quoted(["age", "city"])
    "'age', 'city'"
    """
    return listed(map(repr, names), most)
