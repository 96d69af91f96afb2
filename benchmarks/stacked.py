"""Throughput of stacked training beside a plain loop: ``python -m benchmarks.stacked``.

Thirty-two runs (four losses, eight seeds) of the small network 64-128-128-10 on the digits, with everything that belongs to an
epoch: batches, steps, and predictions for all three splits. The plain loop trains one run after another, of one seed, with a
module, an optimiser of torch and the loss. All take turns; each figure is from the fastest of their rounds.
"""

import argparse
import time
from collections.abc import Callable

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from benchmarks.measure import machine, markdown_table
from lossmith import make_loss, make_objective
from lossmith.data.prepared import PreparedData
from lossmith.training.job import Job
from lossmith.training.recipe import Recipe, Run
from lossmith.training.workers import train_all

LOSSES = ("ce", "gce", "focal", "mae")
SEEDS = 8


def digits() -> PreparedData:
    """Return the digits in three splits."""
    inputs, labels = load_digits(return_X_y=True)
    rows = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    features = torch.tensor(inputs / 16, dtype=torch.float32)
    return PreparedData("digits", features, torch.tensor(labels), tuple("0123456789"), rows[:1200], rows[1200:1400], rows[1400:])


def jobs(data: PreparedData) -> list[Job]:
    """Return the runs."""
    labels = data.labels[data.train], data.labels[data.validation]
    return [Job(Run(loss, "none", seed, 0.1), make_objective(loss), *labels) for loss in LOSSES for seed in range(SEEDS)]


def plain_loop(data: PreparedData, recipe: Recipe) -> int:
    """Train one run after another, and return how many."""
    for expression in LOSSES:
        plain_run(expression, data, recipe)
    return len(LOSSES)


def plain_run(expression: str, data: PreparedData, recipe: Recipe) -> None:
    """Train as anybody would."""
    train, target = data.inputs[data.train], data.labels[data.train]
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, recipe.epochs)
    loss = make_loss(expression)
    for _ in range(recipe.epochs):
        for rows in torch.randperm(len(train)).split(recipe.batch_size):
            optimizer.zero_grad()
            loss(model(train[rows]), target[rows]).backward()
            optimizer.step()
        schedule.step()
        _accuracies(model, data)


@torch.no_grad()
def _accuracies(model: nn.Module, data: PreparedData) -> list[Tensor]:
    splits = (data.train, data.validation, data.test)
    return [(model(data.inputs[rows]).argmax(1) == data.labels[rows]).float().mean() for rows in splits]


def stacks_here(data: PreparedData, recipe: Recipe) -> int:
    """Train all runs in stacks, one after another, in this process."""
    return len(list(train_all(jobs(data), data, recipe, workers=1)))


def stacks_in_workers(data: PreparedData, recipe: Recipe) -> int:
    """Train all runs in stacks, by one worker process for each processor."""
    return len(list(train_all(jobs(data), data, recipe)))


CANDIDATES: dict[str, Callable[[PreparedData, Recipe], int]] = {
    "plain loop": plain_loop,
    "stacks, one process": stacks_here,
    "stacks, a worker for each processor": stacks_in_workers,
}


def throughput(data: PreparedData, recipe: Recipe, rounds: int) -> dict[str, float]:
    """Return the steps per second of each candidate, of all its runs."""
    steps = recipe.epochs * (len(data.train) // recipe.batch_size)
    best = dict.fromkeys(CANDIDATES, 0.0)
    for _ in range(rounds):
        for name, candidate in CANDIDATES.items():
            start = time.perf_counter()
            runs = candidate(data, recipe)
            best[name] = max(best[name], runs * steps / (time.perf_counter() - start))
    return best


def main() -> None:
    """Measure everything and print it as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)  # the network is too small for two, in the plain loop, too
    data = digits()
    figures = {
        64: throughput(data, Recipe(epochs=12, batch_size=64), options.rounds),
        8: throughput(data, Recipe(epochs=8, batch_size=8), options.rounds),
    }
    rows = [
        [
            name,
            *(cell for best in figures.values() for cell in (f"{best[name]:,.0f}", f"{best[name] / best['plain loop']:.1f} x")),
        ]
        for name in CANDIDATES
    ]
    header = ["", *(cell for size in figures for cell in (f"steps/s, batch {size}", "of the plain loop"))]
    print(f"{machine()}\n\n{markdown_table(header, rows)}")


if __name__ == "__main__":
    main()
