"""Images at full size, losses beside rivals: ``python -m evidence.images``.

Fashion-MNIST with all its rows and its own test split: ``small-cnn`` with cross-entropy and robust losses, with 0, 20 and 40 %
wrong labels, and an RBF-SVM on 20,000 of the rows, more than the references of a study see. ``--set cifar-10`` does the same with
``pooled-cnn``, at the cost that is printed first; ``--epochs`` makes a shorter study of its own, as under many noises time asks
for. What has been trained is not trained again.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from benchmarks.measure import markdown_table
from evidence.studies import be_nice, export, write_settings
from lossmith import compare
from lossmith.data import make_noise
from lossmith.studies import Study, open_study

__all__ = ["SETS", "main", "summary"]

LOSSES, NOISE = ("ce", "gce"), (0.0, 0.2, 0.4)
SETS: Mapping[str, Mapping[str, Any]] = {
    "fashion-mnist": {"model": "small-cnn", "epochs": 12, "rates": (0.1,), "decays": (5e-4,), "augment": "flip"},
    "cifar-10": {
        "model": "pooled-cnn",
        "epochs": 10,
        "validation_share": 0.02,  # nothing is chosen by it
        "batch_size": 256,
        "rates": (0.25,),
        "decays": (1.3e-3,),
        "schedule": "warmup-cosine(0.2)",
        "augment": "crop,flip",
        "precision": "bfloat16",
    },
}
"""How each set is trained; everything else is as a study has it. Settings of CIFAR-10 follow Jordan 2024, scaled to the batch."""
COSTS = {
    "fashion-mnist": "about 15 minutes of two cores, and 20 of one for the SVM",
    "cifar-10": "about 45 minutes of one core with --losses ce --noise 0 --replicates 1, and four hours of two for all",
}
"""Of two replicates, on a processor with bfloat16."""
SVM_ROWS = 20_000
RIVAL = f"RBF-SVM, {SVM_ROWS:,} rows"
COMPONENTS = 80
STRENGTHS = (3.0, 30.0)
"""Values of C, of which the better one on validation rows counts."""


def _name(options: argparse.Namespace) -> str:
    return f"{options.set}-{options.epochs}-epochs" if options.epochs else str(options.set)


def _study(name: str, options: argparse.Namespace) -> Study | None:
    """Return the study of a set: as it is where it is finished, trained further where it is not."""
    folder = options.folder / "images" / _name(options)
    if folder.exists() and not (found := open_study(folder)).unfinished:
        return found
    if options.no_training:
        return None
    noise = [float(rate) for rate in options.noise.split(",")]
    chosen = {"losses": options.losses.split(","), "noise": noise, "seeds": options.replicates, **SETS[name]}
    chosen |= {"epochs": options.epochs} if options.epochs else {}
    own = {"output": folder, "workers": options.workers, "progress": sys.stderr.isatty()}
    return compare(name, train_rows=options.train_rows or 10**6, minutes=10**5, **own, **chosen)


def _rivals(study: Study, known: pd.DataFrame, rows: int) -> Iterator[dict[str, Any]]:
    """Train an SVM on the rows of each replicate, under each noise that it has not been trained under."""
    done = set(known[["noise", "seed"]].itertuples(index=False, name=None))
    for seed in range(study.settings.seeds):
        data = study.load(seed)
        data = replace(data, train=data.train[:rows])
        pixels = data.inputs.flatten(1)
        reduced = PCA(COMPONENTS, random_state=seed).fit(pixels[data.train[:10_000]])
        train, validation, test = (reduced.transform(pixels[rows]) for rows in (data.train, data.validation, data.test))
        for noise in study.settings.noise:
            if (noise, seed) in done:
                continue
            labels, kept = (make_noise(noise).corrupt(data, rows, seed).numpy() for rows in (data.train, data.validation))
            models = [SVC(C=strength, gamma=1 / pixels.shape[1], cache_size=1000).fit(train, labels) for strength in STRENGTHS]
            best = max(models, key=lambda model: model.score(validation, kept))
            yield {"loss": RIVAL, "noise": noise, "seed": seed, "accuracy": best.score(test, data.labels[data.test].numpy())}


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of every loss and rival under every noise, in per cent, mean and standard error over replicates.

    Args:
        results: A row for each loss, or rival, noise and replicate.

    Returns:
        A row for each loss and rival, a column for each noise.
    """
    written = results.groupby(["loss", "noise"], sort=False)["accuracy"].agg(_written)
    return written.unstack().loc[results["loss"].unique(), results["noise"].unique()].reset_index()


def _written(accuracies: pd.Series) -> str:  # type: ignore[type-arg]
    mean = f"{100 * accuracies.mean():.1f}"
    return mean if len(accuracies) < 2 else f"{mean} +- {100 * accuracies.sem():.1f}"


def _results(study: Study) -> pd.DataFrame:
    references = study.references.rename(columns={"reference": "loss"})
    return pd.concat([study.results, references])[["loss", "noise", "seed", "accuracy"]]


def main() -> None:
    """Train what has not been trained, export all results and print them by noise."""
    options = _options()
    print(f"{options.set}: {COSTS[options.set]}", flush=True)
    be_nice()
    study = _study(options.set, options)
    if study is None:
        sys.exit(f"{options.set} has not been trained")
    folder = options.results / "images" / _name(options)
    file = folder / "rivals.csv"
    rivals = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=["loss", "noise", "seed", "accuracy"])
    for found in _rivals(study, rivals, options.train_rows or SVM_ROWS) if options.rivals and not options.no_training else ():
        rivals = pd.DataFrame([*rivals.to_dict("records"), found])
        export(rivals, file)
    results = pd.concat([_results(study), rivals])
    table = summary(results)
    export(results, folder / "results.csv")
    export(table, folder / "summary.csv")
    write_settings([study], folder / "settings.json", **{name: str(value) for name, value in SETS[options.set].items()})
    print(markdown_table(list(table.columns), table.to_numpy().tolist()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="fashion-mnist")
    parser.add_argument("--folder", type=Path, default=Path("studies/evidence"), help="of studies (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results", help="of the exported tables")
    parser.add_argument("--losses", default=",".join(LOSSES), help="the first is the baseline (default: %(default)s)")
    parser.add_argument("--noise", default=",".join(map(str, NOISE)), help="shares of wrong labels (default: %(default)s)")
    parser.add_argument("--replicates", type=int, default=2, help="of the study (default: %(default)s)")
    parser.add_argument("--epochs", type=int, help="train for another time than usual, as a study of its own")
    parser.add_argument("--train-rows", type=int, help="train on fewer rows, for a first look")
    parser.add_argument("--workers", type=int, help="processes that train (default: one for each processor)")
    parser.add_argument("--no-rivals", dest="rivals", action="store_false", help="no SVM beside the losses")
    parser.add_argument("--no-training", action="store_true", help="only what has been trained already")
    return parser.parse_args()


if __name__ == "__main__":
    main()
