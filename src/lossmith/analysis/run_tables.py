"""Tables about the runs of a study, one row for each loss: means over seeds with their standard errors."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lossmith.analysis.arrays import Array, Numbers
from lossmith.analysis.calibration import expected_calibration_error
from lossmith.analysis.prediction_agreement import Dendrogram, agreement, cluster, ensembles, pair_averages
from lossmith.analysis.scores import negative_log_likelihood
from lossmith.analysis.separation import DISTANCES, class_separation
from lossmith.analysis.temperature import TemperatureScaling, cross_fitted_scaling, log_probabilities, temperature_scaling

__all__ = [
    "AgreementTables",
    "RunOutputs",
    "agreement_tables",
    "by_loss",
    "calibration_table",
    "cross_fitted_calibration",
    "ensemble_table",
    "finite_runs",
    "separation_table",
    "separations",
]


@dataclass(frozen=True, eq=False)
class RunOutputs:
    """What one run put out for the test examples."""

    loss: str
    seed: int
    logits: Array
    """``(n, C)``."""
    features: Array | None = None
    """``(n, d)``: what the final layer saw."""
    probabilities: Array | None = None
    """``(n, C)``: those that belong to the loss, where they are not the softmax of the logits."""


Runs = Mapping[str, RunOutputs]


def finite_runs(runs: Runs) -> tuple[dict[str, RunOutputs], tuple[str, ...]]:
    """Return the runs whose outputs are finite, and the names of those that diverged.

    Args:
        runs: What each run put out, by its name.

    Returns:
        The runs that count, by name, and the names of the others.

    >>> finite_runs({"a": RunOutputs("ce", 0, np.array([[np.nan, 1.0]]))})
    ({}, ('a',))
    """
    finite = {
        name: run
        for name, run in runs.items()
        if all(part is None or np.isfinite(part).all() for part in (run.logits, run.features, run.probabilities))
    }
    return finite, tuple(name for name in runs if name not in finite)


def by_loss(measured: Iterable[tuple[str, Mapping[str, float]]]) -> pd.DataFrame:
    """Return mean and standard error of each measurement over the runs of each loss, and how many runs there were.

    ``measured`` has a loss and numbers by name for each run. Losses stay in the order in which they first come. The standard
    error of a single run is missing, and that of infinite numbers, too.

    Args:
        measured: The loss and the measurements of each run.

    Returns:
        A row for each loss, columns ``(measurement, mean or se)``, and ``(runs, count)``.

    Raises:
        ValueError: If there is no run.

    >>> by_loss([("ce", {"nll": 1.0}), ("ce", {"nll": 3.0}), ("mae", {"nll": 4.0})])
            nll      runs
           mean   se count
    loss
    ce      2.0  1.0     2
    mae     4.0  NaN     1
    """
    table = pd.DataFrame([{"loss": loss, **numbers} for loss, numbers in measured])
    if table.empty:
        raise ValueError("by_loss: measured must have at least one run, got none.")
    groups = table.groupby("loss", sort=False)
    summary = groups.agg(["mean", "sem"]).rename(columns={"sem": "se"})
    summary[("runs", "count")] = groups.size()
    return summary


def calibration_table(runs: Runs, labels: Numbers, *, fit_on: tuple[Runs, Numbers] | None = None, bins: int = 15) -> pd.DataFrame:
    """Return NLL and ECE of each loss before and after temperature scaling (table 3 of Kornblith et al. 2021).

    ``fit_on`` has outputs of the same runs for validation examples, and their labels, to choose the temperatures; without it they
    are chosen on the examples themselves, as in the paper. Losses with probabilities of their own are scaled by these.

    Args:
        runs: What each run put out, by its name.
        labels: The class of each test example, ``(n,)``.
        fit_on: Outputs of the same runs for other examples, and the labels of these.
        bins: The number of bins of the calibration error.

    Returns:
        A row for each loss, as :func:`by_loss` makes them.

    Raises:
        ValueError: If numbers of examples differ.

    >>> runs = {"a": RunOutputs("ce", 0, np.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]]))}
    >>> calibration_table(runs, [0, 0, 1])["scaled_nll", "mean"].round(4).to_dict()
    {'ce': 0.6365}
    """

    def measure(name: str, run: RunOutputs) -> dict[str, float]:
        fit = None if fit_on is None else (_log_odds(fit_on[0][name]), fit_on[1])
        return _calibration(run, labels, temperature_scaling(_log_odds(run), labels, fit_on=fit, bins=bins), bins)

    return _measured(runs, measure)


def cross_fitted_calibration(run: RunOutputs, labels: Numbers, *, folds: int = 5, bins: int = 15) -> dict[str, float]:
    """Return a row of the :func:`calibration_table`, temperatures chosen on other examples than those they are judged by.

    Args:
        run: What the run put out.
        labels: The class of each test example, ``(n,)``.
        folds: The parts that temperatures are chosen on and judged by in turn.
        bins: The number of bins of the calibration error.

    Returns:
        The measurements by name.

    Raises:
        ValueError: If numbers of examples differ, or there are more folds than examples.

    >>> run = RunOutputs("ce", 0, np.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]]))
    >>> list(cross_fitted_calibration(run, [0, 0, 1, 1], folds=2))
    ['nll', 'ece', 'scaled_nll', 'scaled_ece', 'temperature']
    """
    return _calibration(run, labels, cross_fitted_scaling(_log_odds(run), labels, folds=folds, bins=bins), bins)


def _calibration(run: RunOutputs, labels: Numbers, scaled: TemperatureScaling, bins: int) -> dict[str, float]:
    before = {"nll": scaled.nll, "ece": scaled.ece}
    if run.probabilities is not None:
        before = {
            "nll": negative_log_likelihood(run.probabilities, labels),
            "ece": expected_calibration_error(run.probabilities, labels, bins),
        }
    return before | {"scaled_nll": scaled.scaled_nll, "scaled_ece": scaled.scaled_ece, "temperature": scaled.temperature}


def separation_table(runs: Runs, labels: Numbers) -> pd.DataFrame:
    """Return the class separation of the features of each loss, with each distance (tables 4 and E.1).

    Args:
        runs: What each run put out, by its name, features included.
        labels: The class of each test example, ``(n,)``.

    Returns:
        A row for each loss, as :func:`by_loss` makes them.

    Raises:
        ValueError: If a run has no features.

    >>> features = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    >>> runs = {"a": RunOutputs("ce", 0, features, features)}
    >>> separation_table(runs, [0, 0, 1])["cosine", "mean"].round(3).to_dict()
    {'ce': 0.997}
    """

    def measure(name: str, run: RunOutputs) -> dict[str, float]:
        if run.features is None:
            raise ValueError(f"separation_table: runs must have features, got none for {name!r}.")
        return separations(run.features, labels)

    return _measured(runs, measure)


def separations(features: Numbers, labels: Numbers) -> dict[str, float]:
    """Return a row of the :func:`separation_table`: the class separation of features by each distance.

    Args:
        features: Vectors, ``(n, d)``.
        labels: The class of each example, ``(n,)``.

    Returns:
        The separation by the name of the distance.

    Raises:
        ValueError: If lengths do not match or a number is not finite.

    >>> separations([[0.0, 1.0], [0.0, 2.0], [1.0, 0.0]], [0, 0, 1])["cosine"]
    1.0
    """
    return {distance: class_separation(features, labels, distance).r_squared for distance in DISTANCES}


@dataclass(frozen=True, eq=False)
class AgreementTables:
    """How alike the runs of a study predict, run by run and loss by loss."""

    runs: pd.DataFrame
    """The share of equal predictions ``(runs, runs)``, in the order of the dendrogram."""
    dendrogram: Dendrogram
    """The clusters of the runs, which are numbered in the order in which they were given."""
    losses: dict[str, pd.DataFrame]
    """``same_prediction``, ``both_right_or_wrong`` and ``same_mistake``: averages over pairs of runs ``(losses, losses)``. A run
    is not paired with itself, so the entry of a loss with itself is missing where the loss has one run."""


def agreement_tables(runs: Runs, labels: Numbers, *, across_seeds: bool = False) -> AgreementTables:
    """Return the agreement of all pairs of runs, its clusters, and its averages by pairs of losses (figures 1 and D.1).

    With ``across_seeds`` averages are over pairs of runs with different seeds.

    Args:
        runs: What each run put out, by its name.
        labels: The class of each test example, ``(n,)``.
        across_seeds: Whether averages are over pairs of runs with different seeds only.

    Returns:
        Tables by run and by loss, and the dendrogram.

    Raises:
        ValueError: If numbers of examples differ.

    >>> logits = np.eye(2)
    >>> runs = {name: RunOutputs(name[0], 0, part) for name, part in {"a0": logits, "b0": logits[::-1], "a1": logits}.items()}
    >>> agreement_tables(runs, [0, 1]).losses["same_prediction"].to_dict()
    {'a': {'a': 1.0, 'b': 0.0}, 'b': {'a': 0.0, 'b': nan}}
    """
    measured = agreement([_log_odds(run) for run in runs.values()], labels)
    names, losses = list(runs), [run.loss for run in runs.values()]
    seeds = [run.seed for run in runs.values()] if across_seeds else None
    tree = cluster(measured.same_prediction)
    order = [names[run] for run in tree.order]
    table = pd.DataFrame(measured.same_prediction, names, names).loc[order, order]
    averages = {
        kind: pair_averages(getattr(measured, kind), losses, seeds)
        for kind in ("same_prediction", "both_right_or_wrong", "same_mistake")
    }
    return AgreementTables(table, tree, averages)


def ensemble_table(runs: Runs, labels: Numbers) -> pd.DataFrame:
    """Return the accuracy of majority votes within and between losses (figure D.3); losses with one run are left out.

    Args:
        runs: What each run put out, by its name.
        labels: The class of each test example, ``(n,)``.

    Returns:
        Accuracies, ``(losses, losses)``.

    Raises:
        ValueError: If no loss has two runs, or numbers of examples differ.

    >>> runs = {f"a{seed}": RunOutputs("a", seed, np.eye(2)) for seed in range(2)}
    >>> ensemble_table(runs, [0, 1]).to_dict()
    {'a': {'a': 1.0}}
    """
    predictions: dict[str, list[Numbers]] = {}
    for run in runs.values():
        predictions.setdefault(run.loss, []).append(_log_odds(run).argmax(1))
    table = ensembles({loss: votes for loss, votes in predictions.items() if len(votes) > 1}, labels)
    return pd.DataFrame(table.accuracy, table.losses, table.losses)


def _measured(runs: Runs, measure: Callable[[str, RunOutputs], dict[str, float]]) -> pd.DataFrame:
    return by_loss((run.loss, measure(name, run)) for name, run in runs.items())


def _log_odds(run: RunOutputs) -> Array:
    return run.logits if run.probabilities is None else log_probabilities(run.probabilities)
