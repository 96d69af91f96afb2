"""Columns of a table as inputs of a network, fitted on training rows alone."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lossmith.data.encoding.array_inputs import Encoded, standardised
from lossmith.data.encoding.column_kinds import are_numbers, column_kind, plain_column, read_numbers
from lossmith.data.encoding.pretrained import TextEncoding
from lossmith.data.encoding.texts import weighted_ngrams, word_numbers
from lossmith.data.prepared import Texts
from lossmith.data.sources.examples import Array
from lossmith.data.sparse_rows import Inputs, SparseRows
from lossmith.expressions.lists import listed, quoted

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["encode_table"]

_MOST_LEVELS = 64
_FEWEST_ROWS = 2  # of a level that has an input of its own


class _Block(NamedTuple):
    """What one column becomes: numbers ``(n, width)``, dense or sparse, and what is to be said about it."""

    numbers: "Array | csr_array"
    note: str = ""


def encode_table(table: dict[str, pd.Series], train: Tensor, *, text: str | TextEncoding, owner: str) -> Encoded:
    """Return the inputs that all columns together make; with ``text="words"`` the words of the text columns alone.

    Args:
        table: The features by name. They are taken out of it, so that each can be let go of once it is encoded: a large table
            and its inputs need not be in memory together.
        train: The places of the training rows.
        text: ``ngrams`` or ``words``, or the pretrained encoder that reads the texts.
        owner: What errors name.

    Returns:
        The inputs and notes on how columns were read.

    Raises:
        ValueError: If a column holds more than one value a row, or no column tells rows from one another.
    """
    rows = train.numpy()
    columns = {name: plain_column(table.pop(name), owner) for name in list(table)}
    kinds = {name: column_kind(column, rows) for name, column in columns.items()}
    notes = _reading_notes(columns, kinds)
    encoding = text if isinstance(text, TextEncoding) else None
    if encoding is not None and "text" not in kinds.values():
        raise ValueError(f"{owner}: an encoder needs a column of texts, got {quoted(columns)}.")
    if encoding is not None and encoding.fine_tune:
        return _encode_tokens(_encode_words(columns, kinds, owner, notes, encoding.tokens), encoding, rows)
    if text == "words":
        return _encode_words(columns, kinds, owner, notes, lambda texts: word_numbers(texts, rows))
    read = {name: kind for name, kind in kinds.items() if kind in _ENCODERS}
    strings = _joined_texts(columns, kinds)
    if encoding is not None:  # all texts of a row are one
        read = {name: kind for name, kind in read.items() if kind != "text"}
    blocks = [_varying(_ENCODERS[kind](columns.pop(name), rows), rows) for name, kind in read.items()]
    if encoding is not None:
        read, blocks = {**read, "texts": "text"}, [*blocks, _Block(encoding.vectors(strings, rows))]
        notes = (*notes, *encoding.folder.notes)
    if not sum(block.numbers.shape[1] for block in blocks):
        raise ValueError(f"{owner}: no column tells rows from one another: all are constant, or number the rows.")
    inputs = _side_by_side([block.numbers for block in blocks])
    of_texts = np.repeat([kind == "text" for kind in read.values()], [block.numbers.shape[1] for block in blocks])
    folder = None if encoding is None else encoding.folder
    texts = Texts(strings, torch.from_numpy(of_texts), folder) if of_texts.any() else None
    return Encoded(inputs, (*notes, *(block.note for block in blocks if block.note)), texts)


def _varying(block: _Block, rows: Array) -> _Block:
    """Return the inputs that differ among training rows, in single precision."""
    numbers = block.numbers.astype(np.float32, copy=False)
    if isinstance(numbers, np.ndarray):
        varies = np.array([np.ptp(column[rows]) > 0 for column in numbers.T], dtype=bool)
    else:
        varies = _varying_columns(numbers, rows)
    return _Block(numbers if varies.all() else numbers[:, varies], block.note)


def _varying_columns(numbers: "csr_array", rows: Array) -> Array:
    """Return which columns differ among some rows; without a copy of these, as there may be millions of numbers."""
    among = np.zeros(numbers.shape[0], dtype=bool)
    among[rows] = True
    counts = np.bincount(numbers.indices[np.repeat(among, np.diff(numbers.indptr))], minlength=numbers.shape[1])
    varies = (counts > 0) & (counts < len(rows))
    for column in np.flatnonzero(counts == len(rows)):
        varies[column] = np.ptp(numbers[rows][:, [column]].toarray()) > 0
    return varies


def _side_by_side(blocks: "Sequence[Array | csr_array]") -> Inputs:
    """Return all blocks together: as a tensor, or as sparse rows if one of them is sparse."""
    if all(isinstance(block, np.ndarray) for block in blocks):
        return torch.from_numpy(np.concatenate(blocks, axis=1, dtype=np.float32))
    from scipy.sparse import csr_array, hstack

    parts = [csr_array(block) for block in blocks]
    return SparseRows.of(parts[0] if len(parts) == 1 else hstack(parts, format="csr", dtype=np.float32))


def _encode_words(
    columns: dict[str, pd.Series],
    kinds: dict[str, str],
    owner: str,
    notes: tuple[str, ...],
    numbers: Callable[[Sequence[str]], Array],
) -> Encoded:
    texts = [column for column, kind in kinds.items() if kind == "text"]
    if not texts:
        raise ValueError(f"{owner}: text='words' needs a column of texts, got {quoted(columns)}.")
    ignored = [column for column, kind in kinds.items() if kind in _ENCODERS and kind != "text"]
    if ignored:
        notes = (*notes, f"words of {quoted(texts)} alone are used, not {quoted(ignored)}")
    strings = _joined_texts(columns, kinds)
    inputs = torch.from_numpy(numbers(strings))
    return Encoded(inputs, notes, Texts(strings, torch.ones(inputs.shape[1], dtype=torch.bool)))


def _encode_tokens(words: Encoded, encoding: TextEncoding, rows: Array) -> Encoded:
    """Return tokens with the encoder that they are for, and its vectors, which models beside learn from."""
    assert words.texts is not None
    vectors = torch.from_numpy(encoding.vectors(words.texts.strings, rows))
    texts = replace(words.texts, encoder=encoding.folder, vectors=vectors)
    return Encoded(words.inputs, (*words.notes, *encoding.folder.notes), texts)


def _joined_texts(columns: dict[str, pd.Series], kinds: dict[str, str]) -> tuple[str, ...]:
    """Return the texts of each row, one behind the other; nothing where no column holds any."""
    texts = [_strings(columns[column]) for column, kind in kinds.items() if kind == "text"]
    return tuple(" ".join(parts) for parts in zip(*texts, strict=True))


def _encode_numbers(column: pd.Series, rows: Array) -> _Block:
    """Standardise, put the mean where a number is missing, and tell in a second input where that was."""
    numbers = _as_floats(column if are_numbers(column) else read_numbers(column, rows))
    infinite = np.isinf(numbers)
    numbers[infinite] = np.nan
    note = f"column {column.name!r} has {int(infinite.sum())} infinite numbers: taken as missing" if infinite.any() else ""
    missing = np.isnan(numbers)
    scaled = _standardised_column(numbers, rows)
    parts = [scaled, missing.astype(np.float64)] if missing[rows].any() else [scaled]
    return _Block(np.stack(parts, axis=1), note)


def _as_floats(column: pd.Series) -> Array:
    """Return numbers in double precision, in an array of their own, with NaN where they are missing."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return np.array(column.to_numpy(), dtype=np.float64)
    return np.asarray(column.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))


def _standardised_column(numbers: Array, rows: Array) -> Array:
    """Give known training rows mean 0 and deviation 1; what is missing is 0, the mean."""
    known = rows[~np.isnan(numbers[rows])]
    if not len(known):
        return np.zeros_like(numbers)
    scaled, varies = standardised(numbers[:, None], known)
    return np.nan_to_num(scaled[:, 0]) if varies.all() else np.zeros_like(numbers)


def _encode_categories(column: pd.Series, rows: Array) -> _Block:
    """Give an input to each frequent level, one to all others together, and one to missing values, if there are any."""
    values = column.astype(object).where(column.notna(), None).map(lambda value: None if value is None else str(value).strip())
    counts = values.iloc[rows].value_counts().sort_index().sort_values(ascending=False, kind="stable")
    frequent = counts.index[:_MOST_LEVELS][counts.iloc[:_MOST_LEVELS] >= _FEWEST_ROWS]
    codes = pd.Index(frequent).get_indexer(values)
    missing = values.isna().to_numpy()
    codes[(codes < 0) & ~missing] = len(frequent)
    codes[missing] = len(frequent) + 1
    pooled = len(counts) - len(frequent)
    note = f"column {column.name!r}: {pooled} of {len(counts)} categories are rare, and taken as one" if pooled else ""
    return _Block(np.eye(len(frequent) + 2, dtype=np.float32)[codes], note)


def _encode_dates(column: pd.Series, rows: Array) -> _Block:
    """Tell how long ago, and the time of year, of the week and of the day as points on circles."""
    dates = column if pd.api.types.is_datetime64_any_dtype(column) else _parsed_dates(column, rows)
    if getattr(dates.dt, "tz", None) is not None:
        dates = dates.dt.tz_convert(None)
    days = _as_array((dates - pd.Timestamp(2000, 1, 1)) / pd.Timedelta(days=1))
    turns = [dates.dt.day_of_year / 365.25, dates.dt.day_of_week / 7, (dates.dt.hour * 60 + dates.dt.minute) / 1440]
    angles = [2 * np.pi * _as_array(turn) for turn in turns]
    waves = [np.nan_to_num(wave(angle)) for angle in angles for wave in (np.sin, np.cos)]
    return _Block(np.stack([_standardised_column(days, rows), *waves, np.isnan(days)], axis=1))


def _as_array(column: pd.Series) -> Array:
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _parsed_dates(column: pd.Series, rows: Array) -> pd.Series:
    """Read dates; of 03/04/2024 the day comes first if some training row has a number above 12 there."""
    parts = column.iloc[rows].astype(str).str.extract(r"^(\d{1,2})[-/.](\d{1,2})[-/.]\d{2,4}")
    first = pd.to_numeric(parts[0], errors="coerce").max()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas wonders about the order of day and month
        return pd.to_datetime(column, errors="coerce", format="mixed", dayfirst=bool(first > 12), utc=True)


def _encode_texts(column: pd.Series, rows: Array) -> _Block:
    return _Block(weighted_ngrams(_strings(column), rows))


def _strings(column: pd.Series) -> list[str]:
    return ["" if pd.isna(value) else str(value) for value in column]


_ENCODERS: dict[str, Callable[[pd.Series, Array], _Block]] = {
    "number": _encode_numbers,
    "category": _encode_categories,
    "date": _encode_dates,
    "text": _encode_texts,
}
_PLURALS = {"number": "numbers", "category": "categories", "date": "dates", "text": "text"}
_DROPPED = {
    "constant": "constant in training rows",
    "row numbers": "different in (nearly) every row, like a name or number of it",
}


def _reading_notes(given: dict[str, pd.Series], kinds: dict[str, str]) -> tuple[str, ...]:
    """Say how columns are read, which are dropped, and where values are missing."""
    shares = {name: column.isna().mean() for name, column in given.items()}
    columns = {kind: [column for column, found in kinds.items() if found == kind] for kind in (*_PLURALS, *_DROPPED)}
    read = [f"{plural}: {quoted(columns[kind])}" for kind, plural in _PLURALS.items() if columns[kind]]
    gaps = [f"{column!r} {share:.1%}" for column, share in shares.items() if share and kinds[column] != "constant"]
    return (
        *([f"read as {'; '.join(read)}"] if read else []),
        *(f"{quoted(columns[kind])}: dropped, {why}" for kind, why in _DROPPED.items() if columns[kind]),
        *([f"missing values: {listed(gaps)}"] if gaps else []),
    )
