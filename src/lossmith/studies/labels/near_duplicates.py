"""Rows that are nearly the same as others that carry another label."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors

from lossmith.data import PreparedData
from lossmith.data.sparse_rows import SparseRows

__all__ = ["near_duplicates"]

NEIGHBOURS = 5
NEAR = 0.3
"""Of the usual distance to the nearest row: what is nearer is nearly the same."""
_SAMPLE = 1000


def near_duplicates(data: PreparedData, rows: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> pd.Series:
    """Return for each row the nearest one that is nearly the same and carries another label.

    Args:
        data: Inputs.
        rows: The rows to look for.
        labels: The label of every row of the data; below 0 for rows that do not count.

    Returns:
        Row numbers by row, where there is one.
    """
    counted = np.flatnonzero(labels >= 0)
    if not len(rows) or len(counted) <= NEIGHBOURS:
        return pd.Series(dtype=np.int64)
    inputs, metric = _comparable(data, counted)
    search = NearestNeighbors(n_neighbors=NEIGHBOURS + 1, metric=metric).fit(inputs)
    sample = np.random.default_rng(0).permutation(len(counted))[:_SAMPLE]
    usual = float(np.median(search.kneighbors(inputs[sample], 2)[0][:, 1]))
    place_of = {row: place for place, row in enumerate(counted.tolist())}
    distances, places = search.kneighbors(inputs[[place_of[row] for row in rows.tolist()]])
    neighbours = counted[places]
    is_near = (distances <= NEAR * usual + 1e-9) & (neighbours != rows[:, None]) & (labels[neighbours] != labels[rows][:, None])
    found = is_near.any(1)
    return pd.Series(neighbours[found, is_near[found].argmax(1)], index=rows[found], dtype=np.int64)


def _comparable(data: PreparedData, rows: npt.NDArray[np.int64]) -> tuple[Any, str]:
    """Return rows whose distances mean something: angles between n-grams of texts, lengths between everything else."""
    if isinstance(data.inputs, SparseRows):
        parts = data.inputs
        matrix = csr_array((parts.values.numpy(), parts.columns.numpy(), parts.starts.numpy()), shape=tuple(parts.shape))
        return matrix[rows], "cosine"
    return data.inputs[rows].flatten(1).float().numpy(), "euclidean"
