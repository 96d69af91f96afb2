"""A study that is written down in a file."""

import os
import tomllib
from pathlib import Path
from typing import Any

from lossmith.expressions.quotes import shortened

__all__ = ["read_settings"]

_LONGEST_FILE = 2**20  # bytes; a study is written in a few hundred


def read_settings(file: Path) -> dict[str, Any]:
    """Read a study that is written down in TOML. Paths in it are relative to the file.

    Args:
        file: The file.

    Returns:
        The settings by name, as :func:`lossmith.studies.settings_from` takes them.

    Raises:
        ValueError: If the file is no TOML.
    """
    values = _toml(file)
    for name in ("data", "test", "validation", "encoder"):
        written = values.get(name)
        if isinstance(written, str) and "\0" not in written and (file.parent / written).exists():
            values[name] = os.fspath(file.parent / written)
    return values


def _toml(file: Path) -> dict[str, Any]:
    if file.is_fifo():  # which would never end
        raise ValueError(f"{file}: must be a file, got a pipe.")
    if file.is_file() and file.stat().st_size > _LONGEST_FILE:
        raise ValueError(f"{file}: a study must be written in {_LONGEST_FILE:,} bytes at most, got {file.stat().st_size:,}.")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{file}: must be UTF-8 text, got something else.") from None
    except ValueError as error:
        raise ValueError(f"{file}: {shortened(str(error))}") from error
    except RecursionError:
        raise ValueError(f"{file}: too many brackets within one another.") from None
