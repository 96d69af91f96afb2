"""Train a small network on handwritten digits with nine objectives and measure what each does beside its accuracy.

Prints calibration, class separation of the training set, and agreement: ``python examples/digits_analysis.py --seeds 3``.
"""

import argparse

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

import lossmith
from lossmith.analysis import LayerReader, RunOutputs, agreement_tables, by_loss, calibration_table, separation_table

OBJECTIVES = {
    "softmax": 0.1,
    "label-smoothing": 0.1,
    "dropout(keep=0.7)": 0.1,
    "extra-l2(8e-4)": 0.1,
    "logit-penalty": 0.1,
    "logit-norm(tau=0.04)": 0.01,
    "cosine-softmax(tau=0.05)": 0.01,
    "sigmoid": 0.1,
    "squared-error(9, 60, 10)": 1e-4,
}
"""With the learning rate of each: normalised logits and squared errors have larger gradients."""


def train(expression: str, seed: int, epochs: int, images: Tensor, labels: Tensor) -> tuple[nn.Module, nn.Module]:
    """Return a trained network and its loss."""
    torch.manual_seed(seed)
    objective = lossmith.make_objective(expression)
    backbone = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
    model, loss, groups = objective.build(backbone, num_classes=10, in_features=64, weight_decay=1e-4)
    optimizer = torch.optim.SGD(groups, lr=OBJECTIVES[expression], momentum=0.9)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            loss(model(images[batch]), labels[batch]).backward()
            optimizer.step()
    return model, loss


def outputs(model: nn.Module, loss: nn.Module, expression: str, seed: int, images: Tensor) -> RunOutputs:
    """Return what a trained network puts out."""
    last_hidden = [name for name, module in model.named_modules() if isinstance(module, nn.ReLU)][-1]
    features = LayerReader(model, lambda output: output.numpy().copy(), [last_hidden])(images)[last_hidden]
    with torch.no_grad():
        logits = model.eval()(images)
        probabilities = loss.predict_proba(logits)
    own = None if torch.allclose(probabilities, logits.softmax(1), atol=1e-6) else probabilities.numpy()
    return RunOutputs(expression, seed, logits.numpy(), features, own)


def main() -> None:
    """Train, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40)
    arguments = parser.parse_args()
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images.astype(np.float32) / 16, labels, test_size=0.3, stratify=labels, random_state=0)
    images, test_images, labels, test_labels = map(torch.from_numpy, parts)
    trained, tested = {}, {}
    jobs = [(expression, seed) for expression in OBJECTIVES for seed in range(arguments.seeds)]
    for expression, seed in track(jobs, "runs", console=Console(stderr=True)):
        model, loss = train(expression, seed, arguments.epochs, images, labels)
        trained[f"{expression} {seed}"] = outputs(model, loss, expression, seed, images)
        tested[f"{expression} {seed}"] = outputs(model, loss, expression, seed, test_images)
    right = [(run.loss, {"accuracy": float(np.mean(run.logits.argmax(1) == test_labels.numpy()))}) for run in tested.values()]
    tables = (
        by_loss(right),
        calibration_table(tested, test_labels),
        separation_table(trained, labels),
        agreement_tables(tested, test_labels).losses["same_prediction"],
    )
    for table in tables:
        print(table.round(4).to_string(), end="\n\n")


if __name__ == "__main__":
    main()
