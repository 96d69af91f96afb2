"""What is known of the labels of data once networks have predicted every row that they did not see."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossmith.analysis.labels.confident_learning import confident_joint
from lossmith.analysis.labels.suspects import NoiseEstimate, estimate_noise, suspects
from lossmith.data import PreparedData
from lossmith.studies.labels.cross_validation import Probabilities
from lossmith.studies.labels.near_duplicates import near_duplicates

__all__ = ["PROBABLY", "LabelInspection"]

PROBABLY = 0.5
"""A label is suspect from this chance on."""
MOST_COMPARED = 2000
"""Of so many rows, the most suspect ones, near duplicates are looked for."""
_SHOWN = 10


@dataclass(frozen=True, eq=False)
class LabelInspection:
    """How many labels are wrong, which ones, and what was taken for what.

    Args:
        data: What was inspected.
        rows: Row numbers, from 0, of rows with a label.
        labels: The label of each of them, as class indices.
        by_loss: What networks predict that did not see a row, by the loss that they were trained with.
        model: The name of the network.
        folds: How many folds there were.
        frame: The table that was read, if one was, to show rows as they are.
    """

    data: PreparedData
    rows: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    by_loss: dict[str, Probabilities]
    model: str
    folds: int
    frame: pd.DataFrame | None = None

    @cached_property
    def probabilities(self) -> Probabilities:
        """The mean over the losses: their mistakes differ."""
        return np.asarray(np.mean(list(self.by_loss.values()), 0))

    @cached_property
    def estimate(self) -> NoiseEstimate:
        """The share of wrong labels with its interval, its matrices, and the share of each label that is wrong."""
        return estimate_noise(self.probabilities, self.labels, classes=self.data.classes)

    @property
    def confident_rate(self) -> float:
        """The share of wrong labels by confident learning, from cross-entropy's probabilities, to compare with."""
        return float(1 - np.trace(confident_joint(next(iter(self.by_loss.values())), self.labels)))

    @cached_property
    def ranked(self) -> pd.DataFrame:
        """All rows, the most suspect first, with near duplicates of the first ones that carry another label."""
        found = suspects(self.probabilities, self.labels, classes=self.data.classes, least=0.0, estimate=self.estimate)
        found["row"] = self.rows[found["row"]]
        labels = np.full(len(self.data.labels), -1, np.int64)
        labels[self.rows] = self.labels
        nearest = near_duplicates(self.data, found["row"].to_numpy()[:MOST_COMPARED], labels)
        found["duplicate"] = found["row"].map(nearest).astype("Int64")
        names = pd.Series(self.data.classes)
        found["duplicate_label"] = found["duplicate"].map(lambda row: pd.NA if pd.isna(row) else names[labels[row]])
        return found

    @property
    def suspects(self) -> pd.DataFrame:
        """The rows whose label is more likely wrong than right, the most suspect first."""
        return self.ranked[self.ranked["chance"] >= PROBABLY]

    def write(self, folder: str | Path) -> list[Path]:
        """Write ``suspects.csv``, ``labels.csv`` (all rows), ``classes.csv`` and ``matrix.csv`` (what is taken for what).

        Args:
            folder: Where to; it is made where it is missing.

        Returns:
            The files.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        tables = {"suspects": self.suspects, "labels": self.ranked.sort_values("row")}
        for name, table in tables.items():
            table.round({"chance": 4, "predicted": 4}).to_csv(path / f"{name}.csv", index=False)
        self.estimate.by_class.round(4).to_csv(path / "classes.csv")
        self.estimate.transition.to_csv(path / "matrix.csv", header=False, index=False)
        return [path / f"{name}.csv" for name in ("suspects", "labels", "classes", "matrix")]

    def __str__(self) -> str:
        losses = " and ".join(self.by_loss)
        heading = f"{self.data.name}: {len(self.rows)} rows, {self.data.num_classes} classes, predicted by {self.model} with"
        shown = self.estimate.by_class.loc[self.estimate.by_class["rows"] > 0]
        percent = shown.assign(**{name: (100 * shown[name]).round(1) for name in ("wrong", "low", "high", "missed")})
        first = self.suspects.head(_SHOWN).round({"chance": 2, "predicted": 2}).dropna(axis=1, how="all")
        return "\n".join(
            [
                f"{heading} {losses}, each row by networks that did not see it ({self.folds} folds)",
                f"{self.estimate}; confident learning: {100 * self.confident_rate:.1f} %",
                *([self.estimate.caution] if self.estimate.caution else []),
                "",
                percent.sort_values("wrong", ascending=False).head(2 * _SHOWN).to_string(),
                "",
                f"{len(self.suspects)} labels are more likely wrong than right" + (", first:" if len(first) else "."),
                first.to_string(index=False) if len(first) else "",
            ]
        ).rstrip()
