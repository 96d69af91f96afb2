"""Rows that have a label."""

from dataclasses import replace

import numpy as np
import pandas as pd

from lossmith.data.sources.examples import Array, Examples

__all__ = ["with_labels"]


def with_labels(examples: Examples) -> Examples:
    """Leave out rows without a label; where only the true label is missing, the label has to do.

    Args:
        examples: All rows.

    Returns:
        Those with a label, with a note on the others.
    """
    missing = _missing(examples.labels)
    if missing.any():
        examples = examples.rows(np.flatnonzero(~missing))
        examples = replace(examples, notes=(*examples.notes, f"{int(missing.sum())} rows have no label: left out"))
    if examples.true_labels is None:
        return examples
    unknown = _missing(examples.true_labels)
    truth = np.where(unknown, examples.labels, examples.true_labels)
    note = (f"{int(unknown.sum())} rows have no true label: their label is taken for it",) if unknown.any() else ()
    return replace(examples, true_labels=truth, notes=(*examples.notes, *note))


def _missing(labels: Array) -> Array:
    empty = np.array([isinstance(label, str) and not label.strip() for label in labels], dtype=bool)
    return np.asarray(pd.isna(labels) | empty)
