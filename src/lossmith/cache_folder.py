"""Where the library keeps what was computed once and can be computed again."""

import os
from pathlib import Path

__all__ = ["cache_folder"]

_VARIABLE = "LOSSMITH_CACHE"


def cache_folder(given: str | Path | None = None) -> Path:
    """Return where things are kept: the folder given, that of ``LOSSMITH_CACHE``, or one of the user's for such things.

    Args:
        given: A folder.

    Returns:
        A folder that need not exist.
    """
    if given is not None:
        return Path(given).expanduser()
    if os.environ.get(_VARIABLE):
        return Path(os.environ[_VARIABLE]).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path("~/.cache").expanduser()) / "lossmith"
