"""Train a small convolutional network on Fashion-MNIST with nine objectives and measure how far each keeps the classes apart.

Tables 3 and 4 of Kornblith et al. 2021 in small. Every run that is done is kept in ``--output`` and not trained again:
``python examples/fashion_separation.py --seeds 3``.
"""

import argparse
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from digits_analysis import outputs
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

import lossmith
from lossmith.analysis import RunOutputs, by_loss, calibration_table, separation_table

OBJECTIVES = {
    "softmax": 0.1,
    "label-smoothing(alpha=0.3)": 0.1,
    "dropout(keep=0.65)": 0.1,
    "extra-l2(1e-2)": 0.1,
    "logit-penalty(beta=0.01)": 0.1,
    "logit-norm(tau=0.4)": 0.1,
    "cosine-softmax(tau=0.2)": 0.1,
    "sigmoid": 0.1,
    "squared-error": 0.3,
    "label-smoothing(alpha=0.1)": 0.1,
    "logit-norm(tau=0.04)": 0.1,
    "cosine-softmax(tau=0.05)": 0.1,
}
"""With the largest learning rate of each. The last three have the parameters published for a thousand classes."""
WIDTH = 64


class Settings(NamedTuple):
    """What all runs share."""

    rows: int
    epochs: int
    folder: Path


def backbone() -> nn.Sequential:
    """Return four convolutions and an average over what they see."""
    layers: list[nn.Module] = []
    channels = 1
    for width, stride in ((16, 2), (32, 1), (WIDTH, 2), (WIDTH, 1)):
        layers += [nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.ReLU())


def train(expression: str, seed: int, epochs: int, images: Tensor, labels: Tensor) -> tuple[nn.Module, nn.Module]:
    """Return a network trained with one cycle of the learning rate, and its loss."""
    torch.manual_seed(seed)
    model, loss, groups = lossmith.make_objective(expression).build(
        backbone(), num_classes=10, in_features=WIDTH, weight_decay=1e-4
    )
    optimizer = torch.optim.SGD(groups, lr=OBJECTIVES[expression], momentum=0.9, nesterov=True)
    steps = epochs * -(-len(images) // 64)
    rates = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, OBJECTIVES[expression], total_steps=steps, pct_start=0.1, cycle_momentum=False
    )
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            loss(model(images[batch]), labels[batch]).backward()
            optimizer.step()
            rates.step()
    return model, loss


def run(job: tuple[str, int], settings: Settings) -> Path:
    """Train unless that was done before; return the file with the outputs for training and test images."""
    expression, seed = job
    path = settings.folder / f"{re.sub('[^a-z0-9.]+', '-', expression)}_{settings.rows}_{settings.epochs}_{seed}.npz"
    if not path.exists():
        torch.set_num_threads(1)
        data = lossmith.load_data("fashion-mnist", rows=settings.rows)
        model, loss = train(expression, seed, settings.epochs, data.inputs[data.train], data.labels[data.train])
        put_out = partial(outputs, model, loss, expression, seed)
        trained, tested = put_out(data.inputs[data.train]), put_out(data.inputs[data.test])
        own = {} if tested.probabilities is None else {"probabilities": tested.probabilities}
        unfinished = path.with_suffix(".part")
        with unfinished.open("wb") as file:
            np.savez(file, trained=trained.logits, features=trained.features, tested=tested.logits, **own)
        unfinished.rename(path)
    return path


def read(job: tuple[str, int], path: Path) -> tuple[RunOutputs, RunOutputs]:
    """Return what a run put out for training and test images."""
    with np.load(path) as kept:
        trained = RunOutputs(*job, kept["trained"], kept["features"])
        return trained, RunOutputs(*job, kept["tested"], probabilities=kept.get("probabilities"))


def accuracy_of(labels: Tensor) -> Callable[[RunOutputs], float]:
    """Return a measure of how many labels a run predicts."""
    return lambda run: float(np.mean(run.logits.argmax(1) == labels.numpy()))


def main() -> None:
    """Train what is not trained yet, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--rows", type=int, default=7000, help="images in all, a seventh of them for testing (default: 7000)")
    parser.add_argument("--workers", type=int, default=2, help="processes that train at the same time (default: 2)")
    parser.add_argument("--output", type=Path, default=Path("studies/fashion-separation"))
    arguments = parser.parse_args()
    settings = Settings(arguments.rows, arguments.epochs, arguments.output)
    settings.folder.mkdir(parents=True, exist_ok=True)
    jobs = [(expression, seed) for seed in range(arguments.seeds) for expression in OBJECTIVES]
    with ProcessPoolExecutor(arguments.workers) as workers:
        paths = list(track(workers.map(partial(run, settings=settings), jobs), "runs", len(jobs), console=Console(stderr=True)))

    data = lossmith.load_data("fashion-mnist", rows=settings.rows)
    labels, test_labels = data.labels[data.train], data.labels[data.test]
    print(f"{len(labels)} training and {len(test_labels)} test images, {settings.epochs} epochs, {arguments.seeds} seeds\n")
    runs = {f"{expression} {seed}": read((expression, seed), path) for (expression, seed), path in zip(jobs, paths, strict=True)}
    trained = {name: both[0] for name, both in runs.items()}
    tested = {name: both[1] for name, both in runs.items()}
    on_training, on_test = accuracy_of(labels), accuracy_of(test_labels)
    accuracies = by_loss((ours.loss, {"training": on_training(ours), "test": on_test(theirs)}) for ours, theirs in runs.values())
    for table in (accuracies, separation_table(trained, labels), calibration_table(tested, test_labels)):
        print(table.loc[list(OBJECTIVES)].round(4).to_string(), end="\n\n")


if __name__ == "__main__":
    main()
