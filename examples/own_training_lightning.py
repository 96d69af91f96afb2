"""A LightningModule under a study: digits, a small network, two losses.

``python examples/own_training_lightning.py`` takes a few minutes on two cores, ``--quick`` a few seconds; it needs
``pip install lightning``. A trial that was killed goes on from the checkpoint in its folder.
"""

import argparse
import logging
import warnings
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import lossmith
from lossmith.training import Trial

BATCH = 64


class Digits(lightning.LightningModule):
    """A network that learns by the trial's loss, and reports to the study after every epoch."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.trial = trial
        self.network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.right: list[Tensor] = []

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Return the loss of a batch."""
        inputs, labels = batch
        return torch.as_tensor(self.trial.loss(self.network(inputs), labels))

    def validation_step(self, batch: tuple[Tensor, Tensor]) -> None:
        """Remember which rows are right."""
        inputs, labels = batch
        self.right.append(self.network(inputs).argmax(1) == labels)

    def on_train_epoch_end(self) -> None:
        """Tell the study, which may end the trial here."""
        accuracy = float(torch.cat(self.right).double().mean())
        self.right.clear()
        self.trial.report(self.current_epoch + 1, accuracy=accuracy)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer with the trial's learning rate."""
        return torch.optim.SGD(self.parameters(), lr=self.trial.settings["learning_rate"], momentum=0.9)


def train(trial: Trial) -> dict[str, Any]:
    """Fit the module, and predict the test rows."""
    quieten()
    numbers, labels = load_digits(return_X_y=True)
    inputs, target = torch.tensor(numbers / 16, dtype=torch.float32), torch.tensor(labels)
    rows, test = train_test_split(np.arange(len(labels)), test_size=0.25, random_state=trial.seed, stratify=labels)
    fit, validation = train_test_split(rows, test_size=0.25, random_state=trial.seed, stratify=labels[rows])
    noisy, checked = trial.labels(target, fit), trial.labels(target, validation)
    module = Digits(trial)
    checkpoints = ModelCheckpoint(trial.folder, save_last=True)
    trainer = lightning.Trainer(
        max_epochs=trial.settings["epochs"],
        accelerator=trial.device.type,
        devices=1,
        callbacks=[checkpoints],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    batches = DataLoader(TensorDataset(inputs[fit], noisy), BATCH, shuffle=True)
    judged = DataLoader(TensorDataset(inputs[validation], checked), len(validation))
    left = trial.folder / "last.ckpt"
    trainer.fit(module, batches, judged, ckpt_path=left if left.exists() else None, weights_only=False)
    with torch.no_grad():
        logits = module.network(inputs[test])
    return {"logits": logits, "labels": target[test], "test_rows": test, "train_rows": len(rows)}


def quieten() -> None:
    """Leave the terminal to the study."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")


def main() -> None:
    """Compare two losses and print the answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two replicates of a few epochs")
    parser.add_argument("--output", type=Path, default=Path("studies/own-training-lightning"))
    options = parser.parse_args()
    size = {"seeds": 2, "epochs": 3, "trials": 1} if options.quick else {"seeds": 5, "epochs": 12, "trials": 6}
    study = lossmith.compare(
        train=train,
        losses=["ce", "gce"],
        noise=[0] if options.quick else [0, 0.4],
        tune={"learning_rate": (0.003, 0.5)},
        output=options.output,
        **size,
    )
    print(study.table())
    print(study.recommend())


if __name__ == "__main__":
    main()
