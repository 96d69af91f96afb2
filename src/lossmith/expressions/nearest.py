"""Hints at what was meant."""

import difflib
from collections.abc import Iterable

__all__ = ["nearest"]

_LONGEST_WORD = 100  # what is longer was not meant to be a name


def nearest(word: str, known: Iterable[str], alike: float = 0.5) -> str:
    """Return a hint at the known word that is most like the given one.

    Args:
        word: What was written.
        known: What could have been meant.
        alike: How much of both words must agree; more where many words are known by chance, as files of a folder are.

    Returns:
        The end of a sentence: a question, or a full stop where nothing is alike.

    >>> nearest("gec", ["gce", "mae"]), nearest("xyz", ["gce", "mae"])
    ("; did you mean 'gce'?", '.')
    """
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=alike) if len(word) <= _LONGEST_WORD else []
    return f"; did you mean {matches[0]!r}?" if matches else "."
