"""One training on several processes under a study: torch's DistributedDataParallel over gloo, on scikit-learn's digits.

``python examples/own_training_ddp.py`` trains every trial on two processes; ``--quick`` is a few seconds of it. The study starts
them, with what ``torchrun`` would have in their environment; the same function runs on several machines with ``--engine ray``:
``lossmith compare examples/own_training_ddp.py:train --processes 2 --tune learning_rate=0.01:0.5 --epochs 12 --losses ce,gce``.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import lossmith
from lossmith.training import Trial

BATCH = 32
"""Of each process."""


def train(trial: Trial) -> dict[str, Any]:
    """Train one network on all processes of the trial; what the first returns counts."""
    dist.init_process_group("nccl" if trial.device.type == "cuda" else "gloo")
    try:
        return train_together(trial)
    finally:
        dist.destroy_process_group()


def train_together(trial: Trial) -> dict[str, Any]:
    """Train as one of several processes, each on its share of the batches."""
    numbers, labels = load_digits(return_X_y=True)
    inputs, target = torch.tensor(numbers / 16, dtype=torch.float32).to(trial.device), torch.tensor(labels)
    rows, test = train_test_split(np.arange(len(labels)), test_size=0.25, random_state=trial.seed, stratify=labels)
    fit, validation = train_test_split(rows, test_size=0.25, random_state=trial.seed, stratify=labels[rows])
    noisy, checked = trial.labels(target, fit), trial.labels(target, validation)
    shares = TensorDataset(inputs[fit], noisy.to(trial.device))
    sampler: DistributedSampler[Any] = DistributedSampler(shares, seed=trial.seed)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(trial.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=trial.settings["learning_rate"], momentum=0.9)
    for epoch in range(1, trial.settings["epochs"] + 1):
        sampler.set_epoch(epoch)
        for batch, wanted in DataLoader(shares, BATCH, sampler=sampler):
            optimizer.zero_grad()
            trial.loss(model(batch), wanted).backward()
            optimizer.step()
        trial.report(epoch, accuracy=float((predict(model, inputs[validation]).argmax(1) == checked).double().mean()))
    return {"logits": predict(model, inputs[test]), "labels": target[test], "test_rows": test, "train_rows": len(rows)}


def predict(model: DistributedDataParallel, inputs: torch.Tensor) -> torch.Tensor:
    """Return logits, without waiting for the other processes."""
    with torch.no_grad():
        return torch.as_tensor(model.module(inputs)).cpu()


def main() -> None:
    """Compare two losses and print the answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two replicates of a few epochs")
    parser.add_argument("--output", type=Path, default=Path("studies/own-training-ddp"))
    options = parser.parse_args()
    size = {"seeds": 2, "epochs": 3, "trials": 1} if options.quick else {"seeds": 5, "epochs": 12, "trials": 6}
    study = lossmith.compare(
        train=train,
        processes=2,
        losses=["ce", "gce"],
        noise=[0] if options.quick else [0, 0.4],
        tune={"learning_rate": (0.01, 0.5)},
        output=options.output,
        **size,
    )
    print(study.table())
    print(study.recommend())


if __name__ == "__main__":
    main()
