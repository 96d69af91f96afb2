"""``make release-check``: wheel and sdist as users get them, each in an environment of its own, outside of the checkout.

From each are run ``list``, a small ``compare``, ``report`` and ``explore``. The sdist must hold what its tests need.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
NEEDED = (
    *("Makefile", "constraints.txt", "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", ".ci/run"),
    *("benchmarks/losses.py", "examples/many_classes.py", "evidence/replication.py", "attack/__main__.py"),
    *("tests/test_contract.py", "docs/conf.py", "docs/compare.md", "src/lossmith/py.typed"),
)
SMALL = ("--losses", "ce,gce", "--noise", "0.2", "--seeds", "2", "--rates", "0.1", "--epochs", "3", "--rows", "300")


def main() -> None:
    """Build, install and use both; raise an error at the first thing that fails."""
    with tempfile.TemporaryDirectory(prefix="lossmith-release-") as place:
        folder = Path(place)
        built = _build(folder)
        _check_contents(built["sdist"])
        for kind, file in built.items():
            _use(kind, file, folder / kind)
    print("Wheel and sdist install and work.")  # noqa: T201


def _run(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a command away from the checkout's own packages, and return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(  # noqa: S603
        [str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _build(folder: Path) -> dict[str, Path]:
    """Build the sdist, and the wheel from it, as PyPI's tools do."""
    python = _environment(folder / "build", "build", "hatchling")
    _run(python, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT)
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def _environment(folder: Path, *packages: str) -> Path:
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    _install(python, *packages)
    return python


def _install(python: Path, *packages: str) -> None:
    how = ("--quiet", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt"))
    _run(python, "-m", "pip", "install", *how, *packages)


def _check_contents(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise SystemExit(f"{sdist.name} must hold {', '.join(missing)}.")


def _use(kind: str, file: Path, folder: Path) -> None:
    """Install a file with the extras of the command line, and do what a new user does."""
    python = _environment(folder / "environment", "torch", "numpy", "hatchling")
    _install(python, f"{file}[experiments,report]")
    lossmith = python.with_name("lossmith")
    assert "gce" in _run(lossmith, "list", folder=folder)
    assert "Report: " in _run(lossmith, "compare", "digits", *SMALL, "--output", "study", folder=folder)
    for command, page in (("report", folder / "again.html"), ("explore", folder / "explore.html")):
        _run(lossmith, command, *(["study"] if command == "report" else []), "--output", page.name, folder=folder)
        assert page.stat().st_size > 50_000
    where = _run(python, "-c", "import lossmith; print(lossmith.__version__, lossmith.__file__)", folder=folder).strip()
    assert str(folder) in where
    print(f"{kind}: {file.name}, {file.stat().st_size / 1e6:.1f} MB, works: lossmith {where.partition(' ')[0]}")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
