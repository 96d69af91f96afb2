"""The file of a study: SQLite, one transaction a finished run.

Whatever happens to the process that writes it, the file holds every run that was finished, whole.
"""

import io
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import torch
from torch import Tensor

from lossmith.experiments.plan import CURVES, Run, Trained

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


class StoreError(ValueError):
    """A study's file that cannot be read or written, in one line."""


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
        return json.loads(row[0]["value"]) if row else None

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
            arrays = [(number, name, *_packed(array)) for name, array in _arrays(trained)]
            connection.executemany("INSERT INTO array VALUES (?, ?, ?, ?, ?)", arrays)
        return True

    def add_noise(self, noise: str, seed: int, rate: float, matrix: np.ndarray, labels: np.ndarray) -> None:
        """Store what a label noise did: its realised rate and matrix, and the labels of all rows as training saw them."""
        with self._writing() as connection:
            row = (noise, seed, rate, json.dumps(matrix.tolist()), zlib.compress(labels.astype(np.int32).tobytes()))
            connection.execute("INSERT OR IGNORE INTO noise VALUES (?, ?, ?, ?, ?)", row)

    def finished(self) -> set[Run]:
        """Return the runs that need not be trained again."""
        rows = self._rows("SELECT loss, noise, seed, learning_rate FROM run")
        return {Run(*row) for row in rows}

    def runs(self) -> list[dict[str, Any]]:
        """Return every finished run with its measures, in the order of the losses, noises and seeds it was planned for."""
        rows = [dict(row) for row in self._rows("SELECT * FROM run ORDER BY id")]
        return [{**row, **json.loads(row.pop("measures")), "diverged": bool(row["diverged"])} for row in rows]

    def curves(self) -> list[dict[str, Any]]:
        """Return a row for every epoch of every run."""
        query = (
            "SELECT loss, noise, seed, learning_rate, curve.* FROM curve JOIN run ON run.id = curve.run ORDER BY run, curve.epoch"
        )
        return [dict(row) for row in self._rows(query)]

    def array(self, run: int, name: str) -> np.ndarray:
        """Return an array that was kept of a run."""
        rows = self._rows("SELECT shape, type, content FROM array WHERE run = ? AND name = ?", int(run), name)
        if not rows and not self.kept(run):
            raise StoreError(f"{self.file} has no run {run}.")
        if not rows:
            raise StoreError(f"{self.file} keeps no {name} of run {run}; 'lossmith compare --keep {name}' does.")
        return _unpacked(rows[0])

    def weights(self, run: int) -> dict[str, Tensor]:
        """Return the ``state_dict`` that was kept of a run."""
        stream = io.BytesIO(self.array(run, "weights").tobytes())
        state: dict[str, Tensor] = torch.load(stream, weights_only=True)
        return state

    def kept(self, run: int) -> set[str]:
        """Return the names of the arrays that are kept of a run."""
        return {row["name"] for row in self._rows("SELECT name FROM array WHERE run = ?", int(run))}

    def noises(self) -> list[dict[str, Any]]:
        """Return what each label noise did, by seed."""
        rows = [dict(row) for row in self._rows("SELECT * FROM noise ORDER BY rowid")]
        for row in rows:
            row["matrix"] = np.asarray(json.loads(row["matrix"]))
            row["labels"] = np.frombuffer(zlib.decompress(row["labels"]), np.int32).astype(np.int64)
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
        except sqlite3.DatabaseError as error:
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
            raise StoreError(f"{self.file} is damaged ({problems[0]}); it was left as it is.")


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


def _packed(array: np.ndarray) -> tuple[str, str, bytes]:
    return json.dumps(array.shape), str(array.dtype), zlib.compress(np.ascontiguousarray(array).tobytes(), 1)


def _unpacked(row: sqlite3.Row) -> np.ndarray:
    flat = np.frombuffer(zlib.decompress(row["content"]), np.dtype(row["type"]))
    return flat.reshape(json.loads(row["shape"])).copy()
