"""What the numbers of a study depend on beside its settings."""

import platform
from importlib.metadata import version

from lossmith import __version__

__all__ = ["versions"]


def versions() -> dict[str, str]:
    """Return the versions of everything that computes."""
    libraries = {name: version(name) for name in ("torch", "numpy", "scikit-learn", "pandas")}
    return {"lossmith": __version__, **libraries, "python": platform.python_version(), "machine": platform.machine()}
