"""Measurements on the features of the test split, one run after another, since those of all need not fit in memory."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from lossmith.analysis.class_means import class_centroids
from lossmith.analysis.feature_transfer import transfer
from lossmith.analysis.run_tables import by_loss, separations
from lossmith.analysis.spectra import singular_spectrum
from lossmith.studies.progress import ProgressDisplay
from lossmith.studies.study_analysis.runs import KnownRun, LevelRuns

__all__ = [
    "TRANSFER_ROWS",
    "feature_table",
    "halves",
    "relearned_accuracy",
    "relearned_classifiers",
    "separation_of_runs",
    "some_rows",
]

SPECTRUM_ROWS = 1000
TRANSFER_ROWS = 2000
"""Rows that a layer is learned on and judged by, together."""
_MOST_ITERATIONS = 200
"""Features that vary in hardly more than one direction need thousands with weak regularisation, for no gain."""


def separation_of_runs(runs: LevelRuns, display: ProgressDisplay) -> pd.DataFrame:
    """Return class separation by each distance (table 4 of Kornblith et al. 2021)."""
    return _by_run("class separation", runs, lambda run, features: separations(features, runs.labels(run.seed)), display)


def feature_table(runs: LevelRuns, display: ProgressDisplay) -> pd.DataFrame:
    """Return how many features are not zero, and effective ranks of features and of class centroids."""

    def measure(run: KnownRun, features: np.ndarray) -> dict[str, float]:
        labels = runs.labels(run.seed)
        rows = some_rows(len(labels), SPECTRUM_ROWS)
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
    divided = {seed: halves(runs.labels(seed), TRANSFER_ROWS) for seed in runs.rows.seeds}
    if not all(_is_enough(runs.labels(seed)[fit], judge) for seed, (fit, judge) in divided.items()):
        return None

    def measure(run: KnownRun, features: np.ndarray) -> dict[str, float]:
        labels, (fit, judge) = runs.labels(run.seed), divided[run.seed]
        own = float(np.mean(runs.predicted(run)[judge] == labels[judge]))
        return {"own": own, "relearned": relearned_accuracy(features, labels, fit, judge)}

    return _by_run("transfer", runs, measure, display)


def _is_enough(labels: np.ndarray, judge: np.ndarray) -> bool:
    """Return whether a layer can be learned on rows of these classes, and there are others to judge it by."""
    counts = np.bincount(labels)
    return bool(len(judge) and counts.max() > 1 and np.count_nonzero(counts) > 1)


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


def relearned_accuracy(features: np.ndarray, labels: np.ndarray, fit: np.ndarray, judge: np.ndarray) -> float:
    """Return the accuracy on some rows of a final layer that was learned on others.

    Features are divided by one number first, so that strengths mean the same for losses whose features differ in size.

    >>> features, labels = np.arange(8.0)[:, None], np.repeat([0, 1], 4)
    >>> relearned_accuracy(features, labels, np.array([0, 1, 2, 5, 6, 7]), np.array([3, 4]))
    1.0
    """
    size = float(features[fit].std(0).max()) or 1.0
    seen, new = features[fit] / size, features[judge] / size
    with threadpool_limits(1):  # threads would wait for one another longer than the work takes
        learned = transfer(seen, labels[fit], new, labels[judge], max_iterations=_MOST_ITERATIONS, tolerance=1e-4)
    return learned.accuracy


def some_rows(count: int, most: int) -> np.ndarray:
    """Return at most ``most`` row numbers, drawn at random, in order.

    >>> len(some_rows(1000, 10)), some_rows(3, 10)
    (10, array([0, 1, 2]))
    """
    return np.sort(np.random.default_rng(0).permutation(count)[:most])


def halves(labels: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two halves of the rows of each class, at most ``most`` rows together; an odd one goes to the first half.

    >>> halves(np.array([0, 0, 1, 1, 1]), most=100)
    (array([0, 2, 4]), array([1, 3]))
    """
    rows = some_rows(len(labels), most)
    in_order = rows[np.argsort(labels[rows], kind="stable")]
    turn = np.concatenate([np.arange(count) % 2 for count in np.unique(labels[rows], return_counts=True)[1]])
    return np.sort(in_order[turn == 0]), np.sort(in_order[turn == 1])
