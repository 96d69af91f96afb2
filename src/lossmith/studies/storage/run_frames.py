"""The runs of a study as data frames, in the order of its settings, whichever run was finished first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lossmith.expressions.nearest import nearest
from lossmith.studies.design.settings import Settings
from lossmith.studies.measures import MEASURES, METRICS
from lossmith.studies.storage.store import Store
from lossmith.studies.storage.stored_study import planned_runs
from lossmith.training.recipe import CURVES

__all__ = ["RunFrames", "mean_and_error"]

WHICH = ["loss", "noise", "seed", "learning_rate", "weight_decay", "parameters"]
"""The columns that tell a run."""
SIMPLE = ("largest class", "logistic regression")
"""The references that come before all others."""
COLUMNS = [
    "run",
    "loss",
    "noise",
    "seed",
    "noise_rate",
    *WHICH[3:],
    "epochs",
    "epoch",
    *MEASURES,
    "seconds",
    "memory",
    "diverged",
]


@dataclass(frozen=True)
class RunFrames:
    """What the file of a study holds, by the settings it was begun with."""

    settings: Settings
    store: Store

    def results(self) -> pd.DataFrame:
        """Return one row for each cell that is finished: the run that counts."""
        choices = dict(self.store.choices().values())
        frame = self._every_run()
        frame = frame[frame.run.isin(choices)]
        marks = {"untrained": frame.run.map(choices).astype(str), "second_chance": frame.more_epochs}
        return frame[COLUMNS].assign(**marks).reset_index(drop=True)

    def trials(self) -> pd.DataFrame:
        """Return one row for each training, whether it counts or not."""
        frame = self._every_run().rename(columns={"stands_for": "weight"})
        counting = {run for run, _ in self.store.choices().values()}
        return frame[[*COLUMNS, "stopped", "weight"]].assign(counts=frame.run.isin(counting)).reset_index(drop=True)

    def references(self) -> pd.DataFrame:
        """Return one row for each classical model, noise and replicate."""
        columns = ["reference", "noise", "seed", "settings", *METRICS, "validation_accuracy", "validation_score", "seconds"]
        frame = pd.DataFrame(self.store.references()).rename(columns={"name": "reference"}).reindex(columns=columns)
        frame = frame[frame.noise.isin(self.settings.noise)]
        simplest_first = frame.reference.map({name: place - len(SIMPLE) for place, name in enumerate(SIMPLE)}).fillna(0)
        return frame.loc[simplest_first.sort_values(kind="stable").index].reset_index(drop=True)

    def _every_run(self) -> pd.DataFrame:
        rates = {(row["noise"], row["seed"]): row["rate"] for row in self.store.noises()}
        frame = pd.DataFrame(
            planned_runs(self.store, self.settings),
            columns=["id", *WHICH, "epochs", "epoch", *MEASURES, "seconds", "memory", "diverged", "stopped", "stands_for"],
        ).rename(columns={"id": "run"})
        frame["noise_rate"] = [rates.get(key, np.nan) for key in zip(frame.noise, frame.seed, strict=True)]
        frame["more_epochs"] = frame.epochs > 0
        frame["epochs"] = frame.epochs.where(frame.more_epochs, self.settings.recipe.epochs)
        return self._in_order(frame)

    def curves(self) -> pd.DataFrame:
        """Return one row for each epoch of each run that counts."""
        which = WHICH[:5]
        frame = pd.DataFrame(self.store.curves(), columns=[*which, "epoch", *CURVES])
        return self._in_order(frame.astype(dict.fromkeys(CURVES, float))).reset_index(drop=True)

    def table(self, measure: str) -> pd.DataFrame:
        """Return mean and standard error over the replicates as text: a row for each loss, a column for each noise."""
        if measure not in MEASURES:
            raise ValueError(f"Study: unknown measure {measure!r}{nearest(measure, MEASURES)}")
        written = self.results().groupby(["loss", "noise"], sort=False)[measure].agg(mean_and_error).unstack("noise")
        return written.reindex(index=self.settings.losses, columns=self.settings.noise)

    def finished_by_loss(self) -> pd.DataFrame:
        """Return how many replicates are finished: a row for each loss, a column for each noise."""
        finished = pd.DataFrame(list(self.store.choices()), columns=["loss", "noise", "seed"])
        losses, noises = self.settings.losses, self.settings.noise
        return pd.crosstab(finished.loss, finished.noise).reindex(index=losses, columns=noises, fill_value=0)

    def _in_order(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows in the order of the losses, noises and seeds of the settings, whichever was finished first."""
        places = {"loss": list(self.settings.losses).index, "noise": list(self.settings.noise).index}
        order = frame.assign(**{name: frame[name].map(place) for name, place in places.items()})
        return frame.loc[order.sort_values([name for name in (*WHICH, "epoch") if name in frame]).index]


def mean_and_error(values: Sequence[float]) -> str:
    """Write a mean and its standard error; of a single value there is none.

    >>> mean_and_error([0.9, 0.92]), mean_and_error([0.9])
    ('0.910 +- 0.010', '0.900')
    """
    numbers = np.asarray(values, float)
    if len(numbers) < 2:
        return f"{numbers.mean():.3f}" if len(numbers) else ""
    return f"{numbers.mean():.3f} +- {numbers.std(ddof=1) / len(numbers) ** 0.5:.3f}"
