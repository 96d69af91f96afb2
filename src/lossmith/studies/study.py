"""A study: what was compared, and what came out."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from lossmith.data import PreparedData, make_noise
from lossmith.statistics.caveats import guessing
from lossmith.statistics.recommendation import Recommendation, recommend
from lossmith.statistics.wording import counted
from lossmith.studies.findings import Analysis
from lossmith.studies.run_frames import RunFrames
from lossmith.studies.store import Store
from lossmith.studies.stored_content import StoreError
from lossmith.studies.stored_study import (
    data_again,
    planned_runs,
    stored_data,
    stored_settings,
    stored_test_labels,
    trained_model,
)
from lossmith.training.job import Build

__all__ = ["Study", "open_study"]

FILE = "study.sqlite"
REPORT = "report.html"


class Study:
    """The results of a comparison, read from its folder. It may still be running.

    Args:
        folder: Where the study is kept.
        data: Its data, where that is at hand; otherwise it is read again when it is needed.
        build: The model of the user's own, where the study has one.

    Raises:
        StoreError: If the folder holds no study, or one that cannot be read.

    >>> study = open_study("studies/digits")  # doctest: +SKIP
    >>> study.results.groupby(["noise", "loss"]).accuracy.mean()  # doctest: +SKIP
    """

    def __init__(self, folder: Path, data: PreparedData | None = None, build: Build | None = None) -> None:
        self.folder = folder
        self._data = data
        self._build = build
        self.store = Store(folder / FILE)
        self.settings = stored_settings(self.store)
        self._frames = RunFrames(self.settings, self.store)

    def __repr__(self) -> str:
        done, planned = self.progress()
        return f"Study({str(self.folder)!r}: {done} of {planned} runs)"

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Everything that the results depend on, in plain numbers and text: settings, data, command, versions."""
        settings = self.settings.as_json()
        about = {name: self.store.meta(name) for name in ("command", "versions", "created", "from_python")}
        search = {"rates": settings["rates"], "seeds": settings["search_seeds"], "noise": self.settings.searched_noise}
        return {**settings, "data": self._about_data, "search": search, **about}

    @cached_property
    def _about_data(self) -> dict[str, Any]:
        return stored_data(self.store)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return tuple(self._about_data["classes"])

    @cached_property
    def test_labels(self) -> np.ndarray:
        """The true classes of the test split."""
        return stored_test_labels(self.store, len(self.classes))

    @property
    def results(self) -> pd.DataFrame:
        """One row for each run that counts: every loss, noise and seed, at the learning rate that was chosen."""
        return self._frames.results()

    @property
    def searches(self) -> pd.DataFrame:
        """One row for each run by which learning rates were chosen."""
        return self._frames.searches()

    def rates(self) -> dict[tuple[str, str], float]:
        """Return the learning rate that was chosen for each loss and noise, as far as the search has come."""
        return self._frames.rates()

    def table(self, measure: str = "accuracy") -> pd.DataFrame:
        """Return mean and standard error over the seeds: a row for each loss, a column for each noise.

        Args:
            measure: A column of :attr:`results`.

        Returns:
            Text in every cell, in the order of the settings.

        Raises:
            ValueError: If there is no such measure.
        """
        return self._frames.table(measure)

    def curves(self) -> pd.DataFrame:
        """Return one row for each epoch of each run that counts.

        Returns:
            The columns that tell a run, ``epoch``, and a column for each curve.
        """
        return self._frames.curves()

    def test_logits(self, run: int) -> np.ndarray:
        """Return the logits of the test split.

        Args:
            run: The number of the run, as in :attr:`results`.

        Returns:
            ``(rows, classes)``, in single precision.

        Raises:
            StoreError: If there is no such run.
        """
        return self.store.array(run, "logits", (len(self.test_labels), len(self.classes)))

    def test_probabilities(self, run: int) -> np.ndarray:
        """Return the predicted probabilities of the test split, which are those that belong to the run's loss.

        Args:
            run: The number of the run, as in :attr:`results`.

        Returns:
            ``(rows, classes)``, in single precision.

        Raises:
            StoreError: If there is no such run.
        """
        if "probabilities" in self.store.kept(run):
            return self.store.array(run, "probabilities", (len(self.test_labels), len(self.classes)))
        return torch.softmax(torch.from_numpy(self.test_logits(run)), 1).numpy()

    def test_features(self, run: int) -> np.ndarray:
        """Return what the final layer saw of the test split, where the study keeps features.

        Args:
            run: The number of the run, as in :attr:`results`.

        Returns:
            ``(rows, features)``, in single precision.

        Raises:
            StoreError: If there is no such run, or no features were kept.
        """
        return self.store.array(run, "features", (len(self.test_labels), None))

    def model(self, run: int) -> nn.Module:
        """Return the trained model of a run, in evaluation mode, where the study keeps weights.

        Args:
            run: The number of the run, as in :attr:`results`.

        Returns:
            The module, which turns inputs into logits.

        Raises:
            StoreError: If there is no such run, or no weights were kept.
            ValueError: If the model or the data was the user's own, and is not at hand.
        """
        return trained_model(self.store, self.settings, run, self.load(), self._build)

    def noise_matrix(self, noise: str) -> np.ndarray:
        """Return the share of each true class (row) that got each label (column), the mean over the seeds.

        Args:
            noise: One of the study's.

        Returns:
            ``(classes, classes)``; every row sums to 1.

        Raises:
            ValueError: If the study has no such noise.
        """
        matrices = [row["matrix"] for row in self.store.noises() if row["noise"] == repr(make_noise(noise))]
        if not matrices:
            raise ValueError(f"Study: noise must be one of {', '.join(self.settings.noise)}, got {noise!r}.")
        with self.store.explained(f"table noise, {noise}"):
            return np.asarray(np.mean(matrices, axis=0)).reshape(len(self.classes), len(self.classes))

    def noisy_labels(self, noise: str, seed: int) -> np.ndarray:
        """Return the labels of all rows of the data as this noise left them; rows of the test split have their own.

        Args:
            noise: One of the study's.
            seed: That of the run.

        Returns:
            A class for each row of the data.

        Raises:
            ValueError: If there is no run of this noise and seed.
        """
        labels = self.store.noisy_labels(repr(make_noise(noise)), seed)
        if labels is None:
            raise ValueError(f"Study: there is no run with noise {noise!r} and seed {seed}.")
        return labels

    def load(self) -> PreparedData:
        """Read the data again, and make sure that it is the same.

        Returns:
            The data with its splits.

        Raises:
            OSError: If it cannot be read.
            ValueError: If it has changed since, or was given in Python and is not at hand.
        """
        if self._data is None:
            self._data = data_again(self.store, self.settings)
        return self._data

    def recommend(self) -> Recommendation:
        """Return the answer, for ``print``: which loss, how sure, and on what evidence.

        Raises:
            ValueError: If no run has finished.
        """
        results = self.results
        advice = recommend(results, baseline=self.settings.losses[0], searches=self.searches if self.settings.searched else None)
        evidence = (*advice.evidence, *guessing(results, self.test_labels))
        return replace(advice, evidence=evidence, unfinished=self.unfinished)

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

    def progress(self) -> tuple[int, int]:
        """Return how many runs are finished, and how many are planned."""
        return len(self.store.finished()), self.settings.planned()

    @property
    def unfinished(self) -> str:
        """A sentence that says so where runs are missing, to be read before any result; empty otherwise."""
        done, planned = self.progress()
        if done >= planned:
            return ""
        return f"The study is unfinished: {done} of {planned} runs are stored, and the others may change what follows."

    def status(self) -> str:
        """Return in words how far the study has come: the runs that are finished, of each loss and noise."""
        done, planned = self.progress()
        counts = self._frames.finished_by_loss()
        rest = "" if done == planned else f" Go on with: lossmith resume {self.folder}"
        heading = f"{self.folder}: {done} of {planned} runs are finished.{rest}"
        diverged = sum(run["diverged"] for run in planned_runs(self.store, self.settings))
        notes = [f"{counted(diverged, 'run')} diverged, at learning rates too large for their loss."] if diverged else []
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
