"""Quotations in errors: whatever was given, a line stays a line."""

import reprlib

__all__ = ["MOST_QUOTED", "quote", "shortened"]

MOST_QUOTED = 200
"""The characters of what a user gave that an error repeats at most."""

_MOST_DIGITS = 40
_abridged = reprlib.Repr()
_abridged.maxlevel = _abridged.maxdict = _abridged.maxset = 4
_abridged.maxlist = _abridged.maxtuple = 10
_abridged.maxstring = _abridged.maxother = MOST_QUOTED // 2


def quote(value: object, most: int = MOST_QUOTED) -> str:
    """Write what was given as Python would, with dots for what is too long.

    Args:
        value: Whatever was given.
        most: The characters that are written at most, beside the dots.

    Returns:
        One line of text.

    >>> print(quote("ce + mae"), quote("ce + mae", most=4), quote([1, 2]), quote(10**50))
    'ce + mae' 'ce +'... [1, 2] an integer of 51 digits
    """
    if isinstance(value, str):
        return _quoted_text(value, most)
    if isinstance(value, int) and abs(value) >= 10**_MOST_DIGITS:
        return f"an integer of {_digits(value)} digits"
    return shortened(_abridged.repr(value), most)


def shortened(text: str, most: int = MOST_QUOTED) -> str:
    """Return a text, with dots for what is beyond so many characters.

    Args:
        text: Any text.
        most: How many characters are kept.

    Returns:
        The text or its beginning.

    >>> shortened("brief"), shortened("a long story", most=6)
    ('brief', 'a long...')
    """
    return text if len(text) <= most else f"{text[:most]}..."


def _quoted_text(text: str, most: int) -> str:
    beginning = text[:most]
    while len(repr(beginning)) > most + 2:  # signs that cannot be printed are written as several
        beginning = beginning[: len(beginning) - (len(repr(beginning)) - most + 8) // 10]
    return repr(beginning) if beginning == text else f"{beginning!r}..."


def _digits(number: int) -> int:
    """Return the number of digits, or one more, without writing them, which Python refuses beyond some thousands."""
    return int(abs(number).bit_length() * 0.30102999566398120) + 1
