"""Kornblith et al., "What's in a loss function for image classification?": nine objectives on Fashion-MNIST and CIFAR-10."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from evidence.papers.conventions import accuracies
from evidence.papers.correlation import correlation
from evidence.papers.paper_table import Frames, PaperTable, Piece, StudyTable
from lossmith.analysis import RunOutputs, linear_cka
from lossmith.analysis.run_tables import cross_fitted_calibration, separations
from lossmith.data import load_data
from lossmith.data.sources.known_sets import read_known_set
from lossmith.recipes.named_recipes import RECIPES
from lossmith.studies import Study
from lossmith.studies.study_analysis.features import halves, relearned_accuracy
from lossmith.studies.study_analysis.trained_models import outputs

__all__ = ["TABLES"]

PAPER = "Kornblith et al. 2021"
OBJECTIVES = RECIPES["kornblith-cifar"].losses
"""With the parameters that are published for ten classes; the others are those of larger networks."""
SHARES = (1.0, 0.3, 0.1)
"""Of the published learning rates, which belong to a network with batch normalisation; validation rows choose."""
HELD_OUT = (7, 8, 9)
ROWS = 5000
"""Of each split, for features."""
COMPARED_ROWS = 1000


def _settings(share: float, epochs: int) -> dict[str, Any]:
    return {
        "losses": [loss.expression for loss in OBJECTIVES],
        "loss_rates": {loss.expression: [float(f"{share * (loss.rate or 0):.3g}")] for loss in OBJECTIVES},
        "loss_decays": {loss.expression: [loss.decay] for loss in OBJECTIVES},
        "noise": ["0"],
        "seeds": 3,
        "model": "small-cnn",
        "optimizer": "sgd",
        "schedule": "cosine",
        "batch_size": 128,
        "epochs": epochs,
        "validation_share": 0.1,
        "references": False,
        "keep": ["weights"],
        "precision": "bfloat16",
    }


def _without_some_classes(name: str) -> Callable[[Path], dict[str, Any]]:
    """Return a function that reads a set without its last three classes."""

    def make(_: Path) -> dict[str, Any]:
        examples = read_known_set(name)
        labels, split = np.asarray(examples.labels).astype(int), examples.split
        kept = {part: (split == part) & ~np.isin(labels, HELD_OUT) for part in ("train", "test")}
        arrays = {f"x_{part}": np.asarray(examples.inputs)[rows] for part, rows in kept.items()}
        return {**arrays, **{f"y_{part}": labels[rows] for part, rows in kept.items()}}

    return make


class Measured(NamedTuple):
    """What a network that was chosen makes of images."""

    loss: str
    seed: int
    train: np.ndarray
    """Features of training images."""
    test: np.ndarray
    """Features of test images of all classes."""
    early: np.ndarray
    """What the first layer puts out for some of them."""
    elsewhere: np.ndarray
    """Features of images of other data."""


def _chosen_runs(made: Sequence[tuple[Piece, Study]]) -> Iterator[tuple[Study, int, str, int]]:
    """Yield study and run of each objective and replicate, at the rate that validation rows chose."""
    counting = accuracies(made).query("epoch == 'last'")
    for _, study in made:
        runs = study.results.merge(counting[["loss", "seed", "learning_rate"]], on=["loss", "seed", "learning_rate"])
        for run in runs.drop_duplicates("run").itertuples():
            yield study, int(run.run), str(run.loss), int(run.seed)


def _features(model: nn.Module, images: Tensor) -> np.ndarray:
    return np.asarray(outputs(model.get_submodule("backbone"), images).numpy())


class Analysed:
    """The measurements of a set: of networks trained on all classes, and on seven of the ten."""

    def __init__(self, name: str, elsewhere: str) -> None:
        self.name, self.elsewhere = name, elsewhere

    def __call__(self, made: Sequence[tuple[Piece, Study]]) -> Frames:
        """Return what each objective does, how alike their layers are, and how separation and transfer go together."""
        whole = [each for each in made if not each[0].marks["held_out"]]
        part = [each for each in made if each[0].marks["held_out"]]
        if len(whole) < len(SHARES):
            return {}
        data, other = load_data(self.name), self._elsewhere()
        found = [self._of_run(data, other, each) for each in _chosen_runs(whole)]
        frame = pd.DataFrame([row for row, _ in found])
        if len(part) == len(SHARES):
            held = pd.DataFrame(self._held_out(data, part))
            frame = frame.merge(held, on=["loss", "seed"], how="left")
        return {"measures": frame, "cka": _similarities([each for _, each in found]), "correlations": _correlations(frame)}

    def _elsewhere(self) -> tuple[Tensor, np.ndarray]:
        """Return images of other data, in the shape of these."""
        other = load_data(self.elsewhere, rows=2 * ROWS)
        images = other.inputs[other.train[: 2 * ROWS]]
        if self.name == "cifar-10":  # grey and smaller: in three colours, with a border
            images = nn.functional.pad(images.repeat(1, 3, 1, 1), (2, 2, 2, 2))
        return images, other.labels[other.train[: 2 * ROWS]].numpy()

    def _of_run(
        self, data: Any, other: tuple[Tensor, np.ndarray], chosen: tuple[Study, int, str, int]
    ) -> tuple[dict[str, Any], Measured]:
        study, run, loss, seed = chosen
        model, train, test = study.model(run), data.train[:ROWS], data.test[:ROWS]
        labels = data.labels.numpy()
        first = nn.Sequential(*list(model.get_submodule("backbone").children())[:3])
        early = outputs(first, data.inputs[test[:COMPARED_ROWS]]).flatten(1).numpy()
        made = Measured(
            loss, seed, *(_features(model, data.inputs[rows]) for rows in (train, test)), early, _features(model, other[0])
        )
        own = RunOutputs(loss, seed, study.test_logits(run), probabilities=study.test_probabilities(run))
        row = {"loss": loss, "seed": seed, "accuracy": float((own.logits.argmax(1) == study.test_labels(seed)).mean())}
        row |= cross_fitted_calibration(own, study.test_labels(seed))
        row |= {f"r2 {name}": value for name, value in separations(made.train, labels[train]).items()}
        one_hot = np.eye(10)[labels[train]]
        directions = made.train / np.maximum(np.linalg.norm(made.train, axis=1, keepdims=True), 1e-12)
        row["cka with labels"] = linear_cka(directions, one_hot)
        row["relearned"] = relearned_accuracy(made.test, labels[test], *halves(labels[test], ROWS))
        row["transfer"] = relearned_accuracy(made.elsewhere, other[1], *halves(other[1], 2 * ROWS))
        return row, made

    def _held_out(self, data: Any, part: Sequence[tuple[Piece, Study]]) -> Iterator[dict[str, Any]]:
        """Yield how well classes that a network has not seen are told apart by its features."""
        rows = data.test[torch.isin(data.labels[data.test], torch.tensor(HELD_OUT))]
        labels = data.labels[rows].numpy() - min(HELD_OUT)
        for study, run, loss, seed in _chosen_runs(part):
            features = _features(study.model(run), data.inputs[rows])
            yield {
                "loss": loss,
                "seed": seed,
                "held out classes": relearned_accuracy(features, labels, *halves(labels, len(rows))),
            }


def _similarities(made: Sequence[Measured]) -> pd.DataFrame:
    """Return the CKA of every two objectives in an early layer and in the last, between the networks of different seeds."""
    rows = []
    for one in (each for each in made if each.seed == 0):
        for other in (each for each in made if each.seed == 1):
            late = linear_cka(one.test[:COMPARED_ROWS], other.test[:COMPARED_ROWS])
            rows.append({"first": one.loss, "second": other.loss, "early": linear_cka(one.early, other.early), "late": late})
    return pd.DataFrame(rows)


def _correlations(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how class separation goes together with transfer over the objectives, by their means."""
    means = frame.groupby("loss").mean(numeric_only=True)
    separation = next(name for name in means if name.startswith("r2") and "cosine" in name)
    known = [name for name in ("transfer", "held out classes", "relearned", "accuracy") if name in means]
    return pd.DataFrame([{"of": separation, "with": name, **correlation(means[separation], means[name])} for name in known])


def _nine(name: str, data: str, epochs: int, elsewhere: str, minutes: int) -> StudyTable:
    whole = tuple(Piece(f"rate-{share:g}", _settings(share, epochs), data, {"held_out": 0}) for share in SHARES)
    part = tuple(
        Piece(f"seven-rate-{share:g}", _settings(share, epochs // 2), _without_some_classes(data), {"held_out": 1})
        for share in SHARES
    )
    return StudyTable(
        name=name,
        paper=f"{PAPER}, tables 1, 3, 4 and 5, figure 3",
        about=f"{data}, nine objectives: accuracy, calibration, R2, CKA, transfer to {elsewhere} and to three classes held out",
        minutes=minutes,
        reduced=f"a small network instead of All-CNN-C, {epochs} epochs, three replicates of 25; parameters published for ten "
        "classes, learning rates 1, 0.3 and 0.1 times the published ones, chosen on validation rows",
        pieces=(*whole, *part),
        measures=("accuracy", "top5", "nll", "ece"),
        further=Analysed(data, elsewhere),
    )


TABLES: tuple[PaperTable, ...] = (
    _nine("kornblith-fashion", "fashion-mnist", 8, "mnist", 70),
    _nine("kornblith-cifar-10", "cifar-10", 7, "fashion-mnist", 70),
)
