"""The runs of a study as data frames, in the order of its settings, whichever run was finished first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lossmith.expressions.nearest import nearest
from lossmith.studies.measures import MEASURES
from lossmith.studies.settings import Settings
from lossmith.studies.store import Store
from lossmith.studies.stored_study import planned_runs
from lossmith.studies.tuning import chosen_rates
from lossmith.training.recipe import CURVES

__all__ = ["RunFrames", "mean_and_error"]

WHICH = ["loss", "noise", "seed", "learning_rate"]
"""The columns that tell a run."""


@dataclass(frozen=True)
class RunFrames:
    """What the file of a study holds, by the settings it was begun with."""

    settings: Settings
    store: Store

    def every_run(self) -> pd.DataFrame:
        """Return one row for each finished run, those of the search included."""
        rates = {(row["noise"], row["seed"]): row["rate"] for row in self.store.noises()}
        frame = pd.DataFrame(
            planned_runs(self.store, self.settings), columns=["id", *WHICH, "epoch", *MEASURES, "seconds", "diverged"]
        )
        frame = frame.rename(columns={"id": "run"})
        frame.insert(3, "noise_rate", [rates.get(key, np.nan) for key in zip(frame.noise, frame.seed, strict=True)])
        return self._in_order(frame)

    def results(self) -> pd.DataFrame:
        """Return one row for each run that counts."""
        everything = self.every_run()
        return everything[self._counts(everything)].reset_index(drop=True)

    def searches(self) -> pd.DataFrame:
        """Return one row for each run by which learning rates were chosen."""
        everything = self.every_run()
        searched = (everything.seed < self.settings.search_seeds) & everything.noise.isin(self.settings.searched_noise)
        return everything[searched].reset_index(drop=True)

    def curves(self) -> pd.DataFrame:
        """Return one row for each epoch of each run that counts."""
        frame = pd.DataFrame(self.store.curves(), columns=[*WHICH, "epoch", *CURVES])
        frame = frame.astype(dict.fromkeys(CURVES, float))
        return self._in_order(frame[self._counts(frame)]).reset_index(drop=True)

    def rates(self) -> dict[tuple[str, str], float]:
        """Return the learning rate of each loss and noise whose search is complete."""
        return chosen_rates(self.settings, planned_runs(self.store, self.settings))

    def table(self, measure: str) -> pd.DataFrame:
        """Return mean and standard error over the seeds as text: a row for each loss, a column for each noise."""
        if measure not in MEASURES:
            raise ValueError(f"Study: unknown measure {measure!r}{nearest(measure, MEASURES)}")
        written = self.results().groupby(["loss", "noise"], sort=False)[measure].agg(mean_and_error).unstack("noise")
        return written.reindex(index=self.settings.losses, columns=self.settings.noise)

    def finished_by_loss(self) -> pd.DataFrame:
        """Return how many runs are finished: a row for each loss, a column for each noise."""
        finished = pd.DataFrame(self.store.finished(), columns=WHICH)
        losses, noises = self.settings.losses, self.settings.noise
        return pd.crosstab(finished.loss, finished.noise).reindex(index=losses, columns=noises, fill_value=0)

    def _in_order(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows in the order of the losses, noises and seeds of the settings, whichever was finished first."""
        places = {"loss": list(self.settings.losses).index, "noise": list(self.settings.noise).index}
        order = frame.assign(**{name: frame[name].map(place) for name, place in places.items()})
        return frame.loc[order.sort_values([name for name in (*WHICH, "epoch") if name in frame]).index]

    def _counts(self, frame: pd.DataFrame) -> np.ndarray:
        rates = self.rates()
        keys = zip(frame.loss, frame.noise, frame.learning_rate, strict=True)
        chosen = [rates.get((loss, noise)) == rate for loss, noise, rate in keys]
        counted: np.ndarray = np.asarray(chosen, bool) & np.asarray(frame.seed < self.settings.seeds)
        return counted


def mean_and_error(values: Sequence[float]) -> str:
    """Write a mean and its standard error; of a single value there is none.

    >>> mean_and_error([0.9, 0.92]), mean_and_error([0.9])
    ('0.910 +- 0.010', '0.900')
    """
    numbers = np.asarray(values, float)
    if len(numbers) < 2:
        return f"{numbers.mean():.3f}" if len(numbers) else ""
    return f"{numbers.mean():.3f} +- {numbers.std(ddof=1) / len(numbers) ** 0.5:.3f}"
