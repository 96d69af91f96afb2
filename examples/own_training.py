"""A training loop of one's own under a study: digits, a small network, three losses, 40 % wrong labels.

``python examples/own_training.py`` takes a minute or two on two cores; ``--quick`` is a few seconds of it. The same function runs
from the command line:
``lossmith compare examples/own_training.py:train --tune learning_rate=0.003:0.5 --epochs 12 --losses ce,gce``.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

import lossmith
from lossmith.training import Trial

BATCH = 64


def train(trial: Trial) -> dict[str, Any]:
    """Train one network with the trial's loss, labels and settings."""
    numbers, labels = load_digits(return_X_y=True)
    inputs, target = torch.tensor(numbers / 16, dtype=torch.float32), torch.tensor(labels)
    rows, test = train_test_split(np.arange(len(labels)), test_size=0.25, random_state=trial.seed, stratify=labels)
    fit, validation = train_test_split(rows, test_size=0.25, random_state=trial.seed, stratify=labels[rows])
    noisy, checked = trial.labels(target, fit), trial.labels(target, validation)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=trial.settings["learning_rate"], momentum=0.9)
    for epoch in range(1, trial.settings["epochs"] + 1):
        for batch in torch.randperm(len(fit)).split(BATCH):
            optimizer.zero_grad()
            trial.loss(model(inputs[fit[batch]]), noisy[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            trial.report(epoch, accuracy=float((model(inputs[validation]).argmax(1) == checked).double().mean()))
    with torch.no_grad():
        return {
            "logits": model(inputs[test]),
            "labels": target[test],
            "validation_logits": model(inputs[validation]),
            "validation_labels": checked,
            "test_rows": test,
            "train_rows": len(rows),
        }


def main() -> None:
    """Compare three losses and print the answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two replicates of a few epochs")
    parser.add_argument("--output", type=Path, default=Path("studies/own-training"))
    options = parser.parse_args()
    size = {"seeds": 2, "epochs": 3, "trials": 2} if options.quick else {"seeds": 5, "epochs": 12, "trials": 6}
    study = lossmith.compare(
        train=train,
        losses=["ce", "gce", "sce"],
        noise=[0, 0.4],
        tune={"learning_rate": (0.003, 0.5)},
        output=options.output,
        **size,
    )
    print(study.table())
    print(study.recommend())


if __name__ == "__main__":
    main()
