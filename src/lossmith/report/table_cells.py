"""What stands in a table of losses x noise levels, and below them of classical models."""

from math import isnan
from typing import NamedTuple

import numpy as np
import pandas as pd

from lossmith.statistics.differences.overlapping import INDEPENDENT, Overlap
from lossmith.statistics.summary import summarise
from lossmith.statistics.untrained import untrained_losses
from lossmith.statistics.wording import capitalised, is_share, spoken

__all__ = ["UNTRAINED", "Cell", "metric_title", "number_text", "reference_cells", "table_cells"]

UNTRAINED = "\N{DAGGER}"
"""Stands beside what looks untrained."""


class Cell(NamedTuple):
    """One entry of a table of losses x noise levels."""

    mean: float
    standard_error: float
    runs: int
    bold: bool
    best: bool
    metric: str
    untrained: bool = False

    @property
    def mean_text(self) -> str:
        """Return the mean as people read it, shares in percent."""
        return number_text(self.mean, self.metric)

    @property
    def error_text(self) -> str:
        """Return the standard error in the same form; nothing for a single run."""
        return "" if isnan(self.standard_error) else number_text(self.standard_error, self.metric)


def metric_title(metric: str) -> str:
    """Return a metric as a heading, with its unit.

    >>> metric_title("balanced_accuracy"), metric_title("nll")
    ('Balanced accuracy (%)', 'Negative log-likelihood')
    """
    return capitalised(spoken(metric)) + (" (%)" if is_share(metric) else "")


def number_text(value: float, metric: str) -> str:
    """Return a value of a metric with the digits that a table has room for."""
    if is_share(metric):
        return f"{100 * value:.2f}"
    return f"{value:.1f}" if metric == "seconds" else f"{value:.3f}"


def table_cells(results: pd.DataFrame, metric: str = "accuracy", overlap: Overlap = INDEPENDENT) -> dict[str, dict[str, Cell]]:
    """Return the cells by loss and noise; what has no run has no cell.

    Args:
        results: A row for each run.
        metric: The column that is summarised.
        overlap: What replicates share.

    Returns:
        The cells by loss, then by noise level.

    Raises:
        ValueError: If a column is missing, or a run is there twice.
    """
    rows: dict[str, dict[str, Cell]] = {loss: {} for loss in results["loss"].unique()}
    marked = untrained_losses(results)
    untrained = set(zip(marked["loss"], marked["noise"], strict=True))
    for row in summarise(results, metric, overlap=overlap).itertuples(index=False):
        looks_untrained = (row.loss, row.noise) in untrained  # whose spread is wide: not told from the best, but far from it
        marks = bool(row.bold) and not looks_untrained, bool(row.best), metric, looks_untrained
        rows[row.loss][row.noise] = Cell(row.mean, row.standard_error, int(row.runs), *marks)
    return rows


def reference_cells(references: pd.DataFrame, metric: str) -> dict[str, dict[str, Cell]]:
    """Return the cells of classical models by name and noise, without those that have no value.

    Args:
        references: A row for each model, noise and replicate.
        metric: The column that is summarised.

    Returns:
        The cells by model, then by noise level; empty where the metric is not known of any.
    """
    if metric not in references:
        return {}
    known = references.dropna(subset=metric)
    rows: dict[str, dict[str, Cell]] = {name: {} for name in known["reference"].unique()}
    for (name, noise), part in known.groupby(["reference", "noise"], sort=False)[metric]:
        with np.errstate(invalid="ignore"):  # the likelihood of always the largest class is 0, whose spread is not known
            rows[str(name)][str(noise)] = Cell(part.mean(), part.sem(), len(part), bold=False, best=False, metric=metric)
    return rows
