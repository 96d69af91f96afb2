"""Tables from files as people have them: any separator, any encoding, odd headers."""

import bz2
import csv
import gzip
import io
import lzma
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

__all__ = ["TABLE_SUFFIXES", "Table", "read_table", "tidy_columns", "unique_columns"]

TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".pq")
_OPENERS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_SEPARATORS = ",;\t|"
_MISSING = ("?", "-", "")  # beside NA, NaN, null, None and what else pandas takes for missing
_SAMPLE_LINES = 50
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NO_HEADER = "the file has no header: columns are called column1, column2, ..."


class Table(NamedTuple):
    """A table, and what is to be said about how it was read."""

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()


def read_table(path: Path) -> Table:
    """Read a CSV file or the like, compressed or not, or a Parquet file."""
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty.")
    if path.suffix.lower() in (".parquet", ".pq"):
        return tidy_columns(_parquet(path), str(path))
    text = _text(path)
    if not text.strip():
        raise ValueError(f"{path}: the file is empty.")
    separator = _separator(text)
    first = _fields(text, separator, 1)[0]
    header = _has_header(first)
    names, notes = _unique(first) if header else ([f"column{place + 1}" for place in range(len(first))], (_NO_HEADER,))
    table = tidy_columns(_parsed(text, separator, header, names, path), str(path))
    return Table(table.frame, notes)


def tidy_columns(frame: pd.DataFrame, owner: str) -> Table:
    """Make sure that there are rows and columns, and give every column a name of its own."""
    if frame.shape[1] < 2:
        raise ValueError(
            f"{owner}: not a table: needs a target and something to tell it from, got columns {list(frame.columns)}."
        )
    if not len(frame):
        raise ValueError(f"{owner}: the table has a header but no rows.")
    return unique_columns(frame)


def unique_columns(frame: pd.DataFrame) -> Table:
    """Give every column a name of its own, and number the rows from 0."""
    names, notes = _unique(list(map(str, frame.columns)))
    return Table(frame.set_axis(names, axis=1).reset_index(drop=True), notes)


def _unique(given: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Give every column a name of its own.

    >>> _unique(["x", " x ", "x.1", ""])
    (['x', 'x.1', 'x.1.1', 'unnamed4'], ("column 'x' comes again: called 'x.1'", "column 'x.1' comes again: called 'x.1.1'"))
    """
    names: list[str] = []
    notes = []
    for place, written in enumerate(given):
        name = wanted = written.strip() or f"unnamed{place + 1}"
        again = 0
        while name in names:
            again += 1
            name = f"{wanted}.{again}"
        names.append(name)
        if again:
            notes.append(f"column {wanted!r} comes again: called {name!r}")
    return names, tuple(notes)


def _parquet(path: Path) -> pd.DataFrame:
    import pyarrow

    try:
        return pd.read_parquet(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]}).") from error


def _text(path: Path) -> str:
    """Return the contents as text: UTF-8 or UTF-16 if they can be read so, or else Windows' Western encoding."""
    try:
        with _OPENERS.get(path.suffix.lower(), Path.open)(path, "rb") as file:
            raw: bytes = file.read()
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise ValueError(f"{path}: cannot be unpacked ({error}).") from error
    if b"\0" in raw and not raw.startswith(_UTF_16):
        raise ValueError(f"{path}: not a table of text, but binary data.")
    return _decoded(raw).replace("\r\n", "\n").replace("\r", "\n")


def _decoded(raw: bytes) -> str:
    if raw.startswith(_UTF_16):
        return raw.decode("utf-16", errors="replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")


def _fields(text: str, separator: str, lines: int) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a field of extreme length; what was read so far has to do
        while len(rows) < lines and (row := next(reader, None)) is not None:
            rows += [row] if row else []
    return rows or [[]]


def _separator(text: str) -> str:
    """Return the separator that cuts the first lines into the most fields, as many in nearly all of them as in the header.

    Rows may also have one field more than the header, if they start with a name of their own.
    """

    def fields(separator: str) -> tuple[int, bool]:
        header, *rows = _fields(text, separator, _SAMPLE_LINES)
        (length, times), *_ = Counter(map(len, rows or [header])).most_common(1)
        fits = times >= 0.8 * len(rows) and length - len(header) in (0, 1)
        return (length, length == len(header)) if fits else (1, False)

    return max(_SEPARATORS, key=fields)


def _has_header(first: Sequence[str]) -> bool:
    """Tell names from numbers. Columns that are numbered 0, 1, 2, ... have names all the same."""
    numbers = [number for number in map(_number, first) if number is not None]
    counted = all(number == place + numbers[0] for place, number in enumerate(numbers)) and len(numbers) > 1
    return counted or 2 * len(numbers) <= len(first)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _parsed(text: str, separator: str, header: bool, names: list[str], path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=0 if header else None,
            names=names,
            na_values=_MISSING,
            skipinitialspace=True,
            low_memory=False,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{path}: not a table: {_reason(error)}.") from error
    # A separator at the end of each line makes a column without name and values.
    return frame.drop(columns=[name for name in names if name.startswith("unnamed") and frame[name].isna().all()])


def _reason(error: Exception) -> str:
    if "EOF inside string" in str(error):
        return "a quotation mark is never closed"
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    return (
        f"line {found[2]} has {found[3]} fields where {found[1]} were expected" if found else str(error).strip().splitlines()[-1]
    )
