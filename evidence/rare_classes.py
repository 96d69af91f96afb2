"""Losses for rare classes on data whose classes are uneven: ``python -m evidence.rare_classes``.

Long-tailed Fashion-MNIST and CIFAR-10, 6000 and 10,000 rows cut to a ratio of 1 to 50 and tested on their own 10,000 test rows,
with a small network; and six uneven KEEL tables of up to 1750 rows, each of another origin, with 25 rare rows at least. Settings
are tuned alike, on rows as uneven as those in training, by balanced accuracy. Cross-entropy with class weights is a study of its
own on the same replicates. What has been trained is not trained again. A table takes some minutes of one core.
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measure import markdown_table
from evidence.studies import export, write_settings
from evidence.tables import TARGET, file_of, made_table
from lossmith import compare
from lossmith.studies import Study, open_study

__all__ = ["PUBLISHED", "differences", "main", "over_tables"]

LOSSES = ("ce", "focal", "poly", "balanced-softmax", "ldam", "ldam-drw")
WEIGHTS = {"ce, balanced weights": "balanced", "ce, effective weights": "effective(0.999)"}
TABLES = (
    *("keel:abalone-19_vs_10-11-12-13", "keel:kr-vs-k-zero_vs_eight", "keel:winequality-white-3-9_vs_5"),
    *("keel:yeast6", "keel:car-vgood", "keel:flare-F"),
)
MOST_ROWS = 1750
LONG_TAIL: Mapping[str, Any] = {"imbalance": 0.02, "model": "small-cnn", "trials": 2}
IMAGES: Mapping[str, Mapping[str, Any]] = {
    "fashion-mnist": {**LONG_TAIL, "rows": 6000, "epochs": 8, "augment": "none"},
    "cifar-10": {**LONG_TAIL, "rows": 10_000, "epochs": 12, "augment": "crop,flip"},
}
OF_TABLES: Mapping[str, Any] = {"trials": 3, "model": "mlp", "epochs": 20, "batch_size": 64}
PUBLISHED = (
    ("ce", 70.4, "Cao et al. 2019, table 2: CIFAR-10, ratio 100, ResNet-32, top-1 error 29.64"),
    ("ldam-drw", 77.0, "the same, top-1 error 22.97"),
    ("ce", 77.5, "README of logit adjustment in mmpretrain: CIFAR-10, ratio 100, ResNet-34"),
    ("logit-adjusted(ce)", 80.3, "the same, loss adjustment"),
)
"""Accuracy in per cent on balanced test rows, as others report it; no other figure stands for an order here."""


def _studies(options: argparse.Namespace) -> Iterator[tuple[str, str, Study]]:
    """Return every study with its data and how classes are weighted, trained as far as it has to be."""
    for name, source, how in _sources(options):
        for weighted, weight in {"": "none", **WEIGHTS}.items():
            losses = ("ce",) if weighted else LOSSES
            folder = options.folder / "rare_classes" / f"{name}-{weight.partition('(')[0]}"
            found = open_study(folder) if folder.exists() else None
            if (found is None or found.unfinished) and not options.no_training:
                own = {"output": folder, "workers": options.workers, "progress": False, "references": False, "minutes": 10**5}
                common = {"noise": 0, "metric": "balanced-accuracy", "class_weight": weight, "seeds": _replicates(name, options)}
                found = compare(source, losses=losses, train_rows=10**6, **own, **common, **how)
            if found is not None and not found.unfinished:
                yield name, weighted, found


def _sources(options: argparse.Namespace) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    wanted = options.only.split(",") if options.only else None
    for name in TABLES:
        file = file_of(name, options.folder / "rare_tables")
        if wanted is None or file.stem in wanted:
            made_table(name, file, options.keel, MOST_ROWS)
            yield file.stem, file, {"target": TARGET, **OF_TABLES}
    for name, how in IMAGES.items():
        if wanted is None or name in wanted:
            yield name, name, how


def _replicates(name: str, options: argparse.Namespace) -> int:
    return int(options.replicates if name not in IMAGES else min(3, options.replicates))


def _results(name: str, weighted: str, study: Study) -> pd.DataFrame:
    groups = study.accuracy_by_frequency()
    rows = study.results.assign(data=name, loss=weighted or study.results["loss"])
    rows = rows[["data", "loss", "seed", "balanced_accuracy", "accuracy", "macro_f1"]].assign(**_about(name, study))
    few = {weighted or str(loss): groups.loc[loss, ("few", "mean")] for loss in groups.index}
    return rows.assign(few=rows["loss"].map(few))


def _about(name: str, study: Study) -> dict[str, Any]:
    """Return what the map of losses wants to know of a data set."""
    data = study.load(0)
    counts = np.bincount(data.labels[data.train].numpy(), minlength=data.num_classes)
    kind = "image" if name in IMAGES else "table"
    return {"kind": kind, "rows": len(data.train), "classes": data.num_classes, "imbalance": counts.min() / counts.max()}


def differences(results: pd.DataFrame, baseline: str = "ce") -> pd.DataFrame:
    """Return how far each loss is ahead of the baseline by balanced accuracy, in points, on each data set.

    Args:
        results: A row for each data set, loss and replicate.
        baseline: What others are compared with.

    Returns:
        A row for each loss, a column for each data set: the mean over replicates.

    >>> rows = [("a", "ce", 0, 0.5), ("a", "x", 0, 0.6), ("a", "ce", 1, 0.5), ("a", "x", 1, 0.7)]
    >>> differences(pd.DataFrame(rows, columns=["data", "loss", "seed", "balanced_accuracy"])).round(1).to_dict()
    {'a': {'x': 15.0}}
    """
    means = 100 * results.groupby(["loss", "data"], sort=False)["balanced_accuracy"].mean().unstack()
    return (means - means.loc[baseline]).drop(index=baseline)


def over_tables(results: pd.DataFrame, baseline: str = "ce") -> pd.DataFrame:
    """Return, over data sets, how far ahead of the baseline each loss is, and on how many of them.

    Args:
        results: A row for each data set, loss and replicate.
        baseline: What others are compared with.

    Returns:
        A row for each loss, the best first.
    """
    lead = differences(results, baseline)
    counts = {"mean": lead.mean(axis=1), "median": lead.median(axis=1), "ahead": (lead > 0).sum(axis=1)}
    found = pd.DataFrame({**counts, "behind": (lead < 0).sum(axis=1), "data sets": lead.notna().sum(axis=1)})
    return found.sort_values("mean", ascending=False).reset_index()


def _table(results: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return mean and standard error of each loss on one data set, in per cent, the best first."""
    own = results[results["data"] == name].groupby("loss", sort=False)
    written = pd.DataFrame({measure: own[measure].agg(_written) for measure in ("balanced_accuracy", "few", "accuracy")})
    return written.loc[own["balanced_accuracy"].mean().sort_values(ascending=False).index].reset_index()


def _written(values: "pd.Series[float]") -> str:
    mean = f"{100 * values.mean():.1f}"
    return mean if len(values) < 2 or np.ptp(values) == 0 else f"{mean} +- {100 * values.sem():.1f}"


def main() -> None:
    """Train what has not been trained, export all results and print them beside published orders."""
    options = _options()
    found = list(_studies(options))
    if not found:
        raise SystemExit("nothing has been trained")
    results = pd.concat([_results(*each) for each in found], ignore_index=True)
    folder = options.results / "rare_classes"
    export(results, folder / "results.csv")
    write_settings([study for *_, study in found], folder / "settings.json")
    tables = results[~results["data"].isin(IMAGES)]
    shown = {"tables": over_tables(tables) if len(tables) else tables, **{name: _table(results, name) for name in IMAGES}}
    for name, table in shown.items():
        if len(table):
            export(table, folder / f"{name}.csv", digits=2)
            print(f"\n{name}\n\n{markdown_table(list(table.columns), table.round(1).astype(str).to_numpy().tolist())}")
    print(f"\npublished\n\n{markdown_table(['loss', 'accuracy', 'where'], [[a, str(b), c] for a, b, c in PUBLISHED])}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("studies/evidence"), help="of studies (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results", help="of the exported tables")
    parser.add_argument("--keel", type=Path, help="where the package of the KEEL sets is, if it is not installed")
    parser.add_argument("--only", help="data sets, separated by commas (default: all)")
    parser.add_argument("--replicates", type=int, default=5, help="of a table; of images, three (default: %(default)s)")
    parser.add_argument("--workers", type=int, help="processes that train (default: one for each processor)")
    parser.add_argument("--no-training", action="store_true", help="only what has been trained already")
    return parser.parse_args()


if __name__ == "__main__":
    main()
