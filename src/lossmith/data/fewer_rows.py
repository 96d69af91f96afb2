"""Fewer rows of data that has too many."""

from dataclasses import replace

import numpy as np
import pandas as pd

from lossmith.data.sources.examples import Examples
from lossmith.expressions.limits import Limits

__all__ = ["at_most"]


def at_most(rows: int | None, examples: Examples, seed: int) -> Examples:
    """Leave out rows by chance, if there are too many, so that classes and splits keep their proportions.

    A test split of the source's own stays as it is, so that results can be compared with others on it: its rows do not count.

    Args:
        rows: How many rows, beside those that are marked as test, are kept at most; all if None.
        examples: All rows.
        seed: Draws those that are kept.

    Returns:
        Some of the rows, in their order, with a note on how many.

    Raises:
        TypeError: If the number of rows is not whole.
        ValueError: If it is below 1.
    """
    if rows is None:
        return examples
    Limits(1, whole=True).check("rows", rows, owner="load_data")
    split = np.full(len(examples.labels), "", dtype=object) if examples.split is None else examples.split
    drawn, test = np.flatnonzero(split != "test"), np.flatnonzero(split == "test")
    if rows >= len(drawn):
        return examples
    strata = pd.DataFrame({"split": split[drawn], "label": examples.labels[drawn].astype(str)}).groupby(["split", "label"])
    places = list(strata.indices.values())
    generator = np.random.default_rng(seed)
    # Rounding the running total, and not each count, makes the counts add up.
    ends = np.round(np.cumsum([len(stratum) for stratum in places]) * rows / len(drawn)).astype(int)
    counts = np.diff(ends, prepend=0)
    kept = [drawn[generator.permutation(stratum)[:count]] for stratum, count in zip(places, counts, strict=True)]
    smaller = examples.rows(np.sort(np.concatenate([*kept, test])))
    beside = f", and all {len(test)} test rows" if len(test) else ""
    return replace(smaller, notes=(*examples.notes, f"{rows} of {len(drawn)} rows are used, drawn by chance{beside}"))
