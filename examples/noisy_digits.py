"""Train a small network on handwritten digits of which 40 % carry a wrong label, under several losses.

Prints a table of the accuracy on clean test labels and saves a figure of how it develops: ``python examples/noisy_digits.py``.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from tqdm import tqdm

import lossmith

mpl.use("Agg")
import matplotlib.pyplot as plt

LOSSES = ("ce", "focal", "ce-el", "sce", "gce", "mae", "logit-bias(mae, epsilon=0.5)", "nce-mae")
NOISE = 0.4
BATCH = 64
# nce-mae has gradients some twenty times those of the others.
LEARNING_RATE = {"nce-mae": 0.005}


class Digits(NamedTuple):
    """Training and test images; ``given`` are the training labels as the network sees them."""

    images: Tensor
    labels: Tensor
    given: Tensor
    test_images: Tensor
    test_labels: Tensor


class Run(NamedTuple):
    """Shares after each epoch."""

    test_accuracy: list[float]
    memorised: list[float]


def noisy_digits(seed: int) -> Digits:
    """Split the digits and replace a share of the training labels by another label, drawn evenly."""
    images, labels = load_digits(return_X_y=True)
    images, test_images, labels, test_labels = (
        torch.tensor(part) for part in train_test_split(images / 16, labels, test_size=0.3, stratify=labels, random_state=seed)
    )
    generator = torch.Generator().manual_seed(seed)
    wrong = torch.rand(len(labels), generator=generator) < NOISE
    shift = torch.randint(1, 10, labels.shape, generator=generator)
    given = torch.where(wrong, (labels + shift) % 10, labels)
    return Digits(images.float(), labels, given, test_images.float(), test_labels)


def train(expression: str, seed: int, epochs: int) -> Run:
    """Train one network and return what it predicts after each epoch."""
    data = noisy_digits(seed)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    loss = lossmith.make_loss(expression)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE.get(expression, 0.1), momentum=0.9)
    wrong = data.given != data.labels
    run = Run([], [])
    for _ in range(epochs):
        for batch in torch.randperm(len(data.images)).split(BATCH):
            optimizer.zero_grad()
            loss(model(data.images[batch]), data.given[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            run.test_accuracy.append(_share(model(data.test_images).argmax(1) == data.test_labels))
            run.memorised.append(_share(model(data.images[wrong]).argmax(1) == data.given[wrong]))
    return run


def _share(hits: Tensor) -> float:
    return hits.float().mean().item()


def table(runs: dict[str, list[Run]]) -> str:
    """Return one line per loss: means and standard errors over the seeds, after the last epoch."""
    lines = [f"{'loss':30} {'test accuracy':>16} {'wrong labels learnt':>20}"]
    for expression, seeds in runs.items():
        accuracy = _mean_and_error([run.test_accuracy[-1] for run in seeds])
        memorised = _mean_and_error([run.memorised[-1] for run in seeds])
        lines.append(f"{expression:30} {accuracy:>16} {memorised:>20}")
    return "\n".join(lines)


def _mean_and_error(numbers: list[float]) -> str:
    values = torch.tensor(numbers)
    return f"{values.mean():.3f} +- {values.std() / len(values) ** 0.5:.3f}"


def draw(runs: dict[str, list[Run]], file: Path) -> None:
    """Draw the mean curves with a band of one standard error."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained", sharex=True)
    for field, axis, title in zip(
        Run._fields, axes, ("accuracy on clean test labels", "wrong training labels learnt"), strict=True
    ):
        for number, (expression, seeds) in enumerate(runs.items()):
            curves = torch.tensor([getattr(run, field) for run in seeds])
            mean, error = curves.mean(0), curves.std(0) / len(seeds) ** 0.5
            epochs = range(1, len(mean) + 1)
            axis.plot(epochs, mean, label=expression, color=f"C{number}")
            axis.fill_between(epochs, mean - error, mean + error, color=f"C{number}", alpha=0.2, linewidth=0)
        axis.set(title=title, xlabel="epoch", ylim=(0, 1))
        axis.grid(alpha=0.3)
    figure.suptitle(f"Digits with {NOISE:.0%} wrong labels")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("out/noisy_digits.png"))
    options = parser.parse_args()
    torch.set_num_threads(1)  # the network is too small for two
    plan = [(expression, seed) for expression in LOSSES for seed in range(options.seeds)]
    runs: dict[str, list[Run]] = {expression: [] for expression in LOSSES}
    for expression, seed in tqdm(plan, desc="training", unit="run"):
        runs[expression].append(train(expression, seed, options.epochs))
    print(table(runs))
    draw(runs, options.output)
    print(f"\nFigure: {options.output}")


if __name__ == "__main__":
    main()
