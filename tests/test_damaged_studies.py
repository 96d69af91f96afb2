"""Every column of every table of a study with what it is not for: commands say so in one line, or are not disturbed."""

import sqlite3
import zlib
from contextlib import closing
from itertools import product

import pytest

from lossmith.command_line import main
from lossmith.studies import compare
from lossmith.studies.storage.study_file import StudyFile

ODD = {
    "text": '{"a": [1, {"b": null}]}',
    "packed": zlib.compress(b"\xff" * 400),
    "negative": -1,
    "large": 1e308,
    "infinite": float("inf"),
}
COMMANDS = ("status", "export", "status", "export", "status", "export", "report")
"""Every column meets each; a report takes ten times as long as the others."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study with rows in all tables."""
    folder = tmp_path_factory.mktemp("whole")
    options = {"epochs": 1, "rates": 0.1, "rows": 100, "seeds": 2, "progress": False, "workers": 1}
    compare("iris", losses=["ce", "bi-tempered"], noise=[0, 0.4], output=folder / "study", **options)
    return (folder / "study" / "study.sqlite").read_bytes()


def columns_of(file):
    with closing(sqlite3.connect(file)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables}


def damage(file, table, column, value):
    """Replace what one row, or all that are like it, hold in a column; return whether SQLite let it be."""
    with closing(sqlite3.connect(file)) as connection:
        try:
            query = f"UPDATE {table} SET {column} = ? WHERE {column} = (SELECT max({column}) FROM {table})"  # noqa: S608 - our own
            connection.execute(query, (value,))
        except sqlite3.IntegrityError:  # of a key that must be a number, or be there once
            return False
        connection.commit()
    return True


TABLES = [statement.split()[2] for statement in StudyFile.tables.split(";") if statement.strip()]


def fault_of(command, file, capsys):
    """Return what a command should not have said or done; nothing where it did its work, or refused to in one line."""
    before, more = file.read_bytes(), {"export": ["table.csv"], "report": ["--output", "report.html"]}
    code = main([command, str(file.parent), *more.get(command, [])])
    said = capsys.readouterr().err
    is_one_line = said.startswith("lossmith: ") and len(said.splitlines()) == 1
    return "" if file.read_bytes() == before and (code == 0 or (code == 2 and is_one_line)) else f"{command}: {code}, {said}"


@pytest.fixture
def file(whole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.sqlite").write_bytes(whole)
    return tmp_path / "study" / "study.sqlite"


@pytest.mark.parametrize("table", TABLES)
def test_no_column_holds_what_ends_in_a_traceback(table, whole, file, capsys):
    found = {}
    for number, (column, kind) in enumerate(product(columns_of(file)[table], ODD)):
        file.write_bytes(whole)
        if damage(file, table, column, ODD[kind]):
            found[column, kind] = fault_of(COMMANDS[number % len(COMMANDS)], file, capsys)
    assert found
    assert not {place: fault for place, fault in found.items() if fault}


def test_nothing_that_is_known_of_a_study_may_be_missing_in_a_traceback(whole, file, capsys):
    with closing(sqlite3.connect(file)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM meta")]
    for name in names:
        file.write_bytes(whole)
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("DELETE FROM meta WHERE name = ?", (name,))
            connection.commit()
        assert not fault_of("report", file, capsys), name
