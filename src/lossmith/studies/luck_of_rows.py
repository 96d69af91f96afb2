"""The luck of test rows in the differences of a study, from the predictions that it keeps."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

import numpy as np
import pandas as pd

from lossmith.statistics.differences.luck import LuckByScores, RowScores
from lossmith.statistics.differences.overlapping import Overlap, row_scores
from lossmith.statistics.untrained import gave_something
from lossmith.statistics.wording import is_share

__all__ = ["StudyOfRows", "luck_of_rows"]

_MEANS_OF_ROWS = ("nll", "brier")


class StudyOfRows(Protocol):
    """A study, as far as its test rows are concerned."""

    @property
    def results(self) -> pd.DataFrame: ...  # noqa: D102 - as Study has them
    @property
    def metric(self) -> str: ...  # noqa: D102
    @property
    def overlap(self) -> Overlap: ...  # noqa: D102
    def test_labels(self, seed: int = 0) -> np.ndarray: ...  # noqa: D102
    def test_rows(self, seed: int = 0) -> np.ndarray: ...  # noqa: D102
    def test_probabilities(self, run: int) -> np.ndarray: ...  # noqa: D102
    def has_predictions(self, run: int) -> bool: ...  # noqa: D102


def luck_of_rows(study: StudyOfRows) -> LuckByScores:
    """Return what tells the luck of rows in every difference of a study; nothing is read before it is asked.

    Args:
        study: One that has results.

    Returns:
        From loss, reference and noise to the luck of rows; none where predictions are not kept, as of trainings of the user's own
        that return measures alone, or where it is not known which rows were tested.
    """

    @cache
    def given() -> pd.DataFrame:
        return gave_something(study.results)

    def scores(loss: str, noise: str) -> Mapping[int, RowScores]:
        results = given()
        runs = results[(results["loss"] == loss) & (results["noise"] == noise)].set_index("seed")["run"]
        if not (is_share(study.metric) or study.metric in _MEANS_OF_ROWS) or not all(map(study.has_predictions, runs)):
            return {}
        found = {int(seed): _tested(study, int(seed), int(run)) for seed, run in runs.items()}
        known = all(np.isfinite(one.scores).all() for one in found.values()) and _have_numbers(study, list(found.values()))
        return found if known else {}

    return LuckByScores(scores)


def _have_numbers(study: StudyOfRows, rows: Sequence[RowScores]) -> bool:
    """Return whether rows are known by number; where all replicates have the same numbers and other rows, they are not."""
    return study.overlap.rows or len({one.numbers.tobytes() for one in rows}) > 1 or len(rows) < 2


def _tested(study: StudyOfRows, seed: int, run: int) -> RowScores:
    return RowScores(study.test_rows(seed), row_scores(study.metric, study.test_probabilities(run), study.test_labels(seed)))
