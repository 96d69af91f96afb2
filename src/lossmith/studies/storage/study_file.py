"""The file of a study as SQLite has it: its tables, how it is made, opened and checked."""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self
from uuid import uuid4

from lossmith.studies.storage.stored_content import Row, StoreError, check_kinds, explained, read_json
from lossmith.training.recipe import CURVES

__all__ = ["FORMAT", "OLD_FORMAT", "RUN_COLUMNS", "TABLES_OF_ALL_FORMATS", "StudyFile", "format_of", "name_of"]

APPLICATION = 0x105557ED  # marks the file as ours, in SQLite's own header field for that purpose
FORMAT = 2
OLD_FORMAT = 1
"""Which can be read, see :mod:`lossmith.studies.storage.old_format`."""
PATIENCE = 60.0  # seconds to wait for another process that writes

_CURVE_COLUMNS = ", ".join(f"{name} REAL" for name in CURVES)
_KEY = ("loss", "noise", "seed", "learning_rate", "weight_decay", "parameters", "epochs")
RUN_COLUMNS = ", ".join((*_KEY, "epoch", "seconds", "diverged", "stopped", "stands_for", "measures"))
TABLES_OF_ALL_FORMATS = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE curve (run INTEGER NOT NULL REFERENCES run, epoch INTEGER NOT NULL, {_CURVE_COLUMNS},
    PRIMARY KEY (run, epoch)) WITHOUT ROWID;
CREATE TABLE array (run INTEGER NOT NULL REFERENCES run, name TEXT NOT NULL, shape TEXT NOT NULL, type TEXT NOT NULL,
    content BLOB NOT NULL, PRIMARY KEY (run, name));
CREATE TABLE noise (noise TEXT NOT NULL, seed INTEGER NOT NULL, rate REAL NOT NULL, matrix TEXT NOT NULL, labels BLOB NOT NULL,
    PRIMARY KEY (noise, seed));
"""
_TABLES = f"""
{TABLES_OF_ALL_FORMATS}
CREATE TABLE run (
    id INTEGER PRIMARY KEY, loss TEXT NOT NULL, noise TEXT NOT NULL, seed INTEGER NOT NULL, learning_rate REAL NOT NULL,
    weight_decay REAL NOT NULL, parameters TEXT NOT NULL, epochs INTEGER NOT NULL, epoch INTEGER NOT NULL, seconds REAL NOT NULL,
    diverged INTEGER NOT NULL, stopped INTEGER NOT NULL, stands_for REAL NOT NULL, measures TEXT NOT NULL,
    finished TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE ({", ".join(_KEY)})
);
CREATE TABLE choice (loss TEXT NOT NULL, noise TEXT NOT NULL, seed INTEGER NOT NULL, run INTEGER NOT NULL REFERENCES run,
    untrained TEXT NOT NULL, PRIMARY KEY (loss, noise, seed)) WITHOUT ROWID;
CREATE TABLE reference (name TEXT NOT NULL, noise TEXT NOT NULL, seed INTEGER NOT NULL, settings TEXT NOT NULL,
    seconds REAL NOT NULL, measures TEXT NOT NULL, PRIMARY KEY (name, noise, seed)) WITHOUT ROWID;
CREATE TABLE replicate (seed INTEGER PRIMARY KEY, validation INTEGER NOT NULL, labels BLOB NOT NULL, test BLOB NOT NULL);
"""

_META_KINDS = {
    "settings": dict,
    "data": dict,
    "versions": dict,
    "brought": dict,
    "analysis": dict,
    "overlap": list,
    "cost": dict,
    "failures": dict,
    "tracked": dict,
}
"""What is stored about a study, where it is no text."""


class StudyFile:
    """A study's file. Reading and writing may happen from several processes."""

    format: ClassVar[int] = FORMAT
    tables: ClassVar[str] = _TABLES
    meta_kinds: ClassVar[Mapping[str, type]] = _META_KINDS

    def __init__(self, file: Path) -> None:
        self.file = Path(file)
        if not self.file.is_file():
            raise StoreError(f"{self.file} does not exist; a study is made by 'lossmith compare'.")
        self._check()

    @classmethod
    def create(cls, file: Path, meta: Mapping[str, Any]) -> Self:
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
        row = self.rows("SELECT value FROM meta WHERE name = ?", name)
        with self.explained(f"table meta, {name}"):
            return read_json(row[0]["value"], (self.meta_kinds.get(name, str), type(None))) if row else None

    def explained(self, place: str) -> AbstractContextManager[None]:
        """Return a context in which content that does not fit is an error in one line that names the file and the place."""
        return explained(self.file, place)

    def set_meta(self, name: str, value: object) -> None:
        """Store something about the study."""
        with self.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value)))

    def checked_rows(
        self, table: str, kinds: Mapping[str, Any], order: str, *, columns: str = "*", join: str = "", where: str = "TRUE"
    ) -> list[dict[str, Any]]:
        """Return the rows of a table whose columns hold what they are for."""
        query = f"SELECT {columns} FROM {table} {join} WHERE {where} ORDER BY {order}"  # noqa: S608 - our own words
        rows = [dict(row) for row in self.rows(query)]
        for row in rows:
            with self.explained(f"table {table}, {name_of(row)}"):
                check_kinds(row, kinds)
        return rows

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """Return what a query finds."""
        with self._opened() as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction, which is whole or not at all."""
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
        version = format_of(self.file)
        if version is None:
            raise StoreError(f"{self.file} is not a study of lossmith; it was left as it is.")
        if version != self.format:
            reads = f"has format {version}, and this lossmith reads format {FORMAT}; it was left as it is."
            older = "is a study of an older lossmith, which can be read but not gone on with; give another --output."
            raise StoreError(f"{self.file} {older if version == OLD_FORMAT else reads}")
        problems = [row[0] for row in self.rows("PRAGMA quick_check(1)")]
        if problems != ["ok"]:
            problem = str(problems[0]).removeprefix("*** in database main ***").strip()
            raise StoreError(f"{self.file} is damaged ({problem}); it was left as it is.")
        tables = {" ".join(row[0].split()) for row in self.rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if tables != {" ".join(table.split()) for table in self.tables.split(";") if table.strip()}:
            # Views and triggers would be computed whenever the file is read or written.
            raise StoreError(f"{self.file} has other tables than a study of lossmith has; it was left as it is.")


def format_of(file: Path) -> int | None:
    """Return the format of a study's file; None where it is none.

    It is read without SQLite, which would go on with whatever another program left unfinished in a file that is not ours.

    Args:
        file: One that is there.

    Returns:
        The number that the file gives itself.
    """
    with file.open("rb") as stream:
        header = stream.read(100)
    version, application = (int.from_bytes(header[start : start + 4]) for start in (60, 68))
    return version if header.startswith(b"SQLite format 3\0") and application == APPLICATION else None


def name_of(row: Row) -> str:
    """Return by what a person would find the row."""
    number = row.get("run", row.get("id"))
    return f"{row['noise']!r:.40} of seed {row['seed']!r:.20}" if number is None else f"run {number!r:.20}"
