"""Tables from files as people have them: any separator, any encoding, odd headers."""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from lossmith.data.sources.dat_headers import Preamble, read_preamble
from lossmith.data.sources.plain_text import byte_stream, utf8_text
from lossmith.data.sources.size_limit import check_size
from lossmith.expressions.quotes import shortened

__all__ = ["TABLE_SUFFIXES", "Table", "read_table", "tidy_columns", "unique_columns"]

TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".dat", ".parquet", ".pq")
_SEPARATORS = ",;\t|"
_SPACES = r"\s+"  # one or more, as pandas writes it
_MISSING = ("?", "-", "", "<null>")  # beside NA, NaN, null, None and what else pandas takes for missing
_SAMPLE_LINES = 50
_LARGE = 2**26  # bytes of a file that is read in parts
_ROWS_AT_ONCE = 50_000
_NO_HEADER = "the file has no header: columns are called column1, column2, ..."


class Table(NamedTuple):
    """A table, and what is to be said about how it was read."""

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    target: str = ""
    """The column that the file itself calls its output."""


def read_table(path: Path) -> Table:
    """Read a CSV file or the like, compressed or not, or a Parquet file.

    Args:
        path: The file.

    Returns:
        The table, every column with a name of its own.

    Raises:
        ValueError: If the file is empty, no table, or takes too much memory.
    """
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty.")
    check_size(path.stat().st_size, path)
    if path.suffix.lower() in (".parquet", ".pq"):
        return tidy_columns(_parquet(path), str(path))
    text = utf8_text(path)
    is_dat = ".dat" in (suffix.lower() for suffix in path.suffixes[-2:])
    above = read_preamble(text, path) if is_dat else Preamble()
    separator = _separator(text, above.lines, spaces=is_dat)
    first = _fields(text, separator, 1, above.lines)[0]
    layout = _layout(first, separator, above, path)
    table = tidy_columns(_parsed(text, layout, path), str(path))
    return Table(table.frame, layout.notes, above.target if above.target in table.frame.columns else "")


class _Layout(NamedTuple):
    """How the rows of a file are to be read."""

    separator: str
    skipped: int
    """Lines above the header, or above the first row."""
    header: bool
    names: list[str]
    nominal: tuple[str, ...]
    notes: tuple[str, ...]


def _layout(first: Sequence[str], separator: str, above: Preamble, path: Path) -> _Layout:
    if not above.names:
        header = _has_header(first)
        names, notes = _unique(first) if header else ([f"column{place + 1}" for place in range(len(first))], (_NO_HEADER,))
        return _Layout(separator, above.lines, header, names, (), notes)
    if first and len(first) != len(above.names):
        raise ValueError(f"{path}: rows must have the {len(above.names)} columns of the @attribute lines, got {len(first)}.")
    names, notes = _unique(above.names)
    return _Layout(separator, above.lines, False, names, above.nominal, notes)


def tidy_columns(frame: pd.DataFrame, owner: str) -> Table:
    """Make sure that there are rows and columns, and give every column a name of its own.

    Args:
        frame: The table as it was read.
        owner: Whom the error names.

    Returns:
        The table, and notes on what was renamed.

    Raises:
        ValueError: If there are fewer than two columns, or no rows.
    """
    if frame.shape[1] < 2:
        raise ValueError(
            f"{owner}: not a table: needs a target and something to tell it from, got columns {list(frame.columns)}."
        )
    if not len(frame):
        raise ValueError(f"{owner}: the table has a header but no rows.")
    return unique_columns(frame)


def unique_columns(frame: pd.DataFrame) -> Table:
    """Give every column a name of its own, and number the rows from 0.

    Args:
        frame: The table.

    Returns:
        The table, and notes on what was renamed.
    """
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
    from pyarrow import parquet

    try:
        stored = parquet.read_metadata(path)
        unpacked = sum(stored.row_group(group).total_byte_size for group in range(stored.num_row_groups))
        # Of a value that is repeated the file has one, but the table as many as there are rows.
        check_size(max(unpacked, 8 * stored.num_rows * stored.num_columns), path)
        return pd.read_parquet(path)
    except (pyarrow.ArrowException, OSError, OverflowError) as error:
        raise ValueError(f"{path}: not a readable Parquet file ({shortened(str(error).splitlines()[0])}).") from error


def _fields(text: Path | bytes, separator: str, lines: int, skipped: int) -> list[list[str]]:
    rows: list[list[str]] = []
    with io.TextIOWrapper(byte_stream(text), encoding="utf-8", newline="") as stream, suppress(csv.Error):
        written = islice(stream, skipped, None)
        if separator == _SPACES:
            reader = csv.reader((" ".join(line.split()) for line in written), delimiter=" ")
        else:
            reader = csv.reader(written, delimiter=separator, skipinitialspace=True)
        # An error is a field of extreme length; what was read so far has to do.
        while len(rows) < lines and (row := next(reader, None)) is not None:
            rows += [row] if row else []
    return rows or [[]]


def _separator(text: Path | bytes, skipped: int, *, spaces: bool) -> str:
    """Return the separator that cuts the first lines into the most fields, as many in nearly all of them as in the header.

    Rows may also have one field more than the header, if they start with a name of their own. Spaces, which stand within fields
    and beside other separators, too, are one only if there is no other.
    """

    def fields(separator: str) -> tuple[int, bool]:
        header, *rows = _fields(text, separator, _SAMPLE_LINES, skipped)
        (length, times), *_ = Counter(map(len, rows or [header])).most_common(1)
        fits = times >= 0.8 * len(rows) and length - len(header) in (0, 1)
        return (length, length == len(header)) if fits else (1, False)

    best = max(_SEPARATORS, key=fields)
    return _SPACES if spaces and fields(best)[0] == 1 else best


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


def _parsed(text: Path | bytes, layout: _Layout, path: Path) -> pd.DataFrame:
    names = layout.names
    options = {
        "sep": layout.separator,
        "skiprows": layout.skipped,
        "header": 0 if layout.header else None,
        "names": names,
        "dtype": dict.fromkeys(layout.nominal, "category"),
        "na_values": _MISSING,
        "skipinitialspace": True,
        "low_memory": False,
    }
    size = len(text) if isinstance(text, bytes) else text.stat().st_size
    try:
        frame = _read_in_parts(text, options) if size > _LARGE else None
        if frame is None:
            with byte_stream(text) as stream:
                frame = pd.read_csv(stream, **options)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{path}: not a table: {_reason(error)}.") from error
    # A separator at the end of each line makes a column without name and values.
    return frame.drop(columns=[name for name in names if name.startswith("unnamed") and frame[name].isna().all()])


def _read_in_parts(text: Path | bytes, options: Mapping[str, Any]) -> pd.DataFrame | None:
    """Return what ``pandas.read_csv`` does, in a third of the memory; None where the parts disagree on what a column holds."""
    columns: dict[str, list[pd.Series]] = {}
    with byte_stream(text) as stream, pd.read_csv(stream, chunksize=_ROWS_AT_ONCE, **options) as parts:
        for part in parts:
            for name in part.columns:
                columns.setdefault(name, []).append(part[name].copy())
                if not _agree(columns[name][0], columns[name][-1]):
                    return None
    # Each column's parts are let go of as soon as they are one.
    joined = {name: pd.concat(columns.pop(name), ignore_index=True) for name in list(columns)}
    return pd.DataFrame(joined, copy=False)


def _agree(first: pd.Series, other: pd.Series) -> bool:
    """Return whether two parts of a column become the type that the whole column would have."""
    if first.dtype == other.dtype:
        return True
    kinds = {first.dtype.kind, other.dtype.kind}
    whole = next((part for part in (first, other) if part.dtype.kind == "i"), None)
    return kinds == {"i", "f"} and whole is not None and int(whole.abs().max()) < 2**53


def _reason(error: Exception) -> str:
    if "EOF inside string" in str(error):
        return "a quotation mark is never closed"
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    return (
        f"line {found[2]} has {found[3]} fields where {found[1]} were expected" if found else str(error).strip().splitlines()[-1]
    )
