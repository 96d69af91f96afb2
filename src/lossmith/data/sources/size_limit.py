"""How much memory one input may ask for, decided by its header before it is read."""

import os

from lossmith.expressions.quotes import quote

__all__ = ["MOST_BYTES", "check_size", "most_bytes"]

MOST_BYTES = 8 * 2**30
"""What one input may take in memory, unless the environment variable ``LOSSMITH_MAX_BYTES`` names another number of bytes.

A few bytes can claim, or unpack to, more than any machine has. Whoever reads them should hear so, rather than wait for the
system to end the process.
"""

_VARIABLE = "LOSSMITH_MAX_BYTES"


def most_bytes() -> int:
    """Return the limit that holds: that of the environment, or else ``MOST_BYTES``.

    Raises:
        ValueError: If the environment variable is not a whole number > 0.
    """
    given = os.environ.get(_VARIABLE, "")
    if not given:
        return MOST_BYTES
    if not (given.isdecimal() and len(given) < 20 and int(given)):
        raise ValueError(f"{_VARIABLE} must be a whole number of bytes > 0, got {quote(given)}.")
    return int(given)


def check_size(size: int, owner: object) -> None:
    """Raise an error for an input that would take too much memory.

    Args:
        size: The bytes that it takes, or claims to.
        owner: What errors name: the file.

    Raises:
        ValueError: If that is beyond the limit.

    >>> check_size(10**20, "data.npz")
    Traceback (most recent call last):
    ValueError: data.npz: needs 100,000,000,000 GB of memory, and one input may take 8.6 GB; LOSSMITH_MAX_BYTES sets the limit.
    """
    if size > most_bytes():
        needed, limit = (f"{number / 1e9:,.{0 if number >= 1e11 else 1}f} GB" for number in (size, most_bytes()))
        raise ValueError(f"{owner}: needs {needed} of memory, and one input may take {limit}; {_VARIABLE} sets the limit.")
