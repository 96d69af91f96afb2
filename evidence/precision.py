"""Does bfloat16 change what is found? ``python -m evidence.precision``.

The same runs in single precision and in bfloat16, which differ in nothing else: model, loss, noise, seed, batches, learning
rate. What counts is the mean of their differences, beside how far runs of other seeds are from one another. Runs that have been
made are not made again.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats

from benchmarks.measure import markdown_table
from evidence.studies import be_nice, export
from lossmith import make_objective
from lossmith.data import PreparedData, load_data, make_noise
from lossmith.training.job import Job
from lossmith.training.recipe import Recipe, Run
from lossmith.training.stacks.arithmetic import PRECISIONS
from lossmith.training.workers import train_all

__all__ = ["main", "summary"]

DATA = "fashion-mnist"
BUDGETS = {"small-cnn": (2000, 6), "mlp1024": (2000, 6), "cnn": (2000, 6), "resnet20": (2000, 6)}
"""Training rows and epochs of each model."""
RATES = {"small-cnn": 0.05, "mlp1024": 0.02, "cnn": 0.02, "resnet20": 0.1}
LOSSES, NOISE = ("ce", "gce"), ("none", "symmetric(0.2)")
TEST_ROWS = 2000
KEY = ["model", "precision", "loss", "noise", "seed"]


def _rows_of(data: PreparedData, rows: int) -> PreparedData:
    return replace(data, train=data.train[:rows], validation=data.validation[:200], test=data.test[:TEST_ROWS])


def _jobs(data: PreparedData, rate: float, seeds: int) -> list[Job]:
    made = []
    for loss, noise, seed in product(LOSSES, NOISE, range(seeds)):
        kind = make_noise(noise)
        labels = [kind.corrupt(data, rows, seed) for rows in (data.train, data.validation)]
        made.append(Job(Run(loss, noise, seed, rate), make_objective(loss), *labels))
    return made


def _trained(recipe: Recipe, data: PreparedData, jobs: list[Job], workers: int | None) -> Iterator[dict[str, Any]]:
    for found in train_all(jobs, data, recipe, workers=workers):
        run = {"loss": found.run.loss, "noise": found.run.noise, "seed": found.run.seed}
        accuracy = found.curves["test_accuracy"][-1]
        yield {"model": recipe.model, "precision": recipe.precision, **run, "accuracy": accuracy, "seconds": found.seconds}


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Return for each model and noise the mean difference between precisions, in points, with its 95 % interval.

    Args:
        runs: One row for each run, with its accuracy and seconds.

    Returns:
        A row for each model and noise; ``seeds`` is the standard deviation over seeds in single precision.
    """
    pairs = runs.pivot_table(["accuracy", "seconds"], ["model", "noise", "loss", "seed"], "precision").dropna()
    lines = []
    for (model, noise), part in pairs.groupby(level=["model", "noise"], sort=False):
        single = part["accuracy", "float32"]
        difference = 100 * (part["accuracy", "bfloat16"] - single)
        half = stats.t.ppf(0.975, len(part) - 1) * difference.sem()
        spread = 100 * single.groupby(level="loss").std().mean()
        faster = part["seconds", "float32"].median() / part["seconds", "bfloat16"].median()
        mean = difference.mean()
        lines.append([model, noise, len(part), 100 * single.mean(), mean, mean - half, mean + half, spread, faster])
    header = ["model", "noise", "pairs", "accuracy", "difference", "low", "high", "seeds", "faster"]
    return pd.DataFrame(lines, columns=header)


def main() -> None:
    """Train what has not been trained, export it and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results", help="of the exported tables")
    parser.add_argument("--models", default=",".join(BUDGETS), help="separated by commas (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int, help="processes that train (default: one for each processor)")
    options = parser.parse_args()
    be_nice()
    file = options.results / "precision" / "runs.csv"
    runs = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=[*KEY, "accuracy", "seconds"])
    whole = load_data(DATA)
    for model, precision in product(options.models.split(","), PRECISIONS):
        rows, epochs = BUDGETS[model]
        data = _rows_of(whole, rows)
        done = set(runs[KEY].itertuples(index=False, name=None))
        jobs = [
            job
            for job in _jobs(data, RATES[model], options.seeds)
            if (model, precision, job.run.loss, job.run.noise, job.run.seed) not in done
        ]
        recipe = Recipe(model=model, epochs=epochs, batch_size=64, precision=precision)
        for found in _trained(recipe, data, jobs, options.workers):
            runs = pd.DataFrame([*runs.to_dict("records"), found])
            export(runs, file)
    table = summary(runs)
    export(table, options.results / "precision" / "summary.csv", 2)
    text = table.assign(**{name: table[name].map("{:.2f}".format) for name in table.columns[3:]}).astype(str)
    print(markdown_table(list(table.columns), text.to_numpy().tolist()))


if __name__ == "__main__":
    main()
