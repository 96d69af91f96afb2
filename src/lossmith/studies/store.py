"""The file of a study: SQLite, one transaction a finished run.

Whatever happens to the process that writes it, the file holds every run that was finished, whole.
"""

import io
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import torch
from torch import Tensor

from lossmith.studies.stored_content import (
    Row,
    Shape,
    StoreError,
    check_kinds,
    explained,
    inflated_array,
    inflated_labels,
    packed,
    read_json,
    read_weights,
    square_matrix,
)
from lossmith.training.recipe import CURVES, Run, Trained

__all__ = ["Store", "StoreError"]

APPLICATION = 0x105557ED  # marks the file as ours, in SQLite's own header field for that purpose
FORMAT = 1
PATIENCE = 60.0  # seconds to wait for another process that writes

_CURVE_COLUMNS = ", ".join(f"{name} REAL" for name in CURVES)
_RUN = "loss, noise, seed, learning_rate, epoch, seconds, diverged, measures"
_TABLES = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE run (
    id INTEGER PRIMARY KEY, loss TEXT NOT NULL, noise TEXT NOT NULL, seed INTEGER NOT NULL, learning_rate REAL NOT NULL,
    epoch INTEGER NOT NULL, seconds REAL NOT NULL, diverged INTEGER NOT NULL, measures TEXT NOT NULL,
    finished TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (loss, noise, seed, learning_rate)
);
CREATE TABLE curve (run INTEGER NOT NULL REFERENCES run, epoch INTEGER NOT NULL, {_CURVE_COLUMNS},
    PRIMARY KEY (run, epoch)) WITHOUT ROWID;
CREATE TABLE array (run INTEGER NOT NULL REFERENCES run, name TEXT NOT NULL, shape TEXT NOT NULL, type TEXT NOT NULL,
    content BLOB NOT NULL, PRIMARY KEY (run, name));
CREATE TABLE noise (noise TEXT NOT NULL, seed INTEGER NOT NULL, rate REAL NOT NULL, matrix TEXT NOT NULL, labels BLOB NOT NULL,
    PRIMARY KEY (noise, seed));
"""


_RUN_KINDS: dict[str, type | tuple[type, ...]] = {
    "id": int,
    "loss": str,
    "noise": str,
    "seed": int,
    "learning_rate": float,
    "epoch": int,
    "seconds": float,
    "diverged": int,
    "measures": str,
}
_CURVE_KINDS = {"epoch": int, **dict.fromkeys(CURVES, (float, type(None)))}
_NOISE_KINDS = {"noise": str, "seed": int, "rate": float}
_META_KINDS = {"settings": dict, "data": dict, "test_labels": list, "versions": dict, "brought": dict, "analysis": dict}
"""What is stored about a study, where it is no text."""


class Store:
    """What a study has found so far. Reading and writing may happen from several processes."""

    def __init__(self, file: Path) -> None:
        self.file = Path(file)
        if not self.file.is_file():
            raise StoreError(f"{self.file} does not exist; a study is made by 'lossmith compare'.")
        self._check()

    @classmethod
    def create(cls, file: Path, meta: Mapping[str, Any]) -> "Store":
        """Make the file of a new study. An existing file is never touched."""
        file.parent.mkdir(parents=True, exist_ok=True)
        # Built aside and then given its name, so that a killed process leaves a whole file or none, and the first of two stays.
        unfinished = file.with_name(f"{file.name}.{uuid4().hex}")
        try:
            with closing(sqlite3.connect(unfinished)) as connection, connection:
                connection.executescript(_TABLES)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                rows = [(name, json.dumps(value)) for name, value in meta.items()]
                connection.executemany("INSERT INTO meta VALUES (?, ?)", rows)
            file.hardlink_to(unfinished)
        except FileExistsError:
            raise StoreError(f"{file} exists already.") from None
        except sqlite3.OperationalError as error:  # before a file that is there already was found to be
            if file.exists():
                raise StoreError(f"{file} exists already.") from None
            raise PermissionError(f"{file.parent} must be a folder that can be written to: {error}.") from error
        finally:
            unfinished.unlink(missing_ok=True)
        return cls(file)

    def meta(self, name: str) -> Any:
        """Return what was stored about the study under this name, or None."""
        row = self._rows("SELECT value FROM meta WHERE name = ?", name)
        with self.explained(f"table meta, {name}"):
            return read_json(row[0]["value"], (_META_KINDS.get(name, str), type(None))) if row else None

    def explained(self, place: str) -> AbstractContextManager[None]:
        """Return a context in which content that does not fit is an error in one line that names the file and the place."""
        return explained(self.file, place)

    def set_meta(self, name: str, value: object) -> None:
        """Store something about the study."""
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value)))

    def add(self, trained: Trained, measures: Mapping[str, float]) -> bool:
        """Store a finished run in one transaction; return False where another process had finished the same run before."""
        with self._writing() as connection:
            values = (*trained.run, trained.epoch, trained.seconds, trained.diverged, json.dumps(dict(measures)))
            inserted = connection.execute(f"INSERT OR IGNORE INTO run ({_RUN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)  # noqa: S608
            if not inserted.rowcount:
                return False
            number = inserted.lastrowid
            epochs = zip(*(trained.curves[name] for name in CURVES), strict=True)
            rows = [(number, epoch, *values) for epoch, values in enumerate(epochs, 1)]
            connection.executemany("INSERT INTO curve VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            arrays = [(number, name, *packed(array)) for name, array in _arrays(trained)]
            connection.executemany("INSERT INTO array VALUES (?, ?, ?, ?, ?)", arrays)
        return True

    def add_noise(self, noise: str, seed: int, rate: float, matrix: np.ndarray, labels: np.ndarray) -> None:
        """Store what a label noise did: its realised rate and matrix, and the labels of all rows as training saw them."""
        with self._writing() as connection:
            row = (noise, seed, rate, json.dumps(matrix.tolist()), zlib.compress(labels.astype(np.int32).tobytes()))
            connection.execute("INSERT OR IGNORE INTO noise VALUES (?, ?, ?, ?, ?)", row)

    def finished(self) -> set[Run]:
        """Return the runs that need not be trained again."""
        return {Run(*(row[name] for name in Run._fields)) for row in self._checked("run", _RUN_KINDS, "id")}

    def runs(self) -> list[dict[str, Any]]:
        """Return every finished run with its measures, in the order of the losses, noises and seeds it was planned for."""
        return [self._with_measures(row) for row in self._checked("run", _RUN_KINDS, "id")]

    def _with_measures(self, row: Row) -> dict[str, Any]:
        with self.explained(f"table run, run {row['id']}"):
            measures = read_json(row["measures"], dict)
            check_kinds(measures, dict.fromkeys(measures, (float, int)))
            if repeated := row.keys() & measures:
                raise ValueError(f"measures must not be named {repeated.pop()!r}")
        return {**row, **measures, "diverged": bool(row["diverged"])}

    def curves(self) -> list[dict[str, Any]]:
        """Return a row for every epoch of every run."""
        wanted = "loss, noise, seed, learning_rate, curve.*"
        return self._checked("curve", _CURVE_KINDS, "run, curve.epoch", wanted, join="JOIN run ON run.id = curve.run")

    def array(self, run: int, name: str, shape: Shape | None = None) -> np.ndarray:
        """Return an array that was kept of a run.

        Args:
            run: The number of the run.
            name: ``logits``, ``probabilities``, ``features`` or ``weights``.
            shape: What it must be, where that is known; None stands for any length.

        Raises:
            StoreError: There is none, or it is damaged.
        """
        rows = self._rows("SELECT shape, type, content FROM array WHERE run = ? AND name = ?", int(run), name)
        if not rows and not self.kept(run):
            raise StoreError(f"{self.file} has no run {run}.")
        if not rows:
            raise StoreError(f"{self.file} keeps no {name} of run {run}; 'lossmith compare --keep {name}' does.")
        with self.explained(f"table array, {name} of run {run}"):
            return inflated_array(dict(rows[0]), shape)

    def weights(self, run: int) -> dict[str, Tensor]:
        """Return the ``state_dict`` that was kept of a run."""
        content = self.array(run, "weights", (None,))
        with self.explained(f"table array, weights of run {run}"):
            return read_weights(content)

    def kept(self, run: int) -> set[str]:
        """Return the names of the arrays that are kept of a run."""
        return {row["name"] for row in self._rows("SELECT name FROM array WHERE run = ?", int(run))}

    def noises(self) -> list[dict[str, Any]]:
        """Return what each label noise did, by seed: ``noise``, ``seed``, ``rate`` and ``matrix``."""
        rows = self._checked("noise", _NOISE_KINDS, "rowid", "noise, seed, rate, matrix")
        for row in rows:
            with self.explained(f"table noise, {row['noise']} of seed {row['seed']}"):
                row["matrix"] = square_matrix(row["matrix"])
        return rows

    def noisy_labels(self, noise: str, seed: int) -> np.ndarray | None:
        """Return the labels of all rows as a noise left them; None where there was no such noise."""
        rows = self._rows("SELECT labels FROM noise WHERE noise = ? AND seed = ?", noise, seed)
        with self.explained(f"table noise, {noise} of seed {seed}"):
            return inflated_labels(rows[0]["labels"]) if rows else None

    def _checked(
        self, table: str, kinds: Mapping[str, Any], order: str, columns: str = "*", join: str = ""
    ) -> list[dict[str, Any]]:
        """Return the rows of a table whose columns hold what they are for."""
        query = f"SELECT {columns} FROM {table} {join} ORDER BY {order}"  # noqa: S608 - our own words
        rows = [dict(row) for row in self._rows(query)]
        for row in rows:
            with self.explained(f"table {table}, {_name_of(row)}"):
                check_kinds(row, kinds)
        return rows

    def _rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        with self._opened() as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file for as long as needed and no longer.

        It is opened for writing wherever it can be, to read from it, too: what a killed process left unfinished is undone by the
        first that opens the file.
        """
        mode = "rw" if os.access(self.file, os.W_OK) else "ro"
        try:
            address = f"{self.file.absolute().as_uri()}?mode={mode}"
            with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                yield connection
        except sqlite3.Error as error:
            raise StoreError(f"{self.file}: {error}; what it holds was left as it is.") from error

    def _check(self) -> None:
        with self.file.open("rb") as stream:
            header = stream.read(100)
        # Read without SQLite, which would go on with whatever another program left unfinished in a file that is not ours.
        version, application = (int.from_bytes(header[start : start + 4]) for start in (60, 68))
        if not header.startswith(b"SQLite format 3\0") or application != APPLICATION:
            raise StoreError(f"{self.file} is not a study of lossmith; it was left as it is.")
        if version != FORMAT:
            raise StoreError(f"{self.file} has format {version}, and this lossmith reads format {FORMAT}; it was left as it is.")
        problems = [row[0] for row in self._rows("PRAGMA quick_check(1)")]
        if problems != ["ok"]:
            problem = str(problems[0]).removeprefix("*** in database main ***").strip()
            raise StoreError(f"{self.file} is damaged ({problem}); it was left as it is.")
        tables = {" ".join(row[0].split()) for row in self._rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if tables != {" ".join(table.split()) for table in _TABLES.split(";") if table.strip()}:
            # Views and triggers would be computed whenever the file is read or written.
            raise StoreError(f"{self.file} has other tables than a study of lossmith has; it was left as it is.")


def _arrays(trained: Trained) -> Iterator[tuple[str, np.ndarray]]:
    yield "logits", trained.test_logits
    if not trained.predicts_softmax:
        yield "probabilities", trained.test_probabilities
    if trained.test_features is not None:
        yield "features", trained.test_features
    if trained.weights:
        stream = io.BytesIO()
        torch.save(trained.weights, stream)
        yield "weights", np.frombuffer(stream.getbuffer(), np.uint8)


def _name_of(row: Row) -> str:
    """Return by what a person would find the row."""
    number = row.get("run", row.get("id"))
    return f"{row['noise']!r:.40} of seed {row['seed']!r:.20}" if number is None else f"run {number!r:.20}"
