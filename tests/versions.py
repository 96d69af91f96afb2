"""``make test-versions``: what pyproject promises, on the oldest and the newest torch and Python, in environments of their own.

They are made in ``.versions`` and kept. An interpreter that is not on the path is named in ``PYTHON_OLDEST``, ``PYTHON_NEWEST``.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SLICE = ("tests/test_contract.py", "tests/test_transforms.py", "tests/test_kernels.py", "tests/test_torch_cases.py")
VERSIONS = """
import platform, numpy, torch
print("Python", platform.python_version(), "torch", torch.__version__, "numpy", numpy.__version__)
"""
TOOLS = ("expecttest", "hypothesis", "mpmath", "playwright", "pytest", "pytest-xdist")


class Promise(NamedTuple):
    """One end of what pyproject promises."""

    name: str
    python: str
    packages: tuple[str, ...]


def promises() -> list[Promise]:
    """Return both ends, read from pyproject, so that the two cannot differ."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lowest = [dependency.replace(">=", "==") for dependency in project["dependencies"]]
    found = (re.search(r"Python :: (3\.\d+)$", classifier) for classifier in project["classifiers"])
    pythons = sorted((match[1] for match in found if match), key=lambda version: int(version.partition(".")[2]))
    newest = tuple(re.split(r"[<>=]", dependency)[0] for dependency in project["dependencies"])
    return [Promise("oldest", pythons[0], tuple(f"{each}.*" for each in lowest)), Promise("newest", pythons[-1], newest)]


def interpreter(promise: Promise) -> str | None:
    """Return a Python of the right version, or None where there is none."""
    named = os.environ.get(f"PYTHON_{promise.name.upper()}")
    for candidate in filter(None, (named, shutil.which(f"python{promise.python}"), sys.executable)):
        asked = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
        if asked.stdout.startswith(f"Python {promise.python}."):
            return candidate
    return None


def environment(promise: Promise, python: str) -> Path:
    """Make the environment if it is not there, and return its Python."""
    folder = ROOT / ".versions" / promise.name
    inside = folder / "bin" / "python"
    if not (folder / "made").exists():
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)  # noqa: S603
        subprocess.run([inside, "-m", "pip", "install", "-q", *promise.packages, *TOOLS], check=True)  # noqa: S603
        (folder / "made").touch()
    return inside


def passes(promise: Promise) -> bool:
    """Run the slice of the suite that stands for the promise, and say how it went."""
    python = interpreter(promise)
    if python is None:
        print(f"{promise.name}: no Python {promise.python} here; name one in PYTHON_{promise.name.upper()}.")  # noqa: T201
        return False
    inside = environment(promise, python)
    subprocess.run([inside, "-c", VERSIONS], check=True)  # noqa: S603
    # New releases warn of what is to come; an error in them would be no news about this package.
    command = [inside, "-m", "pytest", "-q", "-n", "2", "-W", "default", "-p", "no:cacheprovider", *SLICE]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, check=False)  # noqa: S603
    return done.returncode == 0


if __name__ == "__main__":
    outcomes = {promise.name: passes(promise) for promise in promises()}
    sys.exit(not all(outcomes.values()))
