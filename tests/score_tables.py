"""A small table to put further columns into."""

import numpy as np
import pandas as pd


def scores(rows=120, **columns):
    """Make a table of two numbers, in one of which the class shows, beside other columns."""
    draw = np.random.default_rng(1)
    labels = draw.integers(0, 3, rows)
    return pd.DataFrame({"score": labels + draw.random(rows), "other": draw.random(rows), **columns}).assign(
        kind=np.array(["x", "y", "z"])[labels]
    )
