"""What a column of a table holds, as far as its training rows tell."""

import re

import numpy as np
import pandas as pd

from lossmith.data.encoding.texts import word_count
from lossmith.data.sources.column_values import check_single_values
from lossmith.data.sources.examples import Array

__all__ = ["are_numbers", "column_kind", "plain_column", "read_numbers"]

_ID_NAME = re.compile(r"(.*[\W_])?(id|ids|index|idx|uuid|guid|key|row|nr|no|number)|unnamed.*", re.IGNORECASE)
_ID_NAME_IN_ONE_WORD = re.compile(
    r".*[a-z](Id|ID|Ids|IDs|Index|Idx|Key|Nr|No|Number)"
    r"|(?i:(row|record|item|case|sample|user|customer|client|person|patient|passenger|order|account|transaction|product)id)"
)
_TIME_NAME = re.compile(r"(.*[\W_])?(date|time|timestamp|year|month|day|week|hour|minute|second|age|epoch)s?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([ T].*)?")
_DIGITS = re.compile(r"\d{1,18}")
_SIGNS = r"[\s$€£¥%]"
_STYLES = {
    "plain": re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"),
    "commas between thousands": re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?"),
    "decimal commas": re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?"),
}
_TEXT_WORDS = 4
_FEWEST_TO_COUNT = 10  # rows that count without a gap
_FEWEST_TO_TELL = 20  # rows whose numbers would not be all different, or grow, by chance


def plain_column(column: pd.Series, owner: str) -> pd.Series:
    """Turn spans of time into seconds and periods into dates; refuse what is not one value a row.

    Args:
        column: A column of a table.
        owner: Whom the error names.

    Returns:
        A column of numbers, dates or single values.

    Raises:
        ValueError: If there are lists or the like in it.
    """
    if pd.api.types.is_timedelta64_dtype(column):
        return column.dt.total_seconds()
    if isinstance(column.dtype, pd.PeriodDtype):
        return column.dt.to_timestamp()
    check_single_values(column, owner)
    return column


def column_kind(column: pd.Series, rows: Array) -> str:
    """Return ``number``, ``category``, ``date`` or ``text``, or else ``constant`` or ``row numbers``, which teach nothing.

    Args:
        column: A column of a table.
        rows: The training rows, by which the kind is told.

    Returns:
        One of the six words.
    """
    known = column.iloc[rows].dropna()
    if len(known) in (0, len(rows)) and _are_all_equal(known):
        return "constant"
    if _numbers_the_rows(known, len(column)):
        return "row numbers"
    if are_numbers(column) or _number_style(known) is not None:
        return "number"
    if pd.api.types.is_datetime64_any_dtype(column) or _matches(known, _DATE):
        return "date"
    return "category" if isinstance(column.dtype, pd.CategoricalDtype) else _kind_of_strings(known.astype(str))


def _are_all_equal(known: pd.Series) -> bool:
    if isinstance(known.dtype, np.dtype) and known.dtype.kind in "biufmM":  # much quicker than to count what differs
        values = known.to_numpy()
        return bool((values == values[:1]).all())
    return bool(known.nunique() <= 1)


def are_numbers(column: pd.Series) -> bool:
    """Return whether a column has a type of numbers or truth values.

    Args:
        column: A column of a table.

    Returns:
        True if nothing has to be read from text.
    """
    return bool(pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column))


def read_numbers(column: pd.Series, rows: Array) -> pd.Series:
    """Read numbers in the style of the training rows; what is written differently is missing.

    Args:
        column: Numbers as text.
        rows: The training rows, by which the style is told.

    Returns:
        Numbers, NaN where missing.
    """
    style = _number_style(column.iloc[rows].dropna())
    bare = column.astype(str).str.replace(_SIGNS, "", regex=True)
    if style == "decimal commas":
        bare = bare.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    elif style == "commas between thousands":
        bare = bare.str.replace(",", "", regex=False)
    return pd.to_numeric(bare, errors="coerce")


def _kind_of_strings(known: pd.Series) -> str:
    words, distinct = word_count(known), known.nunique() / len(known)
    if words >= 2 and distinct > (0.2 if words >= _TEXT_WORDS else 0.5):
        return "text"
    without_spaces = known.str.len().mean() >= 12 and known.str.contains(r"[^\x00-\x7f]").mean() > 0.5  # such as Chinese
    if without_spaces and distinct > 0.5:
        return "text"
    return "row numbers" if distinct > 0.9 and len(known) >= 20 else "category"


def _numbers_the_rows(known: pd.Series, total: int) -> bool:
    """Return whether whole numbers only tell which row it is, of so many in all.

    They are called so and hardly repeat; or they count the rows, or do so in another order; or they grow from row to row, as
    numbers that are handed out do. Times, which grow too, are no such numbers.
    """
    if len(known) < _FEWEST_TO_COUNT or not _are_whole(known):
        return False
    name = str(known.name)
    if _ID_NAME.fullmatch(name) or _ID_NAME_IN_ONE_WORD.fullmatch(name):
        return bool(known.nunique() > 0.9 * len(known))
    if known.dtype.kind == "f":
        return False
    numbers = known.astype(np.int64).to_numpy()
    steps = np.diff(numbers)
    if (steps == np.diff(known.index)).all():
        return True
    if len(numbers) < _FEWEST_TO_TELL:
        return False
    counts_all = numbers.min() >= 0 and numbers.max() <= total < 2 * len(numbers) and len(np.unique(numbers)) == len(numbers)
    return bool(counts_all or ((steps > 0).all() and not _TIME_NAME.fullmatch(name)))


def _are_whole(known: pd.Series) -> bool:
    if known.dtype.kind == "f":
        return bool((known % 1 == 0).all())
    return known.dtype.kind in "iu" or (known.dtype.kind not in "bmM" and _matches(known, _DIGITS))


def _number_style(known: pd.Series) -> str | None:
    """Return how text writes numbers, perhaps with a sign of currency or per cent, or None if there is anything else."""
    if isinstance(known.dtype, pd.CategoricalDtype):
        return None
    bare = known.astype(str).str.replace(_SIGNS, "", regex=True)
    return next((style for style, pattern in _STYLES.items() if _matches(bare, pattern)), None)


def _matches(known: pd.Series, pattern: re.Pattern[str]) -> bool:
    return bool(len(known)) and all(pattern.fullmatch(str(value).strip()) for value in known.unique())
