"""Large networks, which fill a processor each, beside a plain loop: ``python -m benchmarks.convolutions``.

A plain loop is a module, an optimiser of torch and the loss, in single precision and with torch's usual order in memory. All
train on batches of 128 of the same random images with one thread and take turns. A step is one of an epoch's; a whole epoch has
the predictions for all three splits besides. Times are those of the thread on its processor, each the median of the rounds.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.measure import machine, markdown_table
from lossmith import make_objective
from lossmith.data.prepared import PreparedData
from lossmith.training.job import Job
from lossmith.training.loop import Training
from lossmith.training.models.named_models import make_backbone
from lossmith.training.recipe import Recipe, Run
from lossmith.training.stacks.arithmetic import PRECISIONS

GREY, COLOUR = (1, 28, 28), (3, 32, 32)
MODELS = {"small-cnn": GREY, "cnn": GREY, "resnet20": COLOUR, "mlp1024": GREY}
BATCH = 128
STEPS = 6
CLASSES = 10
AT_ONCE = 512
"""Rows that the plain loop predicts at once."""


class Candidate(NamedTuple):
    """One way to train, for an epoch at a time."""

    steps: Callable[[], object]
    epoch: Callable[[], object]
    """The same, and predictions for all splits."""


def random_images(shape: tuple[int, ...]) -> PreparedData:
    """Return images in three splits, of sizes that are to one another as those of Fashion-MNIST."""
    train = STEPS * BATCH
    rows = torch.arange(train * 70 // 51)
    draw = torch.Generator().manual_seed(0)
    inputs, labels = torch.randn(len(rows), *shape, generator=draw), torch.randint(CLASSES, rows.shape, generator=draw)
    validation = train * 60 // 51
    splits = rows[:train], rows[train:validation], rows[validation:]
    return PreparedData("random images", inputs, labels, tuple(map(str, range(CLASSES))), *splits)


def plain_loop(model: str, data: PreparedData) -> Candidate:
    """Train as anybody would."""
    backbone = make_backbone(model, data.input_shape)
    network = nn.Sequential(backbone, nn.Linear(int(backbone.out_features), CLASSES))  # type: ignore[arg-type]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, nesterov=True)

    def steps() -> None:
        network.train()
        for rows in data.train[torch.randperm(len(data.train))].split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(network(data.inputs[rows]), data.labels[rows]).backward()
            optimizer.step()

    def epoch() -> list[Tensor]:
        steps()
        network.eval()
        rows = torch.cat([data.train, data.validation, data.test])
        with torch.no_grad():
            return [network(data.inputs[part]).argmax(1) == data.labels[part] for part in rows.split(AT_ONCE)]

    return Candidate(steps, epoch)


def ours(model: str, data: PreparedData, precision: str) -> Candidate:
    """Train as a study does."""
    job = Job(Run("ce", "none", 0, 0.01), make_objective("ce"), data.labels[data.train], data.labels[data.validation])
    recipe = Recipe(model=model, epochs=1000, batch_size=BATCH, precision=precision)
    training = Training([job], data, recipe, None, None, inputs=data.inputs)
    return Candidate(lambda: training.train_epoch(1), lambda: training.run_epochs(1, 1))


def seconds(call: Callable[[], object]) -> float:
    """Return the time that a call takes, on the processor."""
    start = time.thread_time()
    call()
    return time.thread_time() - start


def measured(model: str, rounds: int) -> list[list[str]]:
    """Return the lines of a model: for each candidate its step and its epoch, and how much faster than the plain loop."""
    data = random_images(MODELS[model])
    candidates = {"plain loop": plain_loop(model, data)}
    candidates |= {f"lossmith, {precision}": ours(model, data, precision) for precision in PRECISIONS}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    for turn in range(rounds + 1):
        for name, candidate in candidates.items():
            both = seconds(candidate.steps), seconds(candidate.epoch)
            times[name] += [both] if turn else []  # nobody is fast at first
    found = {name: (median(step for step, _ in each), median(epoch for _, epoch in each)) for name, each in times.items()}
    plain = found["plain loop"]
    return [
        [
            model,
            name,
            f"{1e3 * step / STEPS:.1f} ms",
            f"{plain[0] / step:.1f} x",
            f"{1e3 * epoch:.0f} ms",
            f"{plain[1] / epoch:.1f} x",
        ]
        for name, (step, epoch) in found.items()
    ]


def main() -> None:
    """Measure everything and print it as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--models", default=",".join(MODELS), help="separated by commas (default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [line for model in options.models.split(",") for line in measured(model, options.rounds)]
    header = ["model", "", "a step", "", f"an epoch of {STEPS} steps", ""]
    print(f"{machine()}\n\n{markdown_table(header, lines)}")


if __name__ == "__main__":
    main()
