"""How well wrong labels are counted and found, on labels that were made wrong: ``python -m evidence.labels``.

A quarter of the rows, whose labels stay as they are, is set aside. Of the others a known share is made wrong, and predicted by
cross-validation: by the networks of ``lossmith inspect``, or, with ``--by classical``, by two models of scikit-learn, in less
time. CIFAR-10N has wrong labels that people gave, and a test of its own. Confident learning gets the probabilities of the first
model. This one is then trained on the labels as given, without those that are suspect, with these corrected, and with the true
ones, and judged on the rows set aside. None of these sets was looked at when the method was made. Every line is exported as soon
as it is there, and not made again.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import average_precision_score
from torch import Tensor

from benchmarks.measure import markdown_table
from evidence.label_models import Classical, Models, Networks
from evidence.studies import export
from lossmith.analysis import confident_suspects
from lossmith.data import PreparedData, load_data, make_noise
from lossmith.studies.design.stratified_rows import stratified_rows
from lossmith.studies.design.suitable_model import suitable_model
from lossmith.studies.labels.cross_validation import FOLDS
from lossmith.studies.labels.inspection import LabelInspection

__all__ = ["inspected", "main", "summary"]

SETS: Mapping[str, str] = {
    **dict.fromkeys(("keel:penbased", "keel:texture", "keel:spambase", "keel:phoneme"), "auto"),
    "bbc-news": "auto",
    "fashion-mnist": "mlp",  # a convolutional network would take as long as all others together
    **dict.fromkeys(("cifar-10n:aggregate", "cifar-10n:worst"), "small-cnn"),
}
"""The data, and the network that it is inspected with."""
NOISE = ("symmetric(0.05)", "symmetric(0.2)", "symmetric(0.4)", "pair(0.2)", "instance(0.2)")
BY_PEOPLE = "as people labelled"
"""The noise of data whose labels are wrong already, and known to be."""
ROWS = 1000
MORE_ROWS: Mapping[str, int] = dict.fromkeys(("cifar-10n:aggregate", "cifar-10n:worst"), 10_000)
"""Of photographs, which a network learns nothing from a thousand of. With fewer rows than there are the test is the set's own."""
SEED = 1
NEAR = 0.03
"""An estimate that is as near to the truth is counted as right."""


def inspected(data: PreparedData, noise: str, models: Models) -> dict[str, float]:
    """Make labels wrong, inspect them, and train on what is left.

    Args:
        data: With a test split whose labels are right.
        noise: What is made wrong, and how.
        models: What predicts.

    Returns:
        Shares of wrong labels, areas under precision and recall, and accuracies, by name.
    """
    rows, given = data.train, data.labels[data.train]
    truth = given if data.true_labels is None else data.true_labels[rows]
    labels = given if noise == BY_PEOPLE else make_noise(noise).corrupt(data, rows, SEED)
    found = LabelInspection(data, rows.numpy(), labels.numpy(), models.probabilities(data, labels, SEED), "", FOLDS)
    is_wrong = (labels != truth).numpy()
    chances = found.ranked.set_index("row")["chance"].loc[rows.numpy()].to_numpy()
    published = confident_suspects(next(iter(found.by_loss.values())), labels.numpy())
    variants = _variants(data, found, labels, published) | {"true": (torch.ones(len(truth), dtype=torch.bool), truth)}
    return {
        "wrong": float(is_wrong.mean()),
        "estimate": found.estimate.rate,
        "low": found.estimate.interval[0],
        "high": found.estimate.interval[1],
        "confident": found.confident_rate,
        "area": float(average_precision_score(is_wrong, chances)),
        "confident_area": float(average_precision_score(is_wrong, published)),
        **{name: models.accuracy(data, kept, given, SEED) for name, (kept, given) in variants.items()},
    }


def _variants(
    data: PreparedData, found: LabelInspection, labels: Tensor, published: np.ndarray
) -> dict[str, tuple[Tensor, Tensor]]:
    """Return which training rows are kept, and their labels: as given, without suspects, and with these corrected."""
    suspects = found.suspects.set_index("row")["probably"]
    numbers = {name: number for number, name in enumerate(data.classes)}
    corrected, is_sound = labels.clone(), torch.ones(len(labels), dtype=torch.bool)
    for place, row in enumerate(data.train.tolist()):
        if row in suspects.index:
            corrected[place], is_sound[place] = numbers[suspects[row]], False
    is_confident = torch.ones(len(labels), dtype=torch.bool)
    most_suspect = np.argsort(-published, kind="stable")[: round(found.confident_rate * len(labels))]
    is_confident[torch.from_numpy(most_suspect.copy())] = False
    every = torch.ones(len(labels), dtype=torch.bool)
    return {
        "given": (every, labels),
        "removed": (is_sound, labels),
        "corrected": (every, corrected),
        "confident_removed": (is_confident, labels),
    }


@lru_cache(maxsize=1)
def _loaded(name: str, folder: Path | None) -> PreparedData:
    """Return at most so many rows of a set, of which a quarter is for the test."""
    most = MORE_ROWS.get(name, ROWS)
    whole = name == "fashion-mnist" or name in MORE_ROWS
    data = load_data(name, folder=folder, rows=None if whole else most, test_share=0.25, validation_share=0.0)
    none = data.train[:0]
    train = stratified_rows(data, torch.cat([data.train, data.validation]).sort().values, most * 3 // 4, SEED)
    return replace(data, train=train, validation=none, test=stratified_rows(data, data.test, most, SEED))


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return means over all sets, by noise.

    Args:
        found: A line for each set and noise.

    Returns:
        Errors of the estimated shares in points, how many are within three, areas, and accuracies.
    """
    errors = {name: (found[name] - found["wrong"]).abs() for name in ("estimate", "confident")}
    columns = {
        **{f"error of the {name}": 100 * error for name, error in errors.items()},
        **{f"{name} within 3": 100.0 * (error <= NEAR) for name, error in errors.items()},
        "in the interval": 100.0 * found["wrong"].between(found["low"], found["high"]),
        **{name: found[name] for name in ("area", "confident_area")},
        **{name: 100 * found[name] for name in ("given", "removed", "corrected", "confident_removed", "true")},
    }
    table = pd.DataFrame(columns).assign(noise=found["noise"])
    means = table.groupby("noise", sort=False).mean()
    means.loc["all"] = table.drop(columns="noise").mean()
    return means


def _missing(done: pd.DataFrame, by: str, sets: list[str], noise: list[str]) -> Iterator[tuple[str, str]]:
    there = set(zip(done["by"], done["set"], done["noise"], strict=True)) if len(done) else set()
    for name in sets:
        kinds = [BY_PEOPLE] if name.startswith("cifar-10n") else noise
        yield from ((name, kind) for kind in kinds if (by, name, kind) not in there)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--results", type=Path, default=Path(__file__).parent / "results" / "labels", help="of the exported table"
    )
    parser.add_argument("--data", type=Path, help="where packages of data are, if they are not installed")
    parser.add_argument("--only", default=";".join(SETS), help="sets, separated by semicolons (default: %(default)s)")
    parser.add_argument("--noise", default=";".join(NOISE), help="kinds of noise, likewise (default: %(default)s)")
    parser.add_argument(
        "--by", choices=("networks", "classical"), default="networks", help="what predicts (default: %(default)s)"
    )
    parser.add_argument("--no-training", action="store_true", help="only print what is there")
    return parser.parse_args()


def main() -> None:
    """Inspect every set under every noise, export each line, and print the means."""
    options = _options()
    file = options.results / "inspected.csv"
    done = pd.read_csv(file) if file.is_file() else pd.DataFrame()
    wanted = _missing(done, options.by, options.only.split(";"), options.noise.split(";"))
    for name, noise in [] if options.no_training else wanted:
        data = _loaded(name, options.data)
        network = suitable_model(data) if SETS.get(name, "auto") == "auto" else SETS[name]
        models = Networks(network) if options.by == "networks" else Classical()
        about = {"by": options.by, "set": name, "noise": noise, "rows": len(data.train), "classes": data.num_classes}
        line = pd.DataFrame([{**about, **inspected(data, noise, models)}])
        done = pd.concat([done, line], ignore_index=True)
        export(done, file)
        print(line.round(3).to_string(index=False, header=False), flush=True)
    for by, lines in done.groupby("by", sort=False):
        means = summary(lines)
        written = [
            [str(name), *(f"{value:.2f}" if value < 1 else f"{value:.1f}" for value in row)] for name, row in means.iterrows()
        ]
        print(f"{by}, {lines['set'].nunique()} sets, {len(lines)} lines")
        print(markdown_table(["noise", *means.columns], written))


if __name__ == "__main__":
    main()
