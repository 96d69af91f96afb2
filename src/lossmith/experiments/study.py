"""A study: what was compared, and what came out."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from lossmith.data import PreparedData, load_data, make_noise
from lossmith.experiments.choice import chosen_rates
from lossmith.experiments.job import Build
from lossmith.experiments.measures import MEASURES
from lossmith.experiments.models import make_backbone, vocabulary_of
from lossmith.experiments.plan import CURVES
from lossmith.experiments.settings import Settings
from lossmith.experiments.store import Store, StoreError
from lossmith.experiments.wording import counted
from lossmith.nearest import nearest
from lossmith.objectives import make_objective

if TYPE_CHECKING:
    from lossmith.experiments.recommendation import Recommendation
    from lossmith.experiments.study_analysis.record import Analysis

__all__ = ["Study", "open_study"]

FILE = "study.sqlite"
REPORT = "report.html"
PATHS = ("validation", "test", "folder")
"""The settings of the data that name places, beside the data itself."""
WHICH = ["loss", "noise", "seed", "learning_rate"]


class Study:
    """The results of a comparison, read from its folder. It may still be running.

    >>> study = open_study("studies/digits")  # doctest: +SKIP
    >>> study.results.groupby(["noise", "loss"]).accuracy.mean()  # doctest: +SKIP
    """

    def __init__(self, folder: Path, data: PreparedData | None = None, build: Build | None = None) -> None:
        self.folder = folder
        self._data = data
        self._build = build
        self.store = Store(folder / FILE)
        self.plan = Settings.from_json(self.store.meta("settings"))

    def __repr__(self) -> str:
        done, planned = self.progress()
        return f"Study({str(self.folder)!r}: {done} of {planned} runs)"

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Everything that the results depend on, in plain numbers and text."""
        plan = self.plan.as_json()
        about = {name: self.store.meta(name) for name in ("command", "versions", "created", "from_python")}
        search = {"rates": plan["rates"], "seeds": plan["search_seeds"], "noise": self.plan.searched_noise}
        return {**plan, "data": self.store.meta("data"), "search": search, **about}

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return tuple(self.store.meta("data")["classes"])

    @cached_property
    def test_labels(self) -> np.ndarray:
        """The true classes of the test split."""
        return np.asarray(self.store.meta("test_labels"))

    @property
    def results(self) -> pd.DataFrame:
        """One row for each run that counts: every loss, noise and seed, at the learning rate that was chosen."""
        everything = self._runs()
        return everything[self._counts(everything)].reset_index(drop=True)

    @property
    def searches(self) -> pd.DataFrame:
        """One row for each run by which learning rates were chosen."""
        everything = self._runs()
        searched = (everything.seed < self.plan.search_seeds) & everything.noise.isin(self.plan.searched_noise)
        return everything[searched].reset_index(drop=True)

    def rates(self) -> dict[tuple[str, str], float]:
        """Return the learning rate that was chosen for each loss and noise, as far as the search has come."""
        return chosen_rates(self.plan, self.store.runs())

    def table(self, measure: str = "accuracy") -> pd.DataFrame:
        """Return mean and standard error over the seeds: a row for each loss, a column for each noise."""
        _check_measure(measure)
        written = self.results.groupby(["loss", "noise"], sort=False)[measure].agg(mean_and_error).unstack("noise")
        return written.reindex(index=self.plan.losses, columns=self.plan.noise)

    def curves(self) -> pd.DataFrame:
        """Return one row for each epoch of each run that counts."""
        frame = pd.DataFrame(self.store.curves(), columns=[*WHICH, "epoch", *CURVES])
        frame = frame.astype(dict.fromkeys(CURVES, float))
        return self._in_order(frame[self._counts(frame)]).reset_index(drop=True)

    def test_logits(self, run: int) -> np.ndarray:
        """Return the logits of the test split."""
        return self.store.array(run, "logits")

    def test_probabilities(self, run: int) -> np.ndarray:
        """Return the predicted probabilities of the test split, which are those that belong to the run's loss."""
        if "probabilities" in self.store.kept(run):
            return self.store.array(run, "probabilities")
        return torch.softmax(torch.from_numpy(self.test_logits(run)), 1).numpy()

    def test_features(self, run: int) -> np.ndarray:
        """Return what the final layer saw of the test split, where the study keeps features."""
        return self.store.array(run, "features")

    def model(self, run: int) -> nn.Module:
        """Return the trained model of a run, in evaluation mode, where the study keeps weights."""
        weights, data = self.store.weights(run), self.load()
        model = self._build(data.input_shape, data.num_classes) if self._build else self._untrained(run, data)
        model.load_state_dict(weights)
        return model.eval()

    def _untrained(self, run: int, data: PreparedData) -> nn.Module:
        if "a model of its own" in (self.store.meta("from_python") or ""):
            raise ValueError(f"{self.folder}: the study was begun in Python with a model of its own, which it does not hold.")
        backbone = make_backbone(self.plan.recipe.model, data.input_shape, vocabulary=vocabulary_of(data.inputs))
        loss = self._runs().set_index("run").loss[run]
        brought = loss in (self.store.meta("brought") or {})
        objective = make_objective("ce" if brought else loss)  # a loss of the user's own has a plain final layer
        return objective.build(backbone, data.num_classes).model

    def noise_matrix(self, noise: str) -> np.ndarray:
        """Return the share of each true class (row) that got each label (column), the mean over the seeds."""
        matrices = [row["matrix"] for row in self.store.noises() if row["noise"] == repr(make_noise(noise))]
        if not matrices:
            raise ValueError(f"Study: noise must be one of {', '.join(self.plan.noise)}, got {noise!r}.")
        return np.asarray(np.mean(matrices, axis=0))

    def noisy_labels(self, noise: str, seed: int) -> np.ndarray:
        """Return the labels of all rows of the data as this noise left them; rows of the test split have their own."""
        for row in self.store.noises():
            if (row["noise"], row["seed"]) == (repr(make_noise(noise)), seed):
                return np.asarray(row["labels"])
        raise ValueError(f"Study: there is no run with noise {noise!r} and seed {seed}.")

    def load(self) -> PreparedData:
        """Read the data again, and make sure that it is the same."""
        if self._data is None:
            if not self.plan.data:
                raise ValueError(f"{self.folder}: the study was begun in Python with data of its own, which it does not hold.")
            loading = {name: self._found(value) if name in PATHS else value for name, value in self.plan.loading.items()}
            data = load_data(self._found(self.plan.data), **loading)
            if data.fingerprint() != self.store.meta("fingerprint"):
                raise ValueError(f"{self.folder}: the data {self.plan.data!r} has changed since the study began.")
            self._data = data
        return self._data

    def _found(self, value: Any) -> Any:
        """Return a file by its place below the directory that the study was begun in, if it is there; else what was given."""
        place = Path(self.store.meta("directory") or "", value) if isinstance(value, str) else None
        return str(place) if place is not None and place.exists() else value

    def recommend(self) -> "Recommendation":
        """Return the answer: which loss, how sure, and on what evidence."""
        from lossmith.experiments.recommendation import recommend

        results = self.results
        advice = recommend(results, baseline=self.plan.losses[0], searches=self.searches if self.plan.searched else None)
        return replace(advice, evidence=(*advice.evidence, *self._no_better_than_guessing(results)))

    def _no_better_than_guessing(self, results: pd.DataFrame) -> list[str]:
        """Tell if no loss learnt more than which class is the commonest."""
        commonest = np.bincount(self.test_labels).max() / len(self.test_labels)
        if results.groupby(["loss", "noise"]).accuracy.mean().max() > commonest:
            return []
        return [f"No loss does better than always predicting the commonest class, {100 * commonest:.1f} % of the test split."]

    @property
    def analyses(self) -> dict[str, "Analysis"]:
        """What ``lossmith analyse`` found, by noise level, in the order of the settings."""
        from lossmith.experiments.study_analysis.record import Analysis

        stored = self.store.meta("analysis") or {}
        return {noise: Analysis.from_json(stored[noise]) for noise in self.plan.noise if noise in stored}

    def store_analysis(self, analysis: "Analysis") -> None:
        """Keep the analysis of a noise level in the study's file, in the place of an earlier one."""
        self.store.set_meta("analysis", {**(self.store.meta("analysis") or {}), analysis.noise: analysis.as_json()})

    def progress(self) -> tuple[int, int]:
        """Return how many runs are finished, and how many are planned."""
        return len(self.store.finished()), self.plan.planned()

    def status(self) -> str:
        """Return in words how far the study has come: the runs that are finished, of each loss and noise."""
        done, planned = self.progress()
        finished = pd.DataFrame(self.store.finished(), columns=WHICH)
        counts = pd.crosstab(finished.loss, finished.noise).reindex(index=self.plan.losses, columns=self.plan.noise, fill_value=0)
        rest = "" if done == planned else f" Go on with: lossmith resume {self.folder}"
        heading = f"{self.folder}: {done} of {planned} runs are finished.{rest}"
        diverged = sum(run["diverged"] for run in self.store.runs())
        notes = [f"{counted(diverged, 'run')} diverged, at learning rates too large for their loss."] if diverged else []
        return "\n".join([heading, counts.rename_axis(index=None, columns=None).to_string(), *notes])

    def _runs(self) -> pd.DataFrame:
        rates = {(row["noise"], row["seed"]): row["rate"] for row in self.store.noises()}
        frame = pd.DataFrame(self.store.runs(), columns=["id", *WHICH, "epoch", *MEASURES, "seconds", "diverged"])
        frame = frame.rename(columns={"id": "run"})
        frame.insert(3, "noise_rate", [rates.get(key, np.nan) for key in zip(frame.noise, frame.seed, strict=True)])
        return self._in_order(frame)

    def _in_order(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows in the order of the losses, noises and seeds of the settings, whichever was finished first."""
        places = {"loss": list(self.plan.losses).index, "noise": list(self.plan.noise).index}
        order = frame.assign(**{name: frame[name].map(place) for name, place in places.items()})
        return frame.loc[order.sort_values([name for name in (*WHICH, "epoch") if name in frame]).index]

    def _counts(self, frame: pd.DataFrame) -> np.ndarray:
        rates = self.rates()
        keys = zip(frame.loss, frame.noise, frame.learning_rate, strict=True)
        chosen = [rates.get((loss, noise)) == rate for loss, noise, rate in keys]
        counted: np.ndarray = np.asarray(chosen, bool) & np.asarray(frame.seed < self.plan.seeds)
        return counted


def open_study(folder: str | Path) -> Study:
    """Open a study by its folder, or by the file in it."""
    path = Path(folder)
    if path.is_file() and path.name != FILE:
        raise StoreError(f"{path} is not a study of lossmith; a study is a folder, made by 'lossmith compare'.")
    return Study(path.parent if path.is_file() else path)


def mean_and_error(values: Sequence[float]) -> str:
    """Write a mean and its standard error; of a single value there is none.

    >>> mean_and_error([0.9, 0.92]), mean_and_error([0.9])
    ('0.910 +- 0.010', '0.900')
    """
    numbers = np.asarray(values, float)
    if len(numbers) < 2:
        return f"{numbers.mean():.3f}" if len(numbers) else ""
    return f"{numbers.mean():.3f} +- {numbers.std(ddof=1) / len(numbers) ** 0.5:.3f}"


def _check_measure(measure: str) -> None:
    if measure not in MEASURES:
        raise ValueError(f"Study: unknown measure {measure!r}{nearest(measure, MEASURES)}")
