"""Train on handwritten numbers of two or three digits: 100 or 1000 classes, where plain MAE fails and MAE with a bias learns.

Each image is a row of digits of scikit-learn's set, each label the number that they make. The digits of test images are not
in training images. The bias is computed from the number of classes and the spread of the fresh network's logits, before
training: ``python examples/many_classes.py``.
"""

import argparse
from typing import NamedTuple

import torch
from rich.console import Console
from rich.progress import track
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

import lossmith

WIDTH = 256
BATCH = 128
LEARNING_RATE = 0.1
TEST_IMAGES = 2000


class Numbers(NamedTuple):
    """Images of numbers and their labels."""

    images: Tensor
    labels: Tensor


def numbers(images: Tensor, labels: Tensor, digits: int, count: int, generator: torch.Generator) -> Numbers:
    """Put random digits side by side."""
    chosen = torch.randint(len(images), (count, digits), generator=generator)
    places = 10 ** torch.arange(digits - 1, -1, -1)
    return Numbers(images[chosen].flatten(1), (labels[chosen] * places).sum(1))


def split(digits: int, count: int, seed: int) -> tuple[Numbers, Numbers]:
    """Return training and test numbers, made of different digits."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split((images - images.mean()) / images.std(), labels, test_size=0.3, stratify=labels, random_state=seed)
    train_images, test_images, train_labels, test_labels = (torch.tensor(part) for part in parts)
    generator = torch.Generator().manual_seed(seed)
    train = numbers(train_images.float(), train_labels, digits, count, generator)
    return train, numbers(test_images.float(), test_labels, digits, TEST_IMAGES, generator)


def fresh_model(features: int, classes: int) -> nn.Sequential:
    """Return a network with the paper's initialisation: even, after Xavier, and without biases at first."""
    model = nn.Sequential(nn.Linear(features, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, classes))
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
    return model


def train(
    expression: str, data: tuple[Numbers, Numbers], classes: int, *, seed: int, noise: float, epochs: int
) -> tuple[float, float]:
    """Train one network; return its accuracy on test images and the epsilon that it was trained with, if any."""
    (images, labels), (test_images, test_labels) = data
    torch.manual_seed(seed)
    model = fresh_model(images.shape[1], classes)
    sigma = lossmith.theory.fresh_network.logit_scale(model, [images[:1000]])
    epsilon = lossmith.theory.solve_logit_bias(classes, sigma=sigma).epsilon
    loss = lossmith.make_loss(expression.replace("EPSILON", str(epsilon)))
    wrong = torch.rand(len(labels)) < noise
    given = torch.where(wrong, (labels + torch.randint(1, classes, labels.shape)) % classes, labels)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            loss(model(images[batch]), given[batch]).backward()
            optimizer.step()
        schedule.step()
    with torch.no_grad():
        return (model(test_images).argmax(1) == test_labels).float().mean().item(), epsilon


def losses(classes: int) -> tuple[str, ...]:
    """Return what is compared: the baseline, a loss without and with correction, and the same for another one."""
    q = lossmith.theory.transfer_parameters("gce(q=0.7)", 100, classes, "q").parameters["q"] if classes > 100 else 0.7
    computed = (f"gce(q={q:.2f})",) if classes > 100 else ()
    return ("ce", "mae", "logit-bias(mae, epsilon=EPSILON)", "gce(q=0.7)", *computed)


def main() -> None:
    """Run the study and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--digits", type=int, nargs="+", default=[2, 3], help="digits of a number (default: 2 3)")
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.2])
    parser.add_argument("--examples", type=int, default=10000, help="training images (default: 10000)")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)  # the network is too small for two
    print(f"| classes | wrong labels | loss | overlap | test accuracy |\n|{'---|' * 5}")
    for digits in options.digits:
        classes = 10**digits
        data = [split(digits, options.examples, seed) for seed in range(options.seeds)]
        for noise in options.noise:
            for expression in losses(classes):
                seeds = track(
                    range(options.seeds), f"{classes} classes, {expression}", console=Console(stderr=True), transient=True
                )
                runs = [train(expression, data[seed], classes, seed=seed, noise=noise, epochs=options.epochs) for seed in seeds]
                print(row(expression, classes, noise, runs), flush=True)


def row(expression: str, classes: int, noise: float, runs: list[tuple[float, float]]) -> str:
    """Return a line of the table: the mean accuracy and its standard error."""
    accuracies, epsilons = torch.tensor(runs).T
    written = expression.replace("EPSILON", f"{epsilons.mean():.2f}")
    overlap = lossmith.theory.fresh_network.overlap(written, classes)
    accuracy = f"{100 * accuracies.mean():.1f} ± {100 * accuracies.std() / len(runs) ** 0.5:.1f} %"
    return f"| {classes} | {noise:.0%} | {written} | {overlap:.3f} | {accuracy} |"


if __name__ == "__main__":
    main()
