"""What a report is about: a study, the advice it gives, and how its losses and noise levels appear everywhere on the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd

from lossmith.statistics.recommendation import Recommendation
from lossmith.statistics.several_studies import RankedStudy
from lossmith.statistics.wording import percent
from lossmith.studies.study_analysis import Analysis

__all__ = ["ReportedStudy", "Series", "Subject"]


class ReportedStudy(RankedStudy, Protocol):
    """A study, as far as a report needs one."""

    @property
    def searches(self) -> pd.DataFrame:
        """One row per run of the search for learning rates."""
        ...

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        ...

    @property
    def test_labels(self) -> np.ndarray:
        """The true classes of the test split."""
        ...

    def curves(self) -> pd.DataFrame:
        """One row per epoch of each run that counts."""
        ...

    def test_probabilities(self, run: Any) -> np.ndarray:
        """Predicted probabilities of the test split."""
        ...

    def noise_matrix(self, noise: str) -> np.ndarray:
        """The realised shares of labels, one row per true class."""
        ...

    @property
    def analyses(self) -> Mapping[str, Analysis]:
        """What the analysis found, by noise level; empty before it was made."""
        ...

    def recommend(self) -> Recommendation:
        """The advice."""
        ...


@dataclass(frozen=True)
class Series:
    """A loss as the page draws it: its name, and the number that gives it the same colour in every figure."""

    name: str
    number: int
    """0 is the baseline, drawn in ink."""
    recommended: bool = False

    @property
    def style(self) -> str:
        """Return the classes of its marks; from the ninth loss on colours come again with broken lines."""
        hue, turn = (self.number, 0) if self.number < 8 else (1 + (self.number - 1) % 7, (self.number - 1) // 7)
        return f"hue{hue}" + (f" dash{min(turn, 2)}" if turn else "") + (" chosen" if self.recommended else "")


class Subject:
    """A study with what every section needs of it."""

    def __init__(self, study: ReportedStudy) -> None:
        self.study = study
        self.results = study.results.reset_index(drop=True)
        if self.results.empty:
            raise ValueError("report: the study has no results yet.")
        self.advice = study.recommend()
        self.baseline = self.advice.baseline

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """Every loss, in the order of the study."""
        others = iter(range(1, 10_000))
        losses = map(str, self.results["loss"].unique())
        return tuple(
            Series(loss, 0 if loss == self.baseline else next(others), loss == self.advice.loss and loss != self.baseline)
            for loss in losses
        )

    @cached_property
    def noises(self) -> tuple[str, ...]:
        """Every noise level, from few wrong labels to many."""
        return tuple(map(str, self.rates.sort_values(kind="stable").index))

    @cached_property
    def rates(self) -> "pd.Series[float]":
        """The realised share of wrong labels of every noise level."""
        return self.results.groupby("noise", sort=False)["noise_rate"].mean()

    @cached_property
    def noisy(self) -> tuple[str, ...]:
        """The noise levels with wrong labels."""
        return tuple(noise for noise in self.noises if self.rates[noise] > 0)

    @cached_property
    def seeds(self) -> int:
        """The number of seeds."""
        return int(self.results["seed"].nunique())

    @cached_property
    def searches_only(self) -> pd.DataFrame:
        """The runs of the search for learning rates that are not among the results, too."""
        searches = self.study.searches
        return searches[~searches["run"].isin(self.results["run"])]

    @cached_property
    def curves(self) -> pd.DataFrame:
        """One row per epoch of each run that counts."""
        return self.study.curves()

    @cached_property
    def analyses(self) -> tuple[Analysis, ...]:
        """What the analysis found, from few wrong labels to many; empty before it was made."""
        found = self.study.analyses
        return tuple(found[noise] for noise in self.noises if noise in found)

    @cached_property
    def data_name(self) -> str:
        """The name of the data."""
        return str(self.study.provenance.get("data", {}).get("name", "this data"))

    def noise_title(self, noise: str) -> str:
        """Return a noise level as a heading: what was asked for and what came of it."""
        return "no noise added" if noise == "none" and noise not in self.noisy else f"{noise}: {self.noise_words(noise)}"

    def noise_words(self, noise: str) -> str:
        """Return what came of a noise level."""
        return f"{percent(self.rates[noise])} wrong labels" if noise in self.noisy else "labels as they are"

    def runs(self, loss: str, noise: str) -> pd.DataFrame:
        """Return the final runs of a loss at a noise level that did not diverge."""
        these = (self.results["loss"] == loss) & (self.results["noise"] == noise) & ~self.results["diverged"].astype(bool)
        return self.results[these]
