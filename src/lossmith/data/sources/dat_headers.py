"""What stands above the rows of a ``.dat`` file: comments, or the lines of KEEL that name and describe the columns."""

import io
import re
from pathlib import Path
from typing import NamedTuple

from lossmith.data.sources.plain_text import byte_stream

__all__ = ["Preamble", "read_preamble"]

_ATTRIBUTE = re.compile(r"""@attribute\s+(?:'([^']*)'|"([^"]*)"|([^\s{\[]+))\s*(.*)""", re.IGNORECASE)
_OUTPUT = re.compile(r"@outputs?\s+(.+)", re.IGNORECASE)
_COMMENTS = ("#", "%")
_MOST_LINES = 100_000


class Preamble(NamedTuple):
    """The lines before the first row, and what they say."""

    lines: int = 0
    names: tuple[str, ...] = ()
    """The columns, where the lines name them."""
    nominal: tuple[str, ...] = ()
    """Those whose values are names of categories, even if they look like numbers."""
    target: str = ""
    """The only output, where the lines name one."""


def read_preamble(text: Path | bytes, path: Path) -> Preamble:
    """Read the lines above the rows of a ``.dat`` file.

    Args:
        text: What ``utf8_text`` returned.
        path: The file, for errors.

    Returns:
        How many lines there are, and what they say about the columns.

    Raises:
        ValueError: If columns are described, but no line ``@data`` follows.
    """
    names: list[str] = []
    nominal: list[str] = []
    outputs: list[str] = []
    lines = 0
    with io.TextIOWrapper(byte_stream(text), encoding="utf-8", newline="") as stream:
        for line in stream:
            words = line.strip()
            if words and not words.startswith(("@", *_COMMENTS)):
                break
            lines += 1
            if words.lower().startswith("@data"):
                return Preamble(lines, tuple(names), tuple(nominal), outputs[0] if len(outputs) == 1 else "")
            if found := _ATTRIBUTE.fullmatch(words):
                names.append((found[1] or found[2] or found[3]).strip())
                nominal += [names[-1]] if found[4].startswith("{") else []
            elif found := _OUTPUT.fullmatch(words):
                outputs = [name.strip() for name in found[1].split(",")]
            if lines > _MOST_LINES:
                break
    if names:
        raise ValueError(f"{path}: lines with @attribute must be followed by one with @data, got none.")
    return Preamble(lines)
