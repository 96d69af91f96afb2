"""A study that nobody trained, of any size, with everything that a report shows."""

from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from lossmith.statistics.differences.overlapping import Overlap
from lossmith.statistics.recommendation import Recommendation
from lossmith.studies.answer import answer_of
from study_frames import results_frame

LOSSES = {
    "ce": (0.962, 0.86, 0.71),
    "focal(gamma=2.0)": (0.960, 0.85, 0.70),
    "label-smoothing(alpha=0.1)": (0.964, 0.89, 0.76),
    "gce(q=0.7)": (0.983, 0.93, 0.88),
    "bi-tempered(t1=0.5, t2=4.0)": (0.957, 0.925, 0.86),
    "1.0*nce + 20.0*mae": (0.955, 0.928, 0.879),
    "mae": (0.90, 0.85, 0.79),
    "logit-bias(mae, epsilon=0.5)": (0.956, 0.92, 0.85),
}
TEN_LOSSES = {**LOSSES, "sce": (0.963, 0.90, 0.80), "poly(epsilon=1.0)": (0.961, 0.858, 0.705)}
NOISE, RATES = ("none", "symmetric(0.2)", "symmetric(0.4)"), (0.0, 0.18, 0.36)
CLASSES = ("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
REFERENCES = {"largest class": 0.1, "logistic regression": -0.02, "RBF-SVM": -0.005}
"""What classical models reach, or, where it is negative, how far they are behind the best loss of a noise."""

_TRIALS, _KEPT = 9, 3
_FALL = {"ce": 0.10, "gce(q=0.7)": 0.03, "mae": 0.2}
"""What a loss loses with a learning rate that is wrong by a factor of ten."""


class FakeStudy:
    """Has the parts of a Study that reports and exports read."""

    def __init__(
        self,
        folder: Path,
        results: pd.DataFrame,
        *,
        epochs: int = 40,
        classes: tuple[str, ...] = CLASSES,
        references: Mapping[str, float] = REFERENCES,
        metric: str = "accuracy",
        test_rows: int = 500,
    ) -> None:
        self.folder = folder
        self.classes = classes
        self.epochs = epochs
        self.metric = metric
        self.rows = test_rows
        self.keeps_predictions = False
        self.analyses = {}
        self.class_rows = ()
        self.unfinished = ""
        self.caution = ""
        self.validation_rows = 500
        recipe = SimpleNamespace(epochs=epochs)
        self.settings = SimpleNamespace(losses=tuple(results["loss"].unique()), searched=True, recipe=recipe)
        self.overlap = Overlap(0.25)
        self.rng = np.random.default_rng(7)
        self.trials = _trials(results.reset_index(drop=True), epochs)
        self.results = _counting(self.trials)
        self.references = _references(self.results, references)
        self.provenance = self._provenance()

    def _provenance(self) -> dict[str, Any]:
        rows = {"train": 3000, "validation": self.validation_rows, "test": self.rows}
        return {
            "data": {"source": "fashion.npz", "name": "fashion", "rows": rows, "classes": list(self.classes), "notes": []},
            "losses": list(self.results["loss"].unique()),
            "noise": list(self.results["noise"].unique()),
            "seeds": int(self.results["seed"].nunique()),
            "trials": _TRIALS,
            "rates": [],
            "decays": [],
            "tune": ["settings"],
            "tune_on": "own",
            "metric": self.metric,
            "class_weight": "none",
            "train_rows": 0,
            "recipe": {"model": "mlp", "epochs": self.epochs, "batch_size": 64, "optimizer": "sgd"},
            "command": "lossmith compare fashion.npz --losses 'ce,gce(q=0.7)' --output studies/fashion",
            "versions": {"lossmith": "0.1.0", "torch": "2.13.0"},
            "created": "2026-11-15T20:00:00+00:00",
            "from_python": None,
            "shrunk": "",
        }

    def test_labels(self, seed: int = 0) -> np.ndarray:
        return np.random.default_rng(seed).integers(0, len(self.classes), self.rows)

    def test_rows(self, seed: int = 0) -> np.ndarray:
        return np.arange(self.rows) + (0 if self.overlap.rows else seed * self.rows)

    def has_predictions(self, run: int) -> bool:
        return self.keeps_predictions

    @cached_property
    def curves(self) -> pd.DataFrame:
        epoch = np.arange(1, self.epochs + 1)
        parts = []
        for row in self.results.itertuples():
            rise = 1 - np.exp(-epoch / 4)
            overfit = (row.noise_rate > 0) * (0.95 - row.accuracy) * 0.6 * np.exp(-(((epoch - 8) / 8) ** 2))
            accuracy = row.accuracy * rise + overfit * rise + self.rng.normal(0, 0.004, self.epochs)
            noisy = row.noise_rate > 0
            parts.append(
                pd.DataFrame(
                    {
                        "loss": row.loss,
                        "noise": row.noise,
                        "seed": row.seed,
                        "epoch": epoch,
                        "train_loss": 1 / epoch,
                        "train_accuracy": accuracy,
                        "validation_accuracy": accuracy,
                        "test_accuracy": accuracy,
                        "false_label_accuracy": accuracy - 0.1 if noisy else np.nan,
                        "memorised": (0.95 - accuracy) * rise if noisy else np.nan,
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)

    @cache  # noqa: B019
    def test_probabilities(self, run: int) -> np.ndarray:
        row = self.results.set_index("run").loc[run]
        rng, labels = np.random.default_rng(run), self.test_labels(int(row["seed"]))
        logits = rng.normal(0, 1, (len(labels), len(self.classes)))
        right = rng.random(len(logits)) < row["accuracy"]
        aimed = np.where(right, labels, rng.integers(0, len(self.classes), len(logits)))
        logits[np.arange(len(logits)), aimed] += 2 + 3 * rng.random(len(logits))
        powers = np.exp(logits)
        return powers / powers.sum(1, keepdims=True)

    def noise_matrix(self, noise: str) -> np.ndarray:
        rate, classes = float(self.results.loc[self.results["noise"] == noise, "noise_rate"].mean()), len(self.classes)
        return (1 - rate) * np.eye(classes) + rate / (classes - 1) * (1 - np.eye(classes))

    def recommend(self) -> Recommendation:
        return answer_of(self)

    def leave_untrained(self, loss: str, noise: str, reason: str = "predicts one class", accuracy: float = 0.11) -> None:
        """Make a loss one that does not learn at a noise, in spite of a second chance."""
        these = (self.results["loss"] == loss) & (self.results["noise"] == noise)
        columns = ["accuracy", "balanced_accuracy", "macro_f1", "validation_accuracy", "validation_score"]
        self.results.loc[these, columns] = accuracy
        self.results.loc[these, ["untrained", "second_chance"]] = [reason, True]


def _trials(results: pd.DataFrame, epochs: int) -> pd.DataFrame:
    """Return the trials of every cell; the best of them is the row of the results, and most others were stopped early."""
    parts = []
    for cell in results.itertuples():
        rng = np.random.default_rng([3, cell.seed])
        rates = 0.003 * (0.5 / 0.003) ** ((rng.permutation(_TRIALS) + rng.random(_TRIALS)) / _TRIALS)
        decays = np.where(rng.random(_TRIALS) < 1 / 3, 0.0, 10 ** rng.uniform(-5, -2, _TRIALS))
        fall = _FALL.get(cell.loss, 0.06) * np.log10(rates / 0.06) ** 2 + 0.004 * rng.random(_TRIALS)
        fall -= fall.min()
        order = np.argsort(fall)
        finished = np.zeros(_TRIALS, bool)
        finished[order[:_KEPT]] = True
        lucky = order[_KEPT + rng.integers(_TRIALS - _KEPT)]
        finished[lucky] = True
        rows = results.loc[[cell.Index] * _TRIALS].reset_index(drop=True)
        value = cell.accuracy - fall - 0.12 * ~finished
        rows = rows.assign(
            accuracy=value,
            balanced_accuracy=value - 0.01,
            macro_f1=value - 0.02,
            validation_accuracy=value,
            validation_score=value,
            learning_rate=rates,
            weight_decay=decays,
            stopped=~finished,
            seconds=np.where(finished, rows["seconds"], rows["seconds"] / 3),
            weight=np.where(finished, 1.0, 0.0),
            counts=np.arange(_TRIALS) == order[0],
        )
        rows.loc[lucky, "weight"] += (~finished).sum()
        parts.append(rows)
    trials = pd.concat(parts, ignore_index=True)
    return trials.assign(run=trials.index, parameters="", epochs=epochs, train_accuracy=trials["accuracy"])


def _counting(trials: pd.DataFrame) -> pd.DataFrame:
    results = trials[trials["counts"]].drop(columns=["counts", "stopped", "weight"]).reset_index(drop=True)
    return results.assign(untrained="", second_chance=False)


def _references(results: pd.DataFrame, reached: Mapping[str, float]) -> pd.DataFrame:
    best = results.groupby(["noise", "seed"], sort=False)["accuracy"].max()
    rows = [
        (name, noise, seed, value if value > 0 else top + value)
        for name, value in reached.items()
        for (noise, seed), top in best.items()
    ]
    frame = pd.DataFrame(rows, columns=["reference", "noise", "seed", "accuracy"])
    same = dict.fromkeys(("balanced_accuracy", "macro_f1", "validation_score"), frame["accuracy"])
    return frame.assign(**same, settings="C=1", nll=np.nan, brier=np.nan, top5=np.nan, seconds=0.4)


def full_study(folder: Path, losses: Mapping[str, tuple[float, ...]] = LOSSES, **changes: object) -> FakeStudy:
    """Return a study of the size that the report promises to hold: 8 losses, 3 noise levels, 5 replicates, 40 epochs."""
    seconds = {loss: 2.0 + 0.3 * number for number, loss in enumerate(losses)}
    results = results_frame(losses, noise=NOISE, rates=RATES, seconds=seconds, ece={"gce(q=0.7)": 0.11})
    return FakeStudy(folder, results, **changes)


def troubled_study(folder: Path) -> FakeStudy:
    """Return one with all that can go wrong: ten losses, one untrained, a reference ahead, rare classes, a plan that shrank."""
    study = full_study(folder, TEN_LOSSES, references={**REFERENCES, "RBF-SVM": 0.995}, metric="balanced_accuracy")
    study.leave_untrained("mae", "symmetric(0.4)")
    rising = (study.results["loss"] == "label-smoothing(alpha=0.1)") & (study.results["noise"] == "none")
    study.results.loc[rising & (study.results["seed"] == 2), "untrained"] = "still rising at the end"
    study.results.loc[(study.results["loss"] == "sce") & (study.results["seed"] == 1), "second_chance"] = True
    study.unfinished = "The study is unfinished: 148 of 150 results are there, and the others may change what follows."
    study.provenance["shrunk"] = (
        "to fit into the time: 3000 of 20000 training rows in each replicate, 6 of 9 trials; the whole would take about 3 hours"
    )
    return study
