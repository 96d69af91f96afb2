"""Lists in sentences."""

from collections.abc import Iterable

__all__ = ["listed", "quoted"]


def listed(words: Iterable[str], most: int = 10) -> str:
    """Write a list, of so many words at most.

    Args:
        words: What to list.
        most: How many are written out.

    Returns:
        Words with commas between them.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], most=1)
    ('a, b, c', 'a and 2 more')
    """
    words = list(words)
    shown = ", ".join(words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"


def quoted(names: Iterable[str], most: int = 10) -> str:
    """Write a list of names.

    Args:
        names: What to list.
        most: How many are written out.

    Returns:
        Names in quotation marks, with commas between them.

    >>> quoted(["age", "city"])
    "'age', 'city'"
    """
    return listed(map(repr, names), most)
