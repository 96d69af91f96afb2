"""The runs of one noise level of a study, read from its file as they are needed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lossmith.analysis.run_tables import RunOutputs, finite_runs
from lossmith.statistics.untrained import gave_something
from lossmith.studies.study import Study
from lossmith.studies.study_analysis.replicate_rows import ReplicateRows

__all__ = ["KnownRun", "LevelRuns", "across_seeds"]


class KnownRun(NamedTuple):
    """A run, with the name it has in tables."""

    name: str
    number: int
    loss: str
    seed: int


@dataclass(frozen=True)
class LevelRuns:
    """The runs of one noise level that count."""

    study: Study
    noise: str

    @cached_property
    def known(self) -> tuple[KnownRun, ...]:
        """All of them, in the order of losses and seeds."""
        results = self.study.results
        rows = results[results.noise == self.noise].itertuples()
        return tuple(KnownRun(f"{row.loss}, seed {row.seed}", int(row.run), str(row.loss), int(row.seed)) for row in rows)

    @cached_property
    def predictions(self) -> dict[str, RunOutputs]:
        """Logits, and probabilities where they are no softmax, of the runs that did not diverge, by name."""
        ended = set(gave_something(self.study.results)["run"])
        finite, _ = finite_runs({run.name: self._outputs(run) for run in self.known if run.number in ended})
        if not finite:
            raise ValueError(f"analyse: every run with noise {self.noise} diverged.")
        return finite

    @cached_property
    def usable(self) -> tuple[KnownRun, ...]:
        """The runs that did not diverge."""
        return tuple(run for run in self.known if run.name in self.predictions)

    @cached_property
    def diverged(self) -> tuple[str, ...]:
        """The names of the others."""
        return tuple(run.name for run in self.known if run.name not in self.predictions)

    @cached_property
    def rows(self) -> ReplicateRows:
        """The test rows of the replicates whose runs did not all diverge."""
        return ReplicateRows(self.study, tuple(sorted({run.seed for run in self.usable})))

    def labels(self, seed: int) -> np.ndarray:
        """Return the true classes of the test rows of a replicate."""
        return self.study.test_labels(seed)

    def predicted(self, run: KnownRun) -> np.ndarray:
        """Return the class that a run predicts for each test row of its replicate."""
        own = self.predictions[run.name]
        return np.asarray((own.logits if own.probabilities is None else own.probabilities).argmax(1))

    def keeps(self, what: str) -> bool:
        """Return whether features or weights are kept of every run."""
        return all(what in self.study.store.kept(run.number) for run in self.usable)

    def features(self, run: KnownRun) -> np.ndarray:
        """Return the test features of a run."""
        return self.study.test_features(run.number)

    def first_seeds(self, most: int) -> tuple[KnownRun, ...]:
        """Return the first runs of each loss, at most ``most`` of each."""
        losses = dict.fromkeys(run.loss for run in self.usable)
        return tuple(run for loss in losses for run in [each for each in self.usable if each.loss == loss][:most])

    def _outputs(self, run: KnownRun) -> RunOutputs:
        outputs = RunOutputs(run.loss, run.seed, self.study.test_logits(run.number))
        if "probabilities" not in self.study.store.kept(run.number):
            return outputs
        return replace(outputs, probabilities=self.study.test_probabilities(run.number))


def across_seeds(runs: Sequence[KnownRun]) -> bool:
    """Return whether runs can be paired with those of other seeds, which began with other weights; with one seed they cannot."""
    return len({run.seed for run in runs}) > 1
