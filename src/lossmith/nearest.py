"""Hints at what was meant."""

import difflib
from collections.abc import Iterable

__all__ = ["nearest"]


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint at the known word that is most like the given one.

    >>> nearest("gec", ["gce", "mae"]), nearest("xyz", ["gce", "mae"])
    ("; did you mean 'gce'?", '.')
    """
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else "."
