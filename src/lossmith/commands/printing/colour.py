"""Colours for people at a terminal."""

import os
import sys
from typing import TextIO

__all__ = ["painted"]

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def painted(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return text in a style where a terminal shows it, and as it is in files and pipes, or where ``NO_COLOR`` is set.

    >>> painted("ce", "bold")
    'ce'
    """
    return f"\033[{_STYLES[style]}m{text}\033[0m" if text and _has_colours(stream or sys.stdout) else text


def _has_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
