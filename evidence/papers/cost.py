"""What the tables of images cost: ``python -m evidence.papers.cost`` measures epochs in small, and counts.

An epoch is a study's: steps, and predictions for all rows of all splits, here of random images, a twentieth or so of the
real number in the same proportions. Times are those of the thread on its processor, so that a busy machine does not matter.
"""

import time
from typing import NamedTuple

import torch

from benchmarks.measure import markdown_table
from evidence.papers.__main__ import TABLES
from lossmith import make_objective
from lossmith.data.prepared import PreparedData
from lossmith.training.job import Job
from lossmith.training.loop import Training
from lossmith.training.recipe import Recipe, Run

__all__ = ["main"]


class Case(NamedTuple):
    """A study of a table, in small."""

    model: str
    shape: tuple[int, ...]
    classes: int
    batch_size: int
    rows: tuple[int, int, int]
    """Of training, validation and test."""
    together: int
    """Runs that train as one."""
    precision: str = "bfloat16"
    loss: str = "ce"


CASES = {
    "amid-mnist": [Case("cnn", (1, 28, 28), 10, 128, (6000, 1200, 10_000), 1)],
    "staats-fashion": [Case("mlp1024", (1, 28, 28), 10, 32, (8000, 1800, 10_000), 4)],
    "staats-many-classes": [
        Case("mlp", (1, 14, 28), 100, 64, (18_000, 2000, 10_000), 8, "float32", "gce"),
        Case("mlp", (1, 14, 42), 1000, 128, (27_000, 3000, 10_000), 8, "float32", "gce"),
    ],
    "staats-cifar-10n": [Case("small-cnn", (3, 32, 32), 10, 128, (20_000, 2500, 10_000), 1)],
    "kornblith-fashion": [Case("small-cnn", (1, 28, 28), 10, 128, (54_000, 6000, 10_000), 1)],
    "kornblith-cifar-10": [Case("small-cnn", (3, 32, 32), 10, 128, (45_000, 5000, 10_000), 1)],
    "berrada-noise": [Case("small-cnn", (1, 14, 28), 100, 64, (18_000, 2000, 10_000), 1, loss="smooth-topk(k=5, tau=0.1)")],
}
SMALLER = 20


def epoch_seconds(case: Case) -> float:
    """Return the seconds of one core that an epoch of one run takes."""
    sizes = [max(case.batch_size, size // SMALLER) for size in case.rows]
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randn(sum(sizes), *case.shape, generator=draw)
    labels = torch.randint(case.classes, (sum(sizes),), generator=draw)
    splits = torch.arange(sum(sizes)).split(sizes)
    data = PreparedData("random images", inputs, labels, tuple(map(str, range(case.classes))), *splits)
    jobs = [
        Job(Run(case.loss, "none", seed, 0.001), make_objective(case.loss), labels[data.train], labels[data.validation])
        for seed in range(case.together)
    ]
    recipe = Recipe(model=case.model, epochs=100, batch_size=case.batch_size, precision=case.precision)
    training = Training(jobs, data, recipe, None, None, inputs=data.inputs)
    training.run_epochs(1, 1)  # nobody is fast at first
    start = time.thread_time()
    training.run_epochs(2, 2)
    return (time.thread_time() - start) / case.together * sum(case.rows) / sum(sizes)


def main() -> None:
    """Measure every case, and print what the table costs on two cores."""
    torch.set_num_threads(1)
    lines = []
    for name, cases in CASES.items():
        pieces = getattr(TABLES[name], "pieces", ())
        for case in cases:
            wanted = [piece for piece in pieces if len(cases) == 1 or piece.name.startswith(f"{case.classes}-")]
            epochs = sum(
                len(p.settings["losses"]) * len(p.settings["noise"]) * p.settings["seeds"] * p.settings["epochs"] for p in wanted
            )
            each = epoch_seconds(case)
            lines.append([name, case.model, str(epochs), f"{each:.2f} s", f"{epochs * each / 120:.0f}"])
            print(*lines[-1], flush=True)
    print(markdown_table(["table", "network", "epochs in all", "an epoch, one core", "minutes of two cores"], lines))


if __name__ == "__main__":
    main()
