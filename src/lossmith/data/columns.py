"""Columns of a table as inputs of a network, fitted on training rows alone."""

import re
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lossmith.data.arrays import Encoded
from lossmith.data.examples import Array
from lossmith.data.texts import hashed_ngrams, word_count, word_numbers

__all__ = ["encode_table"]

_ID_NAME = re.compile(r"(.*[\W_])?(id|ids|index|idx|uuid|guid|key|rowid|row|nr|no|number)|unnamed.*|", re.IGNORECASE)
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([ T].*)?")
_DIGITS = re.compile(r"\d{1,18}")
_SIGNS = r"[\s$€£¥%]"
_STYLES = {
    "plain": re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"),
    "commas between thousands": re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?"),
    "decimal commas": re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?"),
}
_MOST_LEVELS = 64
_FEWEST_ROWS = 2  # of a level that has an input of its own
_TEXT_WORDS = 4


class _Block(NamedTuple):
    """What one column becomes: numbers ``(n, width)``, and what is to be said about it."""

    numbers: Array
    note: str = ""


def encode_table(frame: pd.DataFrame, train: Tensor, *, text: str, owner: str) -> Encoded:
    """Return the inputs that all columns together make; with ``text="words"`` the words of the text columns alone."""
    rows = train.numpy()
    _refuse_lists(frame, owner)
    kinds = {column: _kind(frame[column], rows) for column in frame.columns}
    notes = _reading_notes(frame, kinds)
    if text == "words":
        return _encode_words(frame, rows, kinds, owner, notes)
    blocks = {column: _ENCODERS[kind](frame[column], rows) for column, kind in kinds.items() if kind in _ENCODERS}
    if not blocks:
        raise ValueError(f"{owner}: no column tells rows from one another: all are constant, or number the rows.")
    numbers = np.concatenate([block.numbers for block in blocks.values()], axis=1)
    varies = np.ptp(numbers[rows], axis=0) > 0
    inputs = torch.from_numpy(np.ascontiguousarray(numbers[:, varies], dtype=np.float32))
    return Encoded(inputs, (*notes, *(block.note for block in blocks.values() if block.note)))


def _encode_words(frame: pd.DataFrame, rows: Array, kinds: dict[str, str], owner: str, notes: tuple[str, ...]) -> Encoded:
    texts = [column for column, kind in kinds.items() if kind == "text"]
    if not texts:
        raise ValueError(f"{owner}: text='words' needs a column of texts, got {_listed(list(frame.columns))}.")
    ignored = [column for column, kind in kinds.items() if kind not in ("text", "constant", "row numbers")]
    joined = [" ".join(parts) for parts in zip(*(_strings(frame[column]) for column in texts), strict=True)]
    if ignored:
        notes = (*notes, f"words of {_listed(texts)} alone are used, not {_listed(ignored)}")
    return Encoded(torch.from_numpy(word_numbers(joined, rows)), notes)


def _refuse_lists(frame: pd.DataFrame, owner: str) -> None:
    for column in frame.columns:
        found = frame[column].map(lambda value: isinstance(value, list | tuple | dict | set | np.ndarray))
        if found.any():
            kind = type(frame[column][found].iloc[0]).__name__
            raise ValueError(f"{owner}: column {column!r} must hold single values, got {kind}.")


def _kind(column: pd.Series, rows: Array) -> str:
    """Return what a column holds, as far as the training rows tell."""
    known = column.iloc[rows].dropna()
    if known.nunique() <= 1 and not (0 < len(known) < len(rows)):
        return "constant"
    if _numbers_the_rows(known):
        return "row numbers"
    if _are_numbers(column) or _number_style(known) is not None:
        return "number"
    if pd.api.types.is_datetime64_any_dtype(column) or _matches(known, _DATE):
        return "date"
    return "category" if isinstance(column.dtype, pd.CategoricalDtype) else _kind_of_strings(known.astype(str))


def _kind_of_strings(known: pd.Series) -> str:
    words, distinct = word_count(known), known.nunique() / len(known)
    if distinct > (0.2 if words >= _TEXT_WORDS else 0.5) and words >= 2:
        return "text"
    long = known.str.len().mean() >= 12 and known.str.contains(r"[^\x00-\x7f]").mean() > 0.5  # writing without spaces
    if long and distinct > 0.5:
        return "text"
    return "row numbers" if distinct > 0.9 and len(known) >= 20 else "category"


def _numbers_the_rows(known: pd.Series) -> bool:
    """Return whether whole numbers only tell which row it is: they are called so and hardly repeat, or count the rows."""
    whole = known.dtype.kind in "iu" or (known.dtype.kind not in "fbmM" and _matches(known, _DIGITS))
    if not whole or len(known) < 10:
        return False
    if _ID_NAME.fullmatch(str(known.name)):
        return bool(known.nunique() > 0.9 * len(known))
    steps = np.diff(known.astype(np.int64)) / np.maximum(np.diff(known.index), 1)
    return bool((steps == 1).all())


def _are_numbers(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column))


def _number_style(known: pd.Series) -> str | None:
    """Return how text writes numbers, perhaps with a sign of currency or per cent, or None if there is anything else."""
    if isinstance(known.dtype, pd.CategoricalDtype):
        return None
    bare = known.astype(str).str.replace(_SIGNS, "", regex=True)
    return next((style for style, pattern in _STYLES.items() if _matches(bare, pattern)), None)


def _read_numbers(column: pd.Series, rows: Array) -> pd.Series:
    """Read numbers in the style of the training rows; what is written differently is missing."""
    style = _number_style(column.iloc[rows].dropna())
    bare = column.astype(str).str.replace(_SIGNS, "", regex=True)
    if style == "decimal commas":
        bare = bare.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    elif style == "commas between thousands":
        bare = bare.str.replace(",", "", regex=False)
    return pd.to_numeric(bare, errors="coerce")


def _matches(known: pd.Series, pattern: re.Pattern[str]) -> bool:
    return bool(len(known)) and all(pattern.fullmatch(str(value).strip()) for value in known.unique())


def _encode_numbers(column: pd.Series, rows: Array) -> _Block:
    """Standardise, put the mean where a number is missing, and tell in a second input where that was."""
    numbers = (
        (column if _are_numbers(column) else _read_numbers(column, rows))
        .astype("Float64")
        .to_numpy(dtype=np.float64, na_value=np.nan)
    )
    infinite = np.isinf(numbers)
    numbers[infinite] = np.nan
    note = f"column {column.name!r} has {int(infinite.sum())} infinite numbers: taken as missing" if infinite.any() else ""
    missing = np.isnan(numbers)
    scaled = np.where(missing, 0.0, _standardised(numbers, rows))
    parts = [scaled, missing.astype(np.float64)] if missing[rows].any() else [scaled]
    return _Block(np.stack(parts, axis=1), note)


def _standardised(numbers: Array, rows: Array) -> Array:
    known = numbers[rows][~np.isnan(numbers[rows])]
    if not len(known):
        return np.zeros_like(numbers)
    deviation = known.std()
    return np.asarray((numbers - known.mean()) / (deviation if deviation > 0 else 1.0))


def _encode_categories(column: pd.Series, rows: Array) -> _Block:
    """Give an input to each frequent level, one to all others together, and one to missing values, if there are any."""
    values = column.astype(object).where(column.notna(), None).map(lambda value: None if value is None else str(value).strip())
    counts = values.iloc[rows].value_counts()
    frequent = counts.index[:_MOST_LEVELS][counts.iloc[:_MOST_LEVELS] >= _FEWEST_ROWS]
    codes = pd.Index(frequent).get_indexer(values)
    missing = values.isna().to_numpy()
    codes[(codes < 0) & ~missing] = len(frequent)
    codes[missing] = len(frequent) + 1
    numbers = np.zeros((len(values), len(frequent) + 2))
    numbers[np.arange(len(values)), codes] = 1.0
    pooled = len(counts) - len(frequent)
    note = f"column {column.name!r}: {pooled} of {len(counts)} categories are rare, and taken as one" if pooled else ""
    return _Block(numbers, note)


def _encode_dates(column: pd.Series, rows: Array) -> _Block:
    """Tell how long ago, and the time of year, of the week and of the day as points on circles."""
    dates = column if pd.api.types.is_datetime64_any_dtype(column) else _parsed_dates(column, rows)
    if getattr(dates.dt, "tz", None) is not None:
        dates = dates.dt.tz_convert(None)
    missing = dates.isna().to_numpy()
    days = ((dates - pd.Timestamp(2000, 1, 1)) / pd.Timedelta(days=1)).to_numpy(dtype=np.float64, na_value=np.nan)
    turns = [dates.dt.day_of_year / 365.25, dates.dt.day_of_week / 7, (dates.dt.hour * 60 + dates.dt.minute) / 1440]
    angles = [2 * np.pi * turn.to_numpy(dtype=np.float64, na_value=np.nan) for turn in turns]
    numbers = np.stack(
        [_standardised(days, rows), *(wave(angle) for angle in angles for wave in (np.sin, np.cos)), missing], axis=1
    )
    return _Block(np.nan_to_num(numbers))


def _parsed_dates(column: pd.Series, rows: Array) -> pd.Series:
    """Read dates; of 03/04/2024 the day comes first if some training row has a number above 12 there."""
    parts = column.iloc[rows].astype(str).str.extract(r"^(\d{1,2})[-/.](\d{1,2})[-/.]\d{2,4}")
    first = pd.to_numeric(parts[0], errors="coerce").max()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas wonders about the order of day and month
        return pd.to_datetime(column, errors="coerce", format="mixed", dayfirst=bool(first > 12), utc=True).dt.tz_convert(None)


def _encode_texts(column: pd.Series, rows: Array) -> _Block:
    return _Block(hashed_ngrams(_strings(column), rows))


def _strings(column: pd.Series) -> list[str]:
    return ["" if pd.isna(value) else str(value) for value in column]


_ENCODERS: dict[str, Callable[[pd.Series, Array], _Block]] = {
    "number": _encode_numbers,
    "category": _encode_categories,
    "date": _encode_dates,
    "text": _encode_texts,
}


def _reading_notes(frame: pd.DataFrame, kinds: dict[str, str]) -> tuple[str, ...]:
    """Say how columns are read, which are dropped, and where values are missing."""
    by_kind = {kind: [column for column, found in kinds.items() if found == kind] for kind in _ENCODERS}
    names = {"number": "numbers", "category": "categories", "date": "dates", "text": "text"}
    notes = ["read as " + "; ".join(f"{names[kind]}: {_listed(found)}" for kind, found in by_kind.items() if found)]
    for kind, what in (
        ("constant", "constant in training rows"),
        ("row numbers", "(nearly) different in each row, like a name or number of it"),
    ):
        found = [column for column, given in kinds.items() if given == kind]
        if found:
            notes.append(f"{_listed(found)}: dropped, {what}")
    missing = frame.isna().mean()
    gaps = [f"{column!r} {share:.1%}" for column, share in missing.items() if share and kinds[column] != "constant"]
    return (
        (*notes, f"missing values: {', '.join(gaps[:10])}" + (f" and {len(gaps) - 10} more" if len(gaps) > 10 else ""))
        if gaps
        else tuple(notes)
    )


def _listed(columns: list[str]) -> str:
    shown = ", ".join(map(repr, columns[:10]))
    return shown if len(columns) <= 10 else f"{shown} and {len(columns) - 10} more"
