"""Measurements on the features of the test split, one run after another, since those of all need not fit in memory."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from lossmith.analysis.class_means import class_centroids
from lossmith.analysis.scores import accuracy
from lossmith.analysis.spectra import singular_spectrum
from lossmith.analysis.tables import by_loss, separations
from lossmith.experiments.progress import ProgressDisplay
from lossmith.experiments.study_analysis.relearning import TRANSFER_ROWS, relearned_accuracy
from lossmith.experiments.study_analysis.rows import halves, some_rows
from lossmith.experiments.study_analysis.runs import KnownRun, LevelRuns

__all__ = ["feature_table", "relearned_classifiers", "separation_of_runs"]

SPECTRUM_ROWS = 1000


def separation_of_runs(runs: LevelRuns, display: ProgressDisplay) -> pd.DataFrame:
    """Return class separation by each distance (table 4 of Kornblith et al. 2021)."""
    labels = runs.study.test_labels
    return _by_run("class separation", runs, lambda _, features: separations(features, labels), display)


def feature_table(runs: LevelRuns, display: ProgressDisplay) -> pd.DataFrame:
    """Return how many features are not zero, and effective ranks of features and of class centroids."""
    labels = runs.study.test_labels
    rows = some_rows(len(labels), SPECTRUM_ROWS)

    def measure(_: KnownRun, features: np.ndarray) -> dict[str, float]:
        return {
            "nonzero": np.count_nonzero(features) / features.size,
            "rank": singular_spectrum(features[rows], centre=True).effective_rank,
            "centroid_rank": singular_spectrum(class_centroids(features, labels), centre=True).effective_rank,
        }

    return _by_run("features", runs, measure, display)


def relearned_classifiers(runs: LevelRuns, display: ProgressDisplay) -> pd.DataFrame | None:
    """Return the accuracy of final layers learned again on half of the test rows, and of the networks' own on the same rows.

    There are true labels to learn from, also where those of training were noisy. None where rows are too few.
    """
    labels = runs.study.test_labels
    fit, judge = halves(labels, TRANSFER_ROWS)
    counts = np.bincount(labels[fit])
    if not len(judge) or counts.max() < 2 or np.count_nonzero(counts) < 2:
        return None

    def measure(run: KnownRun, features: np.ndarray) -> dict[str, float]:
        own = runs.predictions[run.name]
        scores = own.logits if own.probabilities is None else own.probabilities
        return {"own": accuracy(scores[judge], labels[judge]), "relearned": relearned_accuracy(features, labels, fit, judge)}

    return _by_run("transfer", runs, measure, display)


def _by_run(
    what: str, runs: LevelRuns, measure: Callable[[KnownRun, np.ndarray], dict[str, float]], display: ProgressDisplay
) -> pd.DataFrame:
    display.start(f"{what}, {runs.noise}", len(runs.usable))
    measured = []
    # The matrices are small: threads would wait for one another, on a busy machine a hundred times as long as the work takes.
    with threadpool_limits(1):
        for run in runs.usable:
            measured.append((run.loss, measure(run, runs.features(run))))
            display.advance(1)
    return by_loss(measured)
