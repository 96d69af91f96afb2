"""Tables about the runs of a study, one row for each loss: means over seeds with their standard errors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lossmith.analysis.agreement import Dendrogram, agreement, cluster, ensembles
from lossmith.analysis.arrays import Array, Numbers
from lossmith.analysis.calibration import expected_calibration_error, negative_log_likelihood
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
    "pair_averages",
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

    >>> runs = {f"a{seed}": RunOutputs("a", seed, np.eye(2)) for seed in range(2)}
    >>> ensemble_table(runs, [0, 1]).to_dict()
    {'a': {'a': 1.0}}
    """
    predictions: dict[str, list[Numbers]] = {}
    for run in runs.values():
        predictions.setdefault(run.loss, []).append(_log_odds(run).argmax(1))
    table = ensembles({loss: votes for loss, votes in predictions.items() if len(votes) > 1}, labels)
    return pd.DataFrame(table.accuracy, table.losses, table.losses)


def pair_averages(matrix: Numbers, losses: Sequence[str], seeds: Sequence[int] | None = None) -> pd.DataFrame:
    """Return the average over pairs of runs of a matrix ``(runs, runs)``, for each pair of losses.

    A run is not paired with itself, so that the entry of a loss with itself is missing where the loss has one run. With
    ``seeds``, runs of the same seed are not paired either: having begun with the same weights, they are more alike than others,
    and a loss has no such pairs with itself.

    >>> pair_averages([[1.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.0]], ["ce", "ce", "mae"])
          ce  mae
    ce   0.5  0.2
    mae  0.2  NaN
    """
    order = list(dict.fromkeys(losses))
    runs_of = np.array([[float(run == loss) for run in losses] for loss in order])
    numbers = np.arange(len(losses)) if seeds is None else np.asarray(seeds)
    others = (numbers[:, None] != numbers).astype(float)
    # Sums over pairs divided by their number: averages of averages would weigh the pairs of a loss with itself unevenly.
    total, count = (runs_of @ pairs @ runs_of.T for pairs in (np.asarray(matrix) * others, others))
    return pd.DataFrame(np.where(count > 0.0, total / np.maximum(count, 1.0), np.nan), order, order)


def _measured(runs: Runs, measure: Callable[[str, RunOutputs], dict[str, float]]) -> pd.DataFrame:
    return by_loss((run.loss, measure(name, run)) for name, run in runs.items())


def _log_odds(run: RunOutputs) -> Array:
    return run.logits if run.probabilities is None else log_probabilities(run.probabilities)
