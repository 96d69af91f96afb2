"""The file of a study: SQLite, one transaction a finished run.

Whatever happens to the process that writes it, the file holds every run that was finished, whole.
"""

import io
import json
import math
import sqlite3
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lossmith.studies.references.train_references import Reference
from lossmith.studies.storage.stored_content import (
    Row,
    Shape,
    StoreError,
    check_kinds,
    inflated_array,
    inflated_labels,
    packed,
    read_json,
    read_weights,
    square_matrix,
)
from lossmith.studies.storage.study_file import RUN_COLUMNS, StudyFile, name_of
from lossmith.training.recipe import CURVES, Cell, Run, Trained

__all__ = ["CURVE_KINDS", "Replicate", "Store", "StoreError"]


_RUN_KINDS: dict[str, type | tuple[type, ...]] = {
    "id": int,
    "loss": str,
    "noise": str,
    "seed": int,
    "learning_rate": float,
    "weight_decay": float,
    "parameters": str,
    "epochs": int,
    "epoch": int,
    "seconds": float,
    "diverged": int,
    "stopped": int,
    "stands_for": float,
    "measures": str,
}
_CHOICE_KINDS = {"loss": str, "noise": str, "seed": int, "run": int, "untrained": str}
_REFERENCE_KINDS = {"name": str, "noise": str, "seed": int, "settings": str, "seconds": float, "measures": str}
CURVE_KINDS = {"epoch": int, **dict.fromkeys(CURVES, (float, type(None)))}
_NOISE_KINDS = {"noise": str, "seed": int, "rate": float}


class Replicate(NamedTuple):
    """What is known of the split of a replicate without reading the data again."""

    validation: int
    """How many rows validate."""
    labels: np.ndarray
    """The true classes of the test rows."""
    test: np.ndarray
    """Their row numbers."""


class Store(StudyFile):
    """What a study has found so far. Reading and writing may happen from several processes."""

    def add(self, runs: Sequence[tuple[Trained, Mapping[str, float]]], keep: Collection[Run]) -> None:
        """Store finished runs with their measures in one transaction; those that another process has stored stay as they are.

        Args:
            runs: What was trained together, with its measures.
            keep: The runs whose predictions are kept, too.
        """
        with self.writing() as connection:
            for trained, measures in runs:
                self._add(connection, trained, measures, keeps_arrays=trained.run in keep)

    def _add(self, connection: sqlite3.Connection, trained: Trained, measures: Mapping[str, float], keeps_arrays: bool) -> None:
        flags = (trained.diverged, trained.stopped, trained.stands_for)
        values = (*trained.run, trained.epoch, trained.seconds, *flags, json.dumps(dict(measures)))
        marks = ", ".join("?" * len(values))
        inserted = connection.execute(f"INSERT OR IGNORE INTO run ({RUN_COLUMNS}) VALUES ({marks})", values)  # noqa: S608
        if not inserted.rowcount:
            return
        number = inserted.lastrowid
        epochs = zip(*(trained.curves[name] for name in CURVES), strict=True)
        rows = [(number, epoch, *values) for epoch, values in enumerate(epochs, 1) if not all(map(math.isnan, values))]
        connection.executemany("INSERT INTO curve VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        if keeps_arrays:
            arrays = [(number, name, *packed(array)) for name, array in _arrays(trained)]
            connection.executemany("INSERT INTO array VALUES (?, ?, ?, ?, ?)", arrays)

    def choose(self, choices: Sequence[tuple[Cell, int, str]]) -> None:
        """Store which run of each cell counts, and why it looks untrained, if it does; the cells are finished then.

        What was kept of other runs of these cells is let go.
        """
        with self.writing() as connection:
            rows = [(*cell, run, untrained) for cell, run, untrained in choices]
            connection.executemany("INSERT OR REPLACE INTO choice VALUES (?, ?, ?, ?, ?)", rows)
            others = [(*cell, run) for cell, run, _ in choices]
            connection.executemany(
                "DELETE FROM array WHERE run IN (SELECT id FROM run WHERE loss = ? AND noise = ? AND seed = ? AND id != ?)",
                others,
            )

    def choices(self) -> dict[Cell, tuple[int, str]]:
        """Return for each finished cell the number of the run that counts, and why it looks untrained."""
        rows = self.checked_rows("choice", _CHOICE_KINDS, "loss, noise, seed")
        return {Cell(row["loss"], row["noise"], row["seed"]): (row["run"], row["untrained"]) for row in rows}

    def add_references(self, noise: str, seed: int, references: Sequence[Reference]) -> None:
        """Store what classical models gave under a noise in a replicate."""
        with self.writing() as connection:
            for one in references:
                measures = json.dumps({**one.measures, "validation_score": one.validation_score})
                row = (one.name, noise, seed, one.settings, one.seconds, measures)
                connection.execute("INSERT OR IGNORE INTO reference VALUES (?, ?, ?, ?, ?, ?)", row)

    def references(self) -> list[dict[str, Any]]:
        """Return what classical models gave, with their measures."""
        return [self.with_measures(row) for row in self.checked_rows("reference", _REFERENCE_KINDS, "name, noise, seed")]

    def add_replicate(self, seed: int, validation: int, labels: np.ndarray, test: np.ndarray) -> None:
        """Store the test split of a replicate: its true classes and its row numbers; and how many rows validate."""
        with self.writing() as connection:
            row = (seed, validation, *(zlib.compress(part.astype(np.int32).tobytes()) for part in (labels, test)))
            connection.execute("INSERT OR IGNORE INTO replicate VALUES (?, ?, ?, ?)", row)

    def replicate(self, seed: int) -> Replicate | None:
        """Return the test split of a replicate, or None where it has not begun."""
        rows = self.rows("SELECT validation, labels, test FROM replicate WHERE seed = ?", seed)
        with self.explained(f"table replicate, seed {seed}"):
            if not rows:
                return None
            check_kinds(dict(rows[0]), {"validation": int})
            return Replicate(rows[0]["validation"], inflated_labels(rows[0]["labels"]), inflated_labels(rows[0]["test"]))

    def add_noise(self, noise: str, seed: int, rate: float, matrix: np.ndarray, labels: np.ndarray) -> None:
        """Store what a label noise did: its realised rate and matrix, and the labels of all rows as training saw them."""
        with self.writing() as connection:
            row = (noise, seed, rate, json.dumps(matrix.tolist()), zlib.compress(labels.astype(np.int32).tobytes()))
            connection.execute("INSERT OR IGNORE INTO noise VALUES (?, ?, ?, ?, ?)", row)

    def finished(self) -> set[Run]:
        """Return the runs that need not be trained again."""
        return {Run(*(row[name] for name in Run._fields)) for row in self.run_rows()}

    def runs(self, seed: int | None = None) -> list[dict[str, Any]]:
        """Return every finished run, or those of a replicate, with their measures, in the order in which they were finished."""
        where = "TRUE" if seed is None else f"seed = {int(seed)}"
        return [self.with_measures(row) for row in self.run_rows(where)]

    def run_rows(self, where: str = "TRUE") -> list[dict[str, Any]]:
        """Return finished runs as the table has them."""
        return self.checked_rows("run", _RUN_KINDS, "id", where=where)

    def with_measures(self, row: Row) -> dict[str, Any]:
        """Return a row of the table of runs or references with its measures as further columns."""
        with self.explained(_place_of(row)):
            measures = read_json(row["measures"], dict)
            check_kinds(measures, dict.fromkeys(measures, (float, int)))
            if repeated := row.keys() & measures:
                raise ValueError(f"measures must not be named {repeated.pop()!r}")
        flags = {name: bool(row[name]) for name in ("diverged", "stopped") if name in row}
        return {**row, **measures, **flags}

    def seed_of(self, run: int) -> int:
        """Return the replicate of a run.

        Raises:
            StoreError: There is no such run, or it is damaged.
        """
        rows = self.rows("SELECT id, seed FROM run WHERE id = ?", int(run))
        if not rows:
            raise StoreError(f"{self.file} has no run {run}.")
        with self.explained(f"table run, run {run}"):
            check_kinds(dict(rows[0]), {"seed": int})
        return int(rows[0]["seed"])

    def curves(self) -> list[dict[str, Any]]:
        """Return a row for every epoch of every run that counts."""
        wanted = "run.loss, run.noise, run.seed, learning_rate, weight_decay, curve.*"
        of_choice = "JOIN choice ON choice.run = curve.run JOIN run ON run.id = curve.run"
        return self.checked_rows("curve", CURVE_KINDS, "curve.run, curve.epoch", columns=wanted, join=of_choice)

    def curve(self, run: int, name: str) -> np.ndarray:
        """Return one curve of a run, a number for each epoch that it trained for."""
        rows = self.checked_rows("curve", CURVE_KINDS, "epoch", where=f"run = {int(run)}")
        return np.array([math.nan if row[name] is None else row[name] for row in rows])

    def array(self, run: int, name: str, shape: Shape | None = None) -> np.ndarray:
        """Return an array that was kept of a run.

        Args:
            run: The number of the run.
            name: ``logits``, ``probabilities``, ``features`` or ``weights``.
            shape: What it must be, where that is known; None stands for any length.

        Raises:
            StoreError: There is none, or it is damaged.
        """
        rows = self.rows("SELECT shape, type, content FROM array WHERE run = ? AND name = ?", int(run), name)
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
        return {row["name"] for row in self.rows("SELECT name FROM array WHERE run = ?", int(run))}

    def noises(self) -> list[dict[str, Any]]:
        """Return what each label noise did, by seed: ``noise``, ``seed``, ``rate`` and ``matrix``."""
        rows = self.checked_rows("noise", _NOISE_KINDS, "rowid", columns="noise, seed, rate, matrix")
        for row in rows:
            with self.explained(f"table noise, {row['noise']} of seed {row['seed']}"):
                row["matrix"] = square_matrix(row["matrix"])
        return rows

    def noisy_labels(self, noise: str, seed: int) -> np.ndarray | None:
        """Return the labels of all rows as a noise left them; None where there was no such noise."""
        rows = self.rows("SELECT labels FROM noise WHERE noise = ? AND seed = ?", noise, seed)
        with self.explained(f"table noise, {noise} of seed {seed}"):
            return inflated_labels(rows[0]["labels"]) if rows else None


def _arrays(trained: Trained) -> Iterator[tuple[str, np.ndarray]]:
    if len(trained.test_logits):
        yield "logits", trained.test_logits
    if len(trained.test_probabilities) and not trained.predicts_softmax:
        yield "probabilities", trained.test_probabilities
    if trained.test_features is not None:
        yield "features", trained.test_features
    if trained.weights:
        stream = io.BytesIO()
        torch.save(trained.weights, stream)
        yield "weights", np.frombuffer(stream.getbuffer(), np.uint8)


def _place_of(row: Row) -> str:
    return f"table run, run {row['id']}" if "id" in row else f"table reference, {name_of(row)}"
