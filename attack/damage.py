"""Study files with bytes flipped, cut off, and contents replaced: each is refused in one line, or read, and left as it is."""

import io
import json
import random
import sqlite3
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from attack.command import run
from attack.kind import Failure, Kind
from attack.odd_values import odd_json, odd_text

__all__ = ["DAMAGE"]

OPTIONS = (
    *("--losses", "ce,bi-tempered", "--noise", "0,0.4", "--seeds", "2", "--rates", "0.1", "--epochs", "2", "--rows", "120"),
    *("--analyse", "--no-report", "--workers", "1"),
)
OLD = Path(__file__).parent.parent / "tests" / "data" / "study-of-format-1.sqlite"
"""A study of the first format, which is still read."""
COLUMNS = {
    "meta": ("name", "value"),
    "run": ("id", "loss", "noise", "seed", "learning_rate", "epoch", "seconds", "diverged", "measures", "finished"),
    "choice": ("loss", "noise", "seed", "run", "untrained"),
    "reference": ("name", "noise", "seed", "settings", "seconds", "measures"),
    "replicate": ("seed", "validation", "labels", "test"),
    "curve": ("run", "epoch", "train_loss", "memorised"),
    "array": ("run", "name", "shape", "type", "content"),
    "noise": ("noise", "seed", "rate", "matrix", "labels"),
}
NEW_COLUMNS = ("weight_decay", "parameters", "epochs", "stopped", "stands_for")
"""Of runs, beside those of the first format."""
JSON = {"meta": "value", "run": "measures", "reference": "measures", "noise": "matrix", "array": "shape"}
OLD_SHARE = 0.3
MOST_FLIPS = 20
BOMB = 2**31


def whole(folder: Path) -> tuple[bytes, bytes]:
    """Return a study's file with everything that there can be in it, and one of the first format."""
    ended = run(["compare", "digits", *OPTIONS, "--output", folder / "study"], folder, 300)
    if ended.code:
        raise RuntimeError(ended.err)
    return (folder / "study" / "study.sqlite").read_bytes(), OLD.read_bytes()


def attempt(chance: random.Random, folder: Path, contents: tuple[bytes, bytes]) -> None:
    """Damage the file in one way, and read it by one command."""
    is_old = chance.random() < OLD_SHARE
    study = folder / "study"
    study.mkdir()
    file = study / "study.sqlite"
    file.write_bytes(contents[is_old])
    way = chance.choice(WAYS)
    way(chance, file)
    before = file.read_bytes()
    words = chance.choice(_commands(study, folder))
    try:
        run(words, folder)
    except Failure as failure:
        raise Failure(f"{way.__name__}: {failure}") from None
    if file.read_bytes() != before and (is_old or words[0] in ("status", "report", "export", "rank")):
        raise Failure(f"{way.__name__}: the file was changed by lossmith {' '.join(map(str, words))}")


def _commands(study: Path, folder: Path) -> list[list[object]]:
    return [
        ["status", study],
        ["report", study, "--output", folder / "report.html"],
        *(["export", study, folder / f"table.{ending}"] for ending in ("csv", "parquet", "md", "tex")),
        ["rank", study],
        ["analyse", study, "--no-report", "--rows", "20", "--seeds", "1"],
    ]


def flip_bytes(chance: random.Random, file: Path) -> None:
    """A few bytes are others."""
    content = bytearray(file.read_bytes())
    for _ in range(chance.randint(1, MOST_FLIPS)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def cut_off(chance: random.Random, file: Path) -> None:
    """The end is missing."""
    content = file.read_bytes()
    file.write_bytes(content[: chance.randrange(len(content))])


def overwrite_a_block(chance: random.Random, file: Path) -> None:
    """A block holds zeros or chance."""
    content = file.read_bytes()
    start, size = chance.randrange(len(content)), chance.choice((16, 512, 4096))
    block = bytes(size) if chance.random() < 0.5 else chance.randbytes(size)
    file.write_bytes((content[:start] + block + content[start + size :])[: len(content)])


def replace_a_value(chance: random.Random, file: Path) -> None:
    """A column holds what it is not for."""
    table = chance.choice(_tables(file))
    values = [odd_text(chance), json.dumps(odd_json(chance)), chance.randbytes(50), chance.choice((0, -1, 2**62, 1e300, 0.5))]
    columns = COLUMNS[table] + (NEW_COLUMNS if table == "run" and "choice" in _tables(file) else ())
    column, value = chance.choice(columns), chance.choice([*values, zlib.compress(chance.randbytes(chance.randrange(99)))])
    _change(file, f"UPDATE {table} SET {column} = ? WHERE {_some_row(chance, file, table)}", value)


def change_json(chance: random.Random, file: Path) -> None:
    """Something within the settings, measures or analyses is another thing, or missing."""
    table = chance.choice([table for table in _tables(file) if table in JSON])
    column = JSON[table]
    where = _some_row(chance, file, table)
    with closing(sqlite3.connect(file)) as connection:
        (text,) = connection.execute(f"SELECT {column} FROM {table} WHERE {where}").fetchone()
    _change(file, f"UPDATE {table} SET {column} = ? WHERE {where}", json.dumps(_changed(chance, json.loads(text))))


def delete_rows(chance: random.Random, file: Path) -> None:
    """Rows are missing."""
    table = chance.choice(_tables(file))
    _change(file, f"DELETE FROM {table} WHERE {_some_row(chance, file, table)}")


def add_what_is_no_table(chance: random.Random, file: Path) -> None:
    """A view or a trigger, which would be computed whenever it is met."""
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    table = chance.choice(_tables(file))
    _change(file, f"ALTER TABLE {table} RENAME TO hidden")
    _change(file, f"CREATE VIEW {table} AS {endless}")


def plant_a_bomb(chance: random.Random, file: Path) -> None:
    """A small content would inflate to gigabytes."""
    packer, part = zlib.compressobj(1), bytes(2**24)
    # After a full flush equal parts are equal bytes, so that two of them need to be packed.
    first, other = (packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    content = first + other * (BOMB // len(part) - 1)
    column = chance.choice(("array SET content", "noise SET labels", "replicate SET test", "replicate SET labels"))
    _change(file, f"UPDATE {column} = ?", content)
    if chance.random() < 0.5:
        _change(file, "UPDATE array SET shape = ?", json.dumps([BOMB // 4]))


def pack_the_weights(chance: random.Random, file: Path) -> None:
    """The weights are an archive that somebody else made."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("archive/data.pkl", "archive/version", "archive/data/0"):
            archive.writestr(name, chance.randbytes(10) + bytes(2**20))
    content = stream.getvalue()
    query = "UPDATE array SET shape = ?, type = 'uint8', content = ? WHERE name = 'weights'"
    _change(file, query, json.dumps([len(content)]), zlib.compress(content))


def _change(file: Path, query: str, *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection:
        try:
            connection.execute(query, values)
        except sqlite3.Error:
            return  # SQLite itself does not let it be
        connection.commit()


def _tables(file: Path) -> list[str]:
    """Return the tables of a file, which are fewer in the first format."""
    with closing(sqlite3.connect(file)) as connection:
        there = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    return [table for table in COLUMNS if table in there]


def _some_row(chance: random.Random, file: Path, table: str) -> str:
    """Return a condition that one row fulfils."""
    key = {"meta": "name", "curve": "run", "run": "id", "choice": "run", "reference": "name"}.get(table, "rowid")
    with closing(sqlite3.connect(file)) as connection:
        keys = [row[0] for row in connection.execute(f"SELECT DISTINCT {key} FROM {table} ORDER BY 1")]
    return f"{key} = {chance.choice(keys)!r}"


def _changed(chance: random.Random, value: Any) -> Any:
    """Return JSON with one thing in it replaced, removed or doubled."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        name = chance.choice(sorted(value))
        if chance.random() < 0.2:
            return {other: part for other, part in value.items() if other != name}
        return {**value, name: _changed(chance, value[name])}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        middle = chance.choice(([], [value[place]] * 2, [_changed(chance, value[place])]))
        return [*value[:place], *middle, *value[place + 1 :]]
    return odd_json(chance)


WAYS: tuple[Callable[[random.Random, Path], None], ...] = (
    flip_bytes,
    cut_off,
    overwrite_a_block,
    replace_a_value,
    replace_a_value,
    change_json,
    change_json,
    change_json,
    delete_rows,
    add_what_is_no_table,
    plant_a_bomb,
    pack_the_weights,
)
DAMAGE = Kind("damage", attempt, whole, share=2.0)
