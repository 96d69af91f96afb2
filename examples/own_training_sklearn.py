"""Any loss with the habits of scikit-learn's ``SGDClassifier``: a linear model by ``partial_fit``, under a study.

``python examples/own_training_sklearn.py`` compares three losses on scikit-learn's wines; a few seconds.
"""

import argparse
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

import lossmith
from lossmith.training import Trial


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """A linear model that learns from one batch at a time, by any loss."""

    def __init__(self, loss: nn.Module, learning_rate: float = 0.1) -> None:
        self.loss = loss
        self.learning_rate = learning_rate

    def partial_fit(self, inputs: np.ndarray, labels: np.ndarray, classes: np.ndarray) -> Self:
        """Take one step of gradient descent."""
        if not hasattr(self, "model_"):
            self.model_ = nn.Linear(inputs.shape[1], len(classes))
        logits = self.model_(torch.tensor(inputs, dtype=torch.float32))
        self.model_.zero_grad()
        self.loss(logits, torch.tensor(labels)).backward()
        with torch.no_grad():
            for weight in self.model_.parameters():
                weight.sub_(self.learning_rate * weight.grad)
        return self

    def decision_function(self, inputs: np.ndarray) -> np.ndarray:
        """Return the logits."""
        with torch.no_grad():
            return np.asarray(self.model_(torch.tensor(inputs, dtype=torch.float32)).numpy())

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        """Return the classes."""
        return np.asarray(self.decision_function(inputs).argmax(1))


def train(trial: Trial) -> dict[str, Any]:
    """Fit the estimator batch by batch."""
    inputs, labels = load_wine(return_X_y=True)
    rows, test = train_test_split(np.arange(len(labels)), test_size=0.25, random_state=trial.seed, stratify=labels)
    fit, validation = train_test_split(rows, test_size=0.25, random_state=trial.seed, stratify=labels[rows])
    inputs = StandardScaler().fit(inputs[fit]).transform(inputs)
    noisy, checked = trial.labels(labels, fit), trial.labels(labels, validation)
    model = LinearClassifier(trial.loss, trial.settings["learning_rate"])
    for epoch in range(1, trial.settings["epochs"] + 1):
        for batch in np.array_split(np.random.permutation(len(fit)), 4):  # noqa: NPY002 - seeded by the study
            model.partial_fit(inputs[fit[batch]], noisy[batch], classes=np.arange(3))
        trial.report(epoch, accuracy=model.score(inputs[validation], checked))
    return {
        "logits": model.decision_function(inputs[test]),
        "labels": labels[test],
        "validation_logits": model.decision_function(inputs[validation]),
        "validation_labels": checked,
        "test_rows": test,
        "train_rows": len(rows),
    }


def main() -> None:
    """Compare three losses and print the answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two replicates of a few epochs")
    parser.add_argument("--output", type=Path, default=Path("studies/own-training-sklearn"))
    options = parser.parse_args()
    size = {"seeds": 2, "epochs": 3, "trials": 2} if options.quick else {"seeds": 10, "epochs": 30, "trials": 6}
    study = lossmith.compare(
        train=train,
        losses=["ce", "gce", "focal"],
        noise=[0, 0.2],
        tune={"learning_rate": (0.01, 3.0)},
        output=options.output,
        **size,
    )
    print(study.table())
    print(study.recommend())


if __name__ == "__main__":
    main()
