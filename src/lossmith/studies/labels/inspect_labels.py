"""How an inspection of labels begins: data is read, networks are trained, and what they say is looked at."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lossmith.data import PreparedData, load_data
from lossmith.data.sources.table_files import TABLE_SUFFIXES, read_table
from lossmith.expressions.limits import Limits
from lossmith.studies.design.stratified_rows import stratified_rows
from lossmith.studies.design.suitable_model import suitable_model
from lossmith.studies.labels.cross_validation import FOLDS, LOSSES, CrossValidation
from lossmith.studies.labels.inspection import LabelInspection
from lossmith.studies.progress import ProgressDisplay, progress_display
from lossmith.training.checks import check_recipe
from lossmith.training.engines.local import LocalEngine

__all__ = ["inspect_labels"]


def inspect_labels(
    data: Any,
    *,
    losses: Sequence[str] = LOSSES,
    model: str = "auto",
    folds: int = FOLDS,
    epochs: int = 0,
    rows: int | None = None,
    seed: int = 0,
    workers: int | None = 1,
    progress: bool = True,
    **loading: Any,
) -> LabelInspection:
    """Say how many labels of data are wrong, which ones, and what was taken for what.

    Networks are trained on all folds but one, with cross-entropy and with a robust loss, and predict the one left out.

    Args:
        data: A file, a folder, the name of a data set, a data frame, arrays, or prepared data, as ``load_data`` reads it.
        losses: What networks are trained with; their probabilities are averaged.
        model: The name of a network; by default the one that suits the data.
        folds: How many parts the rows are divided into, 2 at least.
        epochs: How long a network is trained; by default what suits the number of rows.
        rows: How many rows to inspect at most, drawn in the proportions of classes; by default all.
        seed: Of folds, initial weights and batches.
        workers: How many processes train; None for one a core.
        progress: Whether to show a progress bar.
        **loading: What ``load_data`` takes, such as ``target``, ``text`` or ``resize``.

    Returns:
        What is known of the labels.

    Raises:
        OSError: If the data cannot be read.
        TypeError: If an argument is of a type that is never right.
        ValueError: If the data or an argument does not fit.

    >>> inspection = inspect_labels("reviews.csv", target="rating")  # doctest: +SKIP
    >>> inspection.estimate.rate, inspection.estimate.interval, inspection.suspects  # doctest: +SKIP
    """
    Limits(2, whole=True).check("folds", folds, owner="inspect_labels")
    Limits(0, whole=True).check("epochs", epochs, owner="inspect_labels")
    prepared = load_data(data, seed=seed, **loading)
    inspected = _inspected_rows(prepared, rows, seed)
    whole = replace(prepared, train=inspected, validation=inspected[:0], test=inspected[:0])
    network = suitable_model(whole) if model == "auto" else model
    labels = whole.labels[inspected]
    own: dict[str, Any] = {
        "losses": tuple(losses),
        "folds": folds,
        "epochs": epochs,
        "seed": seed,
        "engine": LocalEngine(workers),
    }
    trained = CrossValidation(whole, inspected, labels, network, **own)
    check_recipe(trained.recipe, whole)
    with progress_display() if progress else nullcontext(ProgressDisplay()) as display:
        display.start("training", trained.runs)
        by_loss = trained.probabilities(display.advance)
    return LabelInspection(whole, inspected.numpy(), labels.numpy(), by_loss, network, folds, _frame(data, whole))


def _inspected_rows(data: PreparedData, most: int | None, seed: int) -> Tensor:
    """Return all rows, or some of each class."""
    every = torch.arange(len(data.labels))
    if most is None:
        return every
    Limits(2, whole=True).check("rows", most, owner="inspect_labels")
    return stratified_rows(data, every, most, seed)


def _frame(source: Any, data: PreparedData) -> pd.DataFrame | None:
    """Return the table that was read, if its rows are those of the data."""
    if isinstance(source, pd.DataFrame):
        frame = source
    elif isinstance(source, str | Path) and Path(source).is_file() and Path(source).suffix.lower() in TABLE_SUFFIXES:
        frame = read_table(Path(source)).frame
    else:
        return None
    return frame.reset_index(drop=True) if len(frame) == len(data.labels) else None
