"""A study: what was compared, and what came out."""

from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from lossmith.data import PreparedData, make_noise
from lossmith.statistics.differences.overlapping import Overlap
from lossmith.statistics.recommendation import Recommendation
from lossmith.statistics.wording import counted
from lossmith.studies.answer import answer_of
from lossmith.studies.class_frequencies import accuracy_by_frequency
from lossmith.studies.design.settings import CLEAN
from lossmith.studies.findings import Analysis
from lossmith.studies.labels.inspection import PROBABLY
from lossmith.studies.labels.of_study import TestLabels, labels_of_study
from lossmith.studies.protocol.replicates import Replicates
from lossmith.studies.shown import ResultTable, ShownStudy
from lossmith.studies.storage.kept_runs import KeptRuns
from lossmith.studies.storage.old_format import OLD_PROTOCOL, OldStore, open_store
from lossmith.studies.storage.run_frames import RunFrames
from lossmith.studies.storage.stored_content import StoreError
from lossmith.studies.storage.stored_study import (
    data_again,
    planned_runs,
    source_again,
    stored_settings,
)
from lossmith.training.job import Build

__all__ = ["Study", "open_study"]

FILE = "study.sqlite"
REPORT = "report.html"


class Study(KeptRuns, ShownStudy):
    """The results of a comparison, read from its folder. It may still be running.

    Args:
        folder: Where the study is kept.
        source: What its data is read from, where that is at hand; otherwise what the settings name.
        build: The model of the user's own, where the study has one.

    Raises:
        StoreError: If the folder holds no study, or one that cannot be read.

    >>> study = open_study("studies/digits")  # doctest: +SKIP
    >>> study.results.groupby(["noise", "loss"]).accuracy.mean()  # doctest: +SKIP
    """

    def __init__(self, folder: Path, source: Any = None, build: Build | None = None) -> None:
        self.folder = folder
        self._source = source
        self._build = build
        self.store = open_store(folder / FILE)
        self.settings = stored_settings(self.store)
        self._frames = RunFrames(self.settings, self.store)
        self._replicates: Replicates | None = None

    def __repr__(self) -> str:
        done, planned = self.progress()
        return f"Study({str(self.folder)!r}: {done} of {planned} results)"

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Everything that the results depend on, in plain numbers and text: settings, data, command, versions."""
        settings = self.settings.as_json()
        about = {name: self.store.meta(name) for name in ("command", "versions", "created", "from_python", "shrunk")}
        return {**settings, "data": self._about_data, **about}

    @property
    def metric(self) -> str:
        """The measure by which settings were chosen and losses are compared."""
        return self.settings.metric

    @property
    def is_old(self) -> bool:
        """Whether an older lossmith made the study, by another protocol; it can be read, but not gone on with."""
        return isinstance(self.store, OldStore)

    @property
    def caution(self) -> str:
        """A sentence on what makes the results less sure than they look, where an older lossmith made them; empty otherwise."""
        return OLD_PROTOCOL if self.is_old else ""

    @cached_property
    def overlap(self) -> Overlap:
        """What the replicates have in common, for which their differences are corrected."""
        return Overlap(*(self.store.meta("overlap") or ()))

    @cached_property
    def validation_rows(self) -> int:
        """How many rows a replicate chooses its settings by."""
        first = self.store.replicate(0)
        return 0 if first is None else first.validation

    @property
    def results(self) -> pd.DataFrame:
        """One row for each loss, noise and replicate that is finished: the run that counts, at the setting that was chosen."""
        return self._frames.results()

    @property
    def trials(self) -> pd.DataFrame:
        """One row for each training, whether it counts or was only tried."""
        return self._frames.trials()

    @property
    def references(self) -> pd.DataFrame:
        """One row for each classical model, noise and replicate."""
        return self._frames.references()

    @property
    def curves(self) -> pd.DataFrame:
        """One row for each epoch of each run that counts: the columns that tell a run, ``epoch``, and a column for each curve."""
        return self._frames.curves()

    def table(self, measure: str = "accuracy") -> pd.DataFrame:
        """Return mean and standard error over the replicates: a row for each loss, a column for each noise.

        Args:
            measure: A column of :attr:`results`.

        Returns:
            Text in every cell, in the order of the settings. A notebook shows it as the report does, with what is best in bold.

        Raises:
            ValueError: If there is no such measure.
        """
        table = ResultTable(self._frames.table(measure))
        table.measure, table.study = measure, self
        return table

    def accuracy_by_frequency(self, noise: str | None = None) -> pd.DataFrame:
        """Return the accuracy of each loss on frequent and on rare classes, by their training rows.

        Args:
            noise: A label noise of the study; the first by default.

        Returns:
            A row for each loss, columns ``(many, medium or few, mean or se)``, over the replicates.

        Raises:
            ValueError: If there are no results, or the study does not know how frequent its classes are.
        """
        return accuracy_by_frequency(self, noise or self.settings.noise[0])

    def load(self, seed: int = 0) -> PreparedData:
        """Read the data again, and make sure that it is the same.

        Args:
            seed: The replicate, whose split it has.

        Returns:
            The data with its splits.

        Raises:
            OSError: If it cannot be read.
            ValueError: If it has changed since, or was given in Python and is not at hand.
        """
        if self._replicates is None:
            first = data_again(self.store, self.settings, self._source)
            source, settings = source_again(self.store, self.settings, self._source)
            self._replicates = Replicates(settings, source, first)
        return self._replicates.data(0 if self.is_old else seed)

    def recommend(self) -> Recommendation:
        """Return the answer, for ``print``: which loss, how sure, and on what evidence.

        Raises:
            ValueError: If no run has finished.
        """
        return answer_of(self)

    @property
    def analyses(self) -> dict[str, Analysis]:
        """What ``lossmith analyse`` found, by noise level, in the order of the settings."""
        stored = self.store.meta("analysis") or {}
        with self.store.explained("table meta, analysis"):
            return {noise: Analysis.from_json(stored[noise]) for noise in self.settings.noise if noise in stored}

    def store_analysis(self, analysis: Analysis) -> None:
        """Keep the analysis of a noise level in the study's file, in the place of an earlier one.

        Args:
            analysis: What :func:`lossmith.studies.analyse` found for one noise level.
        """
        self.store.set_meta("analysis", {**(self.store.meta("analysis") or {}), analysis.noise: analysis.as_json()})

    def suspects(self, noise: str = CLEAN, *, least: float = PROBABLY) -> pd.DataFrame:
        """Return the test rows whose label is probably wrong, from what all runs predict for rows that they did not see.

        Args:
            noise: One of the study's noise levels, whose runs are asked; by default the labels as they are.
            least: How likely a label must be wrong to be listed.

        Returns:
            A table as :func:`lossmith.analysis.suspects` has it; ``row`` is the row of the data.

        Raises:
            ValueError: If nothing has been trained under this noise.
        """
        return self.judged_by(noise).suspects(least)

    def judged_by(self, noise: str = CLEAN) -> TestLabels:
        """Return what is known of the labels that losses are judged by: how many are wrong, and what that allows to say.

        Args:
            noise: One of the study's noise levels, whose runs are asked; by default the labels as they are.

        Returns:
            ``estimate``, ``allows``, ``note`` and ``accuracies()``, of each loss on given labels and without suspect ones.

        Raises:
            ValueError: If nothing has been trained under this noise.
        """
        return labels_of_study(self, repr(make_noise(noise)))

    def progress(self) -> tuple[int, int]:
        """Return how many results are there, and how many are planned: one for each loss, noise and replicate."""
        return len(self.store.choices()), len(self.settings.cells)

    @property
    def unfinished(self) -> str:
        """A sentence that says so where results are missing, to be read before any of them; empty otherwise."""
        done, planned = self.progress()
        if done >= planned:
            return ""
        return f"The study is unfinished: {done} of {planned} results are there, and the others may change what follows."

    def status(self) -> str:
        """Return in words how far the study has come: the replicates that are finished, of each loss and noise."""
        done, planned = self.progress()
        counts = self._frames.finished_by_loss()
        rest = "" if done == planned or self.is_old else f" Go on with: lossmith resume {self.folder}"
        runs = planned_runs(self.store, self.settings)
        heading = f"{self.folder}: {done} of {planned} results are there, from {counted(len(runs), 'training')}.{rest}"
        diverged = sum(run["diverged"] for run in runs)
        notes = [f"{counted(diverged, 'training')} diverged, at learning rates too large for their loss."] if diverged else []
        notes += [self.caution] if self.caution else []
        return "\n".join([heading, counts.rename_axis(index=None, columns=None).to_string(), *notes])


def open_study(folder: str | Path) -> Study:
    """Open a study by its folder, or by the file in it.

    Args:
        folder: The folder of a study, or the file ``study.sqlite`` in it.

    Returns:
        The study, which may still be running.

    Raises:
        StoreError: If there is no study, or it cannot be read.
    """
    path = Path(folder)
    if path.is_file() and path.name != FILE:
        raise StoreError(f"{path} is not a study of lossmith; a study is a folder, made by 'lossmith compare'.")
    return Study(path.parent if path.is_file() else path)
