"""What the commands here share: their options, studies that go on where they were stopped, and exported tables."""

import argparse
import json
import os
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import binomtest

from evidence.tables import MOST_ROWS, TARGET, Table, made_tables
from lossmith import __version__, compare
from lossmith.studies import Study, open_study
from lossmith.studies.design.settings import USUAL_TRIALS

__all__ = ["NOISE", "WHOLE", "Command", "export", "share", "write_settings"]

NICENESS = 15
NOISE = (0.0, 0.2)
WHOLE: Mapping[str, Any] = {"trials": USUAL_TRIALS, "train_rows": 10 * MOST_ROWS, "minutes": 24 * 60.0}
"""What a study has unless time is short: said here, so that a slow or busy machine does not make it smaller."""


class Command:
    """One of the commands: reads its options, and says which tables are studied, and where."""

    def __init__(self, about: str | None, name: str, *, replicates: int = 0) -> None:
        parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument(
            "--folder", type=Path, default=Path("studies/evidence"), help="of tables and studies (default: %(default)s)"
        )
        parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results", help="of the exported tables")
        parser.add_argument("--keel", type=Path, help="where the package of the KEEL sets is, if it is not installed")
        parser.add_argument("--only", help="names of tables, separated by commas (default: all that are on this machine)")
        parser.add_argument("--sets", type=int, help="how many tables, the smallest (default: all)")
        if replicates:
            parser.add_argument("--replicates", type=int, default=replicates, help="of each study (default: %(default)s)")
        parser.add_argument("--workers", type=int, help="processes that train (default: one for each processor)")
        parser.add_argument("--no-training", action="store_true", help="only what has been trained already")
        parser.add_argument("--old-code", type=Path, help="a checkout of the first version (default: one is made)")
        self.options = parser.parse_args()
        self.name = name
        self.results = self.options.results / self.name

    def tables(self) -> list[Table]:
        """Return the tables to study, smallest first, and print how to get those that are missing."""
        found, missing = made_tables(self.options.folder / "tables", self.options.keel)
        print(*missing, sep="\n", end="\n" if missing else "")
        only = self.options.only.split(",") if self.options.only else [table.name for table in found]
        return [table for table in found if table.name in only][: self.options.sets]

    def tables_beyond(self, exported: Iterable[pd.DataFrame]) -> list[Table]:
        """Return the tables to study of which nothing was exported yet.

        Args:
            exported: Frames with a column ``table``.

        Returns:
            The tables, smallest first.
        """
        finished = {name for part in exported for name in part["table"]}
        return [table for table in self.tables() if table.name not in finished]

    def exported(self, name: str) -> list[pd.DataFrame]:
        """Return what was exported before, perhaps on another machine; nothing where there is none.

        Args:
            name: A file among the results of this command.

        Returns:
            One frame, or none.
        """
        file = self.results / name
        return [pd.read_csv(file)] if file.is_file() else []

    def study(self, table: Table, *, name: str = "", **settings: Any) -> Study | None:
        """Return the study of a table: as it is where it is finished, trained further where it is not.

        Args:
            table: What is studied.
            name: Of the study, where there are several of a table.
            **settings: What :func:`lossmith.compare` takes.

        Returns:
            The study; None where it is unfinished and nothing is to be trained.
        """
        folder = self.options.folder / self.name / (name or table.name)
        if folder.exists() and not (found := open_study(folder)).unfinished:
            return found
        if self.options.no_training:
            return None
        be_nice()
        own = {"output": folder, "workers": self.options.workers, "progress": False}
        return compare(table.file, target=TARGET, **own, **settings)


def be_nice() -> None:
    """Let everything else on the machine go first; processes that are begun from here do, too."""
    os.nice(max(0, NICENESS - os.nice(0)))


def export(frame: pd.DataFrame, file: Path, digits: int = 4) -> None:
    """Write a table for people and programs, with as many digits as mean something."""
    file.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(file, index=False, float_format=f"%.{digits}f")


def write_settings(studies: Iterable[Study], file: Path, **more: Any) -> None:
    """Write how studies were made: versions, and for each its rows, classes, epochs, trials and replicates.

    What the file says of other studies stays.
    """
    before = json.loads(file.read_text())["studies"] if file.is_file() else {}
    each = {**before, **{study.folder.name: _settings_of(study) for study in studies}}
    versions = {name: version(name) for name in ("torch", "numpy", "scikit-learn", "scipy", "pandas")}
    about = {"lossmith": __version__, **versions, "python": platform.python_version(), **more, "studies": each}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(about, indent=1) + "\n")


def _settings_of(study: Study) -> Mapping[str, Any]:
    settings, data = study.settings, study.provenance["data"]
    return {
        "rows": data["rows"],
        "classes": len(study.classes),
        "losses": settings.losses,
        "noise": settings.noise,
        "replicates": settings.seeds,
        "trials": settings.trials_of_a_cell,
        "model": settings.recipe.model,
        "epochs": settings.recipe.epochs,
        "batch_size": settings.recipe.batch_size,
        "shrunk": study.provenance["shrunk"],
    }


def share(part: int, whole: int) -> str:
    """Return a count of a count with its share and the exact 95 % interval of that.

    >>> share(1, 40)
    '1 of 40: 2.5 % (0.1 to 13.2)'
    """
    if not whole:
        return "0 of 0"
    low, high = binomtest(part, whole).proportion_ci(method="exact")
    return f"{part} of {whole}: {100 * part / whole:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
