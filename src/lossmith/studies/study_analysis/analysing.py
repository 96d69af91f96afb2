"""The parts of an analysis, put together for each noise level."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd
import torch

from lossmith.analysis.run_tables import by_loss, cross_fitted_calibration
from lossmith.data import PreparedData, load_data, make_noise
from lossmith.expressions.limits import is_whole
from lossmith.studies.findings import Analysis
from lossmith.studies.progress import ProgressDisplay
from lossmith.studies.study import Study
from lossmith.studies.study_analysis.agreement import agreement_of_runs, ensembles_of_runs
from lossmith.studies.study_analysis.features import TRANSFER_ROWS, feature_table, relearned_classifiers, separation_of_runs
from lossmith.studies.study_analysis.runs import LevelRuns
from lossmith.studies.study_analysis.trained_models import TrainedModels
from lossmith.training.devices import chosen_device

__all__ = ["analyse"]

FOLDS = 5
"""Parts of the test split by which temperatures are chosen and judged in turn."""
_NOT_STORED = "The analysis is not stored: the study's file is that of an older lossmith, and stays as it is."


class Again(NamedTuple):
    """How much is done again by the models."""

    seeds: int
    rows: int
    transfer_to: tuple[PreparedData, ...]
    device: torch.device


def analyse(
    study: Study,
    noise: Sequence[str | float] | str | float | None = None,
    *,
    transfer_to: Sequence[str] = (),
    seeds: int = 2,
    rows: int = 500,
    device: str = "auto",
    display: ProgressDisplay | None = None,
) -> dict[str, Analysis]:
    """Measure what the losses of a finished study do, store it in the study's file, and return it by noise level.

    ``noise`` are noise levels of the study, by default the first and the one with most wrong labels. ``transfer_to`` is other
    data, as :func:`lossmith.data.load_data` reads it, with inputs like the study's. Where models run again, ``seeds`` runs of
    each loss do, on ``rows`` test rows of their replicates. Class separation and transfer need features, similarity of layers
    and robustness need weights; a study keeps them with ``keep=["features", "weights"]``. What needs runs of different
    replicates on the same rows is measured on the test rows that these share; ``notes`` says where they are too few.

    Args:
        study: A study whose runs are all finished.
        noise: The noise levels to analyse.
        transfer_to: Other data whose inputs have the same shape, as files or names.
        seeds: The runs of each loss whose models run again.
        rows: The test rows that they run on.
        device: What they run on: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
        display: Shows how far it is.

    Returns:
        What was found, by noise level.

    Raises:
        ValueError: If the study is not finished or has no such noise, other data does not fit, a number is below 1, or there is
            no such device.

    >>> from lossmith.studies import open_study
    >>> analyse(open_study("studies/digits"))["none"].calibration  # doctest: +SKIP
    """
    for name, value in {"seeds": seeds, "rows": rows}.items():
        if not is_whole(value) or value < 1:
            raise ValueError(f"analyse: {name} must be a whole number >= 1, got {value!r}.")
    _check_finished(study)
    levels = _chosen_levels(study, [noise] if isinstance(noise, str | int | float) else noise)
    others = tuple(_other_data(study, source, seeds) for source in transfer_to)
    again = Again(seeds, rows, others, chosen_device(device))
    display = display or ProgressDisplay()
    found = {}
    for level in levels:
        runs = LevelRuns(study, level)
        analysis = _with_models(_with_features(_of_predictions(runs, display), runs, display), runs, again, display)
        found[level] = _noted(analysis, _NOT_STORED) if study.is_old else analysis
        study.store_analysis(found[level])
    return found


def _check_finished(study: Study) -> None:
    done, planned = study.progress()
    if done < planned:
        rest = "" if study.is_old else f" Go on with: lossmith resume {study.folder}"
        raise ValueError(f"analyse: {study.folder} is not finished, {done} of {planned} results are there.{rest}")


def _chosen_levels(study: Study, asked: Sequence[str | float] | None) -> list[str]:
    levels = study.settings.noise
    if asked is None:
        rates = study.results.groupby("noise").noise_rate.mean()
        return list(dict.fromkeys([levels[0], str(rates.idxmax())]))
    named = [repr(make_noise(level)) for level in asked]
    for level in named:
        if level not in levels:
            raise ValueError(f"analyse: noise must be one of {', '.join(levels)}, got {level!r}.")
    return list(dict.fromkeys(named))


def _other_data(study: Study, source: str, seeds: int) -> PreparedData:
    """Read other data, of which the models of the first replicates must be able to make features."""
    if "weights" not in study.settings.recipe.keep:
        raise ValueError(f"analyse: transfer_to needs weights; {_not_kept('weights')}")
    other = load_data(source, rows=TRANSFER_ROWS)
    for seed in range(min(seeds, study.settings.seeds)):  # whose inputs may differ in width, by the categories that were seen
        own = study.load(seed)
        if other.input_shape != own.input_shape or other.inputs.dtype != own.inputs.dtype:
            raise ValueError(
                f"analyse: inputs of {source} must have the study's shape, {own.input_shape}, got {other.input_shape}."
            )
    return other


def _of_predictions(runs: LevelRuns, display: ProgressDisplay) -> Analysis:
    """Return what can be measured of every study."""
    calibration = by_loss(_calibrations(runs, display))
    agreement = agreement_of_runs(runs)
    diverged = f"Left out, since they diverged: {'; '.join(runs.diverged)}." if runs.diverged else ""
    return Analysis(
        runs.noise,
        calibration,
        agreement.losses,
        agreement.runs,
        agreement.dendrogram.brackets,
        ensembles=ensembles_of_runs(runs),
        notes=tuple(filter(None, (diverged, runs.rows.note))),
    )


def _calibrations(runs: LevelRuns, display: ProgressDisplay) -> Iterator[tuple[str, dict[str, float]]]:
    display.start(f"calibration, {runs.noise}", len(runs.usable))
    for run in runs.predictions.values():
        labels = runs.labels(run.seed)
        yield run.loss, cross_fitted_calibration(run, labels, folds=min(FOLDS, len(labels)))
        display.advance(1)


def _with_features(analysis: Analysis, runs: LevelRuns, display: ProgressDisplay) -> Analysis:
    if not runs.keeps("features"):
        return _noted(analysis, f"No class separation and no transfer: {_not_kept('features')}")
    transfer = relearned_classifiers(runs, display)
    measured = replace(
        analysis, separation=separation_of_runs(runs, display), features=feature_table(runs, display), transfer=transfer
    )
    return measured if transfer is not None else _noted(measured, "No transfer: too few test rows to learn from and to judge by.")


def _with_models(analysis: Analysis, runs: LevelRuns, again: Again, display: ProgressDisplay) -> Analysis:
    missing = "No similarity of layers and no damaged inputs:"
    if runs.study.store.meta("from_python"):
        return _noted(analysis, f"{missing} the study was run in Python with {runs.study.store.meta('from_python')}.")
    if not runs.keeps("weights"):
        return _noted(analysis, f"{missing} {_not_kept('weights')}")
    models = TrainedModels(runs, seeds=again.seeds, rows=again.rows, device=again.device)
    transfers = [models.transfer_table(data, display) for data in again.transfer_to]
    corruption = models.corruption_table(display)
    measured = replace(
        analysis,
        layers=models.layer_maps(display),
        corruption=corruption,
        transfer=_side_by_side([analysis.transfer, *transfers]),
    )
    return measured if corruption is not None else _noted(measured, "No damaged inputs: there is no damage for words.")


def _not_kept(what: str) -> str:
    return f"the study keeps no {what}, as one made by 'lossmith compare --analyse' does."


def _noted(analysis: Analysis, note: str) -> Analysis:
    return replace(analysis, notes=(*analysis.notes, note))


def _side_by_side(tables: Sequence[pd.DataFrame | None]) -> pd.DataFrame | None:
    """Return tables of the same losses as one; the number of runs is that of the first."""
    known = [table for table in tables if table is not None]
    rest = [table.drop(columns="runs", level=0) for table in known[1:]]
    return pd.concat([known[0], *rest], axis=1) if known else None
