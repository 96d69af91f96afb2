"""A study that nobody trained, of any size, with everything that a report shows."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from lossmith.statistics.recommendation import Recommendation, recommend
from study_frames import results_frame

LOSSES = {
    "ce": (0.962, 0.86, 0.71),
    "focal(gamma=2.0)": (0.960, 0.85, 0.70),
    "label-smoothing(alpha=0.1)": (0.964, 0.89, 0.76),
    "gce(q=0.7)": (0.958, 0.93, 0.88),
    "bi-tempered(t1=0.5, t2=4.0)": (0.957, 0.925, 0.86),
    "1.0*nce + 20.0*mae": (0.955, 0.928, 0.879),
    "mae": (0.90, 0.85, 0.79),
    "logit-bias(mae, epsilon=0.5)": (0.956, 0.92, 0.85),
}
NOISE, RATES = ("none", "symmetric(0.2)", "symmetric(0.4)"), (0.0, 0.18, 0.36)
CLASSES = ("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")


class FakeStudy:
    """Has the parts of a Study that reports and exports read."""

    def __init__(self, folder: Path, results: pd.DataFrame, *, epochs: int = 40, classes: tuple[str, ...] = CLASSES) -> None:
        self.folder = folder
        self.results = results
        self.classes = classes
        self.epochs = epochs
        self.analyses = {}
        self.unfinished = ""
        self.rng = np.random.default_rng(7)
        self.test_labels = self.rng.integers(0, len(classes), 500)
        self.searches = self._searches()
        self.provenance = {
            "data": {"source": "fashion.npz", "name": "fashion", "rows": {"train": 3000}, "classes": list(classes), "notes": []},
            "losses": list(results["loss"].unique()),
            "noise": list(results["noise"].unique()),
            "seeds": int(results["seed"].nunique()),
            "recipe": {"model": "mlp", "epochs": epochs, "batch_size": 64, "optimizer": "sgd"},
            "search": {"rates": [0.01, 0.1, 1.0], "seeds": 1},
            "command": "lossmith compare fashion.npz --losses 'ce,gce(q=0.7)' --output studies/fashion",
            "versions": {"lossmith": "0.1.0", "torch": "2.13.0"},
            "created": "2026-11-15T20:00:00+00:00",
        }

    def _searches(self) -> pd.DataFrame:
        keys = self.results[self.results["seed"] == 0]
        tried = [keys.assign(learning_rate=rate, validation_accuracy=keys["accuracy"] - drop) for rate, drop in _RATES.items()]
        searches = pd.concat(tried, ignore_index=True)
        chosen = searches["learning_rate"] == 0.1
        return searches.assign(run=searches["run"].where(chosen, "search-" + searches.index.astype(str)))

    @cache  # noqa: B019  a handful of studies live as long as the tests
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
    def test_probabilities(self, run: str) -> np.ndarray:
        row = self.results.set_index("run").loc[run]
        rng = np.random.default_rng(int(run.split("-")[1]))
        logits = rng.normal(0, 1, (len(self.test_labels), len(self.classes)))
        right = rng.random(len(logits)) < row["accuracy"]
        aimed = np.where(right, self.test_labels, rng.integers(0, len(self.classes), len(logits)))
        logits[np.arange(len(logits)), aimed] += 2 + 3 * rng.random(len(logits))
        powers = np.exp(logits)
        return powers / powers.sum(1, keepdims=True)

    def noise_matrix(self, noise: str) -> np.ndarray:
        rate, classes = float(self.results.loc[self.results["noise"] == noise, "noise_rate"].mean()), len(self.classes)
        return (1 - rate) * np.eye(classes) + rate / (classes - 1) * (1 - np.eye(classes))

    def recommend(self) -> Recommendation:
        return recommend(self.results, searches=self.searches)


_RATES = {0.01: 0.05, 0.1: 0.0, 1.0: 0.02}


def full_study(folder: Path, **changes: object) -> FakeStudy:
    """Return a study of the size that the report promises to hold: 8 losses, 3 noise levels, 5 seeds, 40 epochs."""
    seconds = {loss: 2.0 + 0.3 * number for number, loss in enumerate(LOSSES)}
    results = results_frame(LOSSES, noise=NOISE, rates=RATES, seconds=seconds, ece={"gce(q=0.7)": 0.11})
    return FakeStudy(folder, results, **changes)
