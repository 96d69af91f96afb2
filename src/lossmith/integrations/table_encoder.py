"""Tables and texts as inputs of a network, for data that comes later, too."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from lossmith.data.encoding.column_kinds import are_numbers, column_kind
from lossmith.data.encoding.texts import characters_of_text, words_of_text

__all__ = ["TableEncoder", "are_texts", "is_mixed_table"]

_MOST_LEVELS = 64
_MOST_TERMS = 10_000


def are_texts(data: Any) -> bool:
    """Return whether data is a text for each row.

    Args:
        data: What was given as inputs.

    Returns:
        True for lists, arrays and columns of strings.
    """
    is_row_of_values = isinstance(data, list | tuple | pd.Series) or (isinstance(data, np.ndarray) and data.ndim == 1)
    return is_row_of_values and len(data) > 0 and all(isinstance(value, str) for value in data)


def is_mixed_table(data: Any) -> bool:
    """Return whether data is a table with columns that are not numbers.

    Args:
        data: What was given as inputs.

    Returns:
        True for a ``pandas.DataFrame`` of that kind.
    """
    return isinstance(data, pd.DataFrame) and not all(are_numbers(data[name]) for name in data)


class TableEncoder:
    """Turns columns into numbers: numbers by their deviation, categories one by one, texts by the n-grams of a study.

    What is missing is the mean of a number, with a mark that it was, or a category of its own.
    """

    def fit(self, data: Any) -> "TableEncoder":
        """Learn from training rows.

        Args:
            data: A ``pandas.DataFrame``, or a text for each row.

        Returns:
            Itself.
        """
        table = _as_table(data)
        kinds = {name: _kind(column) if isinstance(data, pd.DataFrame) else "text" for name, column in table.items()}
        names = {kind: [name for name, own in kinds.items() if own == kind] for kind in ("number", "category", "text")}
        self._texts = names["text"]
        numbers = make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler())
        categories = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2, max_categories=_MOST_LEVELS)
        self._columns = ColumnTransformer(
            [
                ("numbers", numbers, names["number"]),
                ("categories", categories, names["category"]),
                *((f"text {name}", _ngrams(), name) for name in names["text"]),
            ],
            sparse_threshold=1.0 if names["text"] else 0.0,
        )
        self._columns.fit(self._read(table))
        return self

    def transform(self, data: Any) -> Any:
        """Return rows as numbers.

        Args:
            data: Rows of the same columns.

        Returns:
            An array, or a sparse matrix where there are texts.
        """
        return self._columns.transform(self._read(_as_table(data)))

    def _read(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table with texts that are all strings."""
        return table.assign(**{name: table[name].fillna("").astype(str) for name in self._texts})


def _as_table(data: Any) -> pd.DataFrame:
    table = data if isinstance(data, pd.DataFrame) else pd.DataFrame({"text": np.asarray(data, dtype=object)})
    return table.rename(columns=str)


def _kind(column: pd.Series) -> str:
    if are_numbers(column):
        return "number"
    return "text" if column_kind(column, np.arange(len(column))) == "text" else "category"


def _ngrams() -> FeatureUnion:
    options = {"sublinear_tf": True, "max_features": _MOST_TERMS, "dtype": np.float32}
    return FeatureUnion(
        [
            (name, TfidfVectorizer(analyzer=terms, **options))
            for name, terms in (("words", words_of_text), ("parts", characters_of_text))
        ]
    )
