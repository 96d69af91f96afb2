"""How alike runs predict: on the same rows where all have the same, on shared ones where replicates have rows of their own."""

from collections.abc import Mapping
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import pandas as pd

from lossmith.analysis.prediction_agreement import Dendrogram, cluster, pair_averages
from lossmith.analysis.run_tables import AgreementTables, agreement_tables, ensemble_table
from lossmith.studies.study_analysis.runs import LevelRuns, across_seeds

__all__ = ["agreement_of_runs", "ensembles_of_runs"]


def agreement_of_runs(runs: LevelRuns) -> AgreementTables:
    """Return the agreement of pairs of runs, its clusters, and its averages by pairs of losses.

    Averages are over pairs of different replicates, where these can be compared. Where every replicate has rows of its own, they
    are shares of all rows of all pairs, since a pair may have few; and where two replicates share too few to be compared,
    there are pairs within replicates only, and the clusters are those of losses instead of runs.

    Args:
        runs: Those of one noise level.

    Returns:
        Tables by run and by loss, and the dendrogram.
    """
    if runs.rows.are_same:
        labels = runs.labels(runs.usable[0].seed)
        return agreement_tables(runs.predictions, labels, across_seeds=across_seeds(runs.usable))
    across = runs.rows.are_comparable
    counts = _counted(runs, across=across)
    losses, seeds = [run.loss for run in runs.usable], [run.seed for run in runs.usable]

    def pooled(part: np.ndarray, whole: np.ndarray) -> pd.DataFrame:
        part_mean, whole_mean = (pair_averages(matrix, losses, seeds if across else None) for matrix in (part, whole))
        return part_mean / whole_mean.where(whole_mean > 0)

    tables = {
        "same_prediction": pooled(counts.same, counts.rows),
        "both_right_or_wrong": pooled(counts.alike, counts.rows),
        "same_mistake": pooled(counts.repeated, counts.both_wrong),
    }
    if across:
        names, shares = [run.name for run in runs.usable], counts.same / counts.rows
    else:
        names, shares = list(tables["same_prediction"].index), tables["same_prediction"].to_numpy(copy=True)
        np.fill_diagonal(shares, 1.0)
    alike = pd.DataFrame(shares, names, names)
    tree = _clustered(alike)
    order = [alike.index[place] for place in tree.order]
    return AgreementTables(alike.loc[order, order], tree, tables)


def ensembles_of_runs(runs: LevelRuns) -> pd.DataFrame | None:
    """Return the accuracy of majority votes; None where no loss has two runs, or runs were judged on different rows."""
    losses = [run.loss for run in runs.usable]
    repeated = any(losses.count(loss) > 1 for loss in losses)
    if not repeated or not runs.rows.are_same:
        return None
    return ensemble_table(runs.predictions, runs.labels(runs.usable[0].seed))


class _Counts(NamedTuple):
    """Of the rows on which two runs are compared, ``(runs, runs)`` each; 0 where they are not."""

    rows: np.ndarray
    same: np.ndarray
    """Both predict the same class."""
    alike: np.ndarray
    """Both are right, or both are wrong."""
    both_wrong: np.ndarray
    repeated: np.ndarray
    """Both are wrong, and predict the same class."""


def _counted(runs: LevelRuns, *, across: bool) -> _Counts:
    """Count the rows of every two runs of the same replicate and, where asked to, of different ones."""
    size = len(runs.usable)
    found = _Counts(*(np.zeros((size, size)) for _ in _Counts._fields))
    predicted = {run.name: runs.predicted(run) for run in runs.usable}
    for first, second in combinations_with_replacement(runs.rows.seeds, 2):
        if first == second or across:
            places = [[place for place, run in enumerate(runs.usable) if run.seed == seed] for seed in (first, second)]
            _fill(found, runs, predicted, (first, second), places)
    return found


def _fill(
    found: _Counts, runs: LevelRuns, predicted: Mapping[str, np.ndarray], seeds: tuple[int, int], places: list[list[int]]
) -> None:
    """Fill in the counts of the runs of two replicates, on the rows that both have."""
    rows = runs.rows.shared(*seeds)
    truth = runs.labels(seeds[0])[rows[0]]
    own, others = (
        np.stack([predicted[runs.usable[place].name][chosen] for place in part])
        for part, chosen in zip(places, rows, strict=True)
    )
    same = own[:, None] == others
    own_wrong, others_wrong = (own != truth)[:, None], others != truth
    both_wrong = own_wrong & others_wrong
    counts = (np.ones_like(same), same, own_wrong == others_wrong, both_wrong, same & both_wrong)
    for matrix, marks in zip(found, counts, strict=True):
        block = marks.sum(2)
        matrix[np.ix_(*places)] = block
        matrix[np.ix_(*places[::-1])] = block.T


def _clustered(alike: pd.DataFrame) -> Dendrogram:
    """Return the clusters, or none where some are never compared: two losses that diverged in different replicates."""
    if alike.isna().to_numpy().any():
        return Dendrogram(np.zeros((0, 4)), tuple(range(len(alike))), ())
    return cluster(alike.to_numpy())
