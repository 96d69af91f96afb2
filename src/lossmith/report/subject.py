"""What a report is about: a study, the advice it gives, and how its losses and noise levels appear everywhere on the page."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pandas as pd

from lossmith.report.colours import LIGHT
from lossmith.statistics.budgets import plateaus
from lossmith.statistics.differences.luck import LuckOfRows
from lossmith.statistics.recommendation import Recommendation
from lossmith.statistics.several_studies import RankedStudy
from lossmith.statistics.untrained import untrained_losses
from lossmith.statistics.wording import counted, percent
from lossmith.studies.answer import AnsweringStudy
from lossmith.studies.luck_of_rows import luck_of_rows
from lossmith.studies.study_analysis import Analysis

__all__ = ["ReportedStudy", "Series", "Subject"]


class ReportedStudy(RankedStudy, AnsweringStudy, Protocol):
    """A study, as far as a report needs one."""

    @property
    def curves(self) -> pd.DataFrame:
        """One row per epoch of each run that counts."""
        ...

    def noise_matrix(self, noise: str) -> np.ndarray:
        """The realised shares of labels, one row per true class."""
        ...

    @property
    def class_rows(self) -> tuple[int, ...]:
        """How many training rows each class has; empty where nobody knows."""
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
        """Return the classes of its marks; from the eleventh loss on colours come again with broken lines."""
        others = len(LIGHT) - 1
        hue, turn = (1 + (self.number - 1) % others, (self.number - 1) // others) if self.number else (0, 0)
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
    def replicates(self) -> int:
        """The number of replicates."""
        return int(self.results["seed"].nunique())

    @property
    def metric(self) -> str:
        """What losses are compared by."""
        return self.study.metric

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row per training, whether it counts or was only tried."""
        return self.study.trials.reset_index(drop=True)

    @cached_property
    def references(self) -> pd.DataFrame:
        """One row per classical model, noise and replicate."""
        return self.study.references.reset_index(drop=True)

    @cached_property
    def untrained(self) -> dict[tuple[str, str], str]:
        """Why a loss counts as untrained at a noise, by both; those that look trained are left out."""
        counting = untrained_losses(self.results)
        cells = set(zip(counting["loss"], counting["noise"], strict=True))
        return {cell: why for cell, why in self._looks_untrained.items() if cell in cells}

    @cached_property
    def partly_untrained(self) -> dict[tuple[str, str], str]:
        """The same of losses that look untrained in some replicates, though in fewer than half of them."""
        return {cell: why for cell, why in self._looks_untrained.items() if cell not in self.untrained}

    @cached_property
    def _looks_untrained(self) -> dict[tuple[str, str], str]:
        if "untrained" not in self.results:
            return {}
        cells = self.results.groupby(["loss", "noise"], sort=False)["untrained"]
        found = {(str(loss), str(noise)): list(reasons.fillna("")) for (loss, noise), reasons in cells}
        return {cell: _why(list(filter(None, reasons)), len(reasons)) for cell, reasons in found.items() if any(reasons)}

    @cached_property
    def second_chances(self) -> dict[tuple[str, str], str]:
        """How often a loss was trained again at a noise, with more epochs, by both; those that were not are left out."""
        if "second_chance" not in self.results:
            return {}
        again = self.results.groupby(["loss", "noise"], sort=False)["second_chance"].agg(["sum", "size"])
        return {
            (str(loss), str(noise)): f"in {row['sum']} of {counted(row['size'], 'replicate')}"
            for (loss, noise), row in again[again["sum"] > 0].iterrows()
        }

    @cached_property
    def plateaus(self) -> dict[tuple[str, str], float]:
        """The share of good settings among those tried, by loss and noise; empty where that is not known."""
        if self.trials.empty or not self.study.validation_rows:
            return {}
        found = plateaus(self.trials, self.study.validation_rows, self.metric)
        return {(str(row.loss), str(row.noise)): float(row.share) for row in found.itertuples()}

    @cached_property
    def luck_of_rows(self) -> LuckOfRows:
        """What the luck of test rows has to do with each difference."""
        return luck_of_rows(self.study)

    @property
    def differences(self) -> pd.DataFrame:
        """All losses against the baseline, with the intervals by which was decided."""
        return self.advice.differences

    @cached_property
    def curves(self) -> pd.DataFrame:
        """One row per epoch of each run that counts."""
        return self.study.curves

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


def _why(reasons: Sequence[str], replicates: int) -> str:
    """Return all reasons that were found, those that differ in their number as one.

    >>> _why(["still rising at the end", "21 points behind", "34 points behind"], 5)
    'still rising at the end or 21 to 34 points behind, in 3 of 5 replicates'
    """
    kinds: dict[str, list[int]] = {}
    for reason in reasons:
        kinds.setdefault(re.sub(r"\d+", "{}", reason, count=1), []).extend(map(int, re.findall(r"\d+", reason)[:1]))
    written = [kind.replace("{}", _span(numbers)) if numbers else kind for kind, numbers in kinds.items()]
    return f"{' or '.join(written)}, in {len(reasons)} of {counted(replicates, 'replicate')}"


def _span(numbers: Sequence[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}" if min(numbers) < max(numbers) else str(numbers[0])
