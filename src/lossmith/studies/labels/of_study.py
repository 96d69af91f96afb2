"""What the test predictions of a study say of the labels that it is judged by."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from lossmith.analysis.labels.noisy_tests import NoisyTest, noisy_test
from lossmith.analysis.labels.suspects import NoiseEstimate, estimate_noise, suspects
from lossmith.statistics.untrained import gave_something
from lossmith.studies.design.settings import CLEAN
from lossmith.studies.labels.inspection import PROBABLY

__all__ = ["TestLabels", "labels_of_study", "note_on_labels"]

NOTABLE = 0.02
"""Below this share of wrong labels, at the lower end of its interval, there is nothing to say."""
FEWEST_ROWS = 100


@dataclass(frozen=True, eq=False)
class TestLabels:
    """The labels of all rows that were test rows of some replicate, and what networks that did not see them predict."""

    __test__ = False  # not one of pytest's

    study: Any
    rows: np.ndarray
    labels: np.ndarray
    probabilities: np.ndarray
    runs: pd.DataFrame

    @cached_property
    def estimate(self) -> NoiseEstimate:
        """How many of the labels are wrong, and what was taken for what."""
        return estimate_noise(self.probabilities, self.labels, classes=self.study.classes)

    @cached_property
    def allows(self) -> NoisyTest:
        """What accuracy on these labels says about accuracy on true ones."""
        return noisy_test(self.estimate.transition.to_numpy(), self.estimate.rate)

    def suspects(self, least: float = PROBABLY) -> pd.DataFrame:
        """Return the rows whose label is probably wrong, the most suspect first.

        Args:
            least: How likely a label must be wrong to be listed.

        Returns:
            A table as :func:`lossmith.analysis.suspects` has it, with the rows of the data.
        """
        found = suspects(self.probabilities, self.labels, classes=self.study.classes, least=least, estimate=self.estimate)
        return found.assign(row=self.rows[found["row"]])

    def accuracies(self) -> pd.DataFrame:
        """Return the accuracy of each loss on the labels as given, and on test rows whose label is not suspect.

        Rows are suspect where the losses of the study agree against the label, so that the second flatters all of them alike.
        """
        suspect = self.suspects()["row"].to_numpy()
        lines = []
        for run in self.runs.itertuples():
            stored = self.study.store.replicate(run.seed)
            is_right = self.study.test_probabilities(run.run).argmax(1) == stored.labels
            lines.append((run.loss, is_right.mean(), is_right[~np.isin(stored.test, suspect)].mean()))
        return pd.DataFrame(lines, columns=["loss", "given", "cleaned"]).groupby("loss", sort=False).mean()

    @property
    def note(self) -> str:
        """A sentence or two for whoever reads results, where enough labels seem wrong to matter; empty otherwise."""
        low, high = self.estimate.interval
        if low < NOTABLE or len(self.rows) < FEWEST_ROWS:
            return ""
        share = f"{100 * self.estimate.rate:.0f} % of the test labels ({100 * low:.0f} to {100 * high:.0f})"
        return f"{share} are wrong, or right in a way that no prediction can know. {self.allows}"


def note_on_labels(study: Any) -> str:
    """Return what accuracy means where some of the labels that losses are judged by seem to be wrong themselves.

    Args:
        study: Any study.

    Returns:
        A sentence or two; nothing where labels seem right, are known to be, or nothing is known of them.
    """
    settings = study.settings
    if settings.is_own or study.is_old or settings.loading.get("true_label") or len(study.classes) < 2:
        return ""
    results = gave_something(study.results)
    return "" if results[results["noise"] == CLEAN].empty else labels_of_study(study).note


def labels_of_study(study: Any, noise: str = CLEAN) -> TestLabels:
    """Put together what all runs of a noise level predict for rows that they did not see.

    Args:
        study: One that has results.
        noise: One of its noise levels; by default the labels as they are.

    Returns:
        Labels and mean probabilities of all rows that were test rows.

    Raises:
        ValueError: If nothing has been trained under this noise.
    """
    results = gave_something(study.results)
    runs = results[results["noise"] == noise]
    if runs.empty:
        raise ValueError(f"suspects: noise must be one that results are there for, got {noise!r}.")
    sums: dict[int, np.ndarray] = {}
    labels: dict[int, int] = {}
    for run in runs.itertuples():
        stored = study.store.replicate(run.seed)
        for row, label, each in zip(stored.test.tolist(), stored.labels.tolist(), study.test_probabilities(run.run), strict=True):
            if np.isfinite(each).all():
                sums[row] = sums.get(row, 0.0) + each.astype(np.float64)
                labels[row] = label
    rows = np.array(sorted(sums), dtype=np.int64)
    total = np.stack([sums[row] for row in rows.tolist()])
    given = np.array([labels[row] for row in rows.tolist()])
    return TestLabels(study, rows, given, total / total.sum(1, keepdims=True), runs[["loss", "seed", "run"]])
