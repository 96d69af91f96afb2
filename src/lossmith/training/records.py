"""What is written down about each run while a stack is trained."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lossmith.data.prepared import PreparedData
from lossmith.training.devices import precise
from lossmith.training.job import Job
from lossmith.training.recipe import CURVES

__all__ = ["Answers", "Record", "answers_of", "epoch_shares", "looked_at", "places_of_curves", "rows_of_curves"]

FEWEST_OF_CURVES = 500
MOST_FITTED = 10_000
"""Training rows that are looked at after every epoch: enough to tell what has been learnt to half a point."""


@dataclass
class Record:
    """The curves of one run, and where it stands."""

    curves: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in CURVES})
    epoch: int = 0
    """The epoch whose predictions count so far; 0 is before training."""
    best: float = -math.inf
    """The best validation accuracy so far."""
    best_epoch: int = 0
    seconds: float = 0.0
    diverged: bool = False
    stopped: bool = False
    stands_for: float = 1.0

    def accuracies(self) -> tuple[float, float]:
        """Return the accuracy on training and on validation labels at the epoch that counts; NaN before training."""
        if not self.epoch:
            return math.nan, math.nan
        return self.curves["train_accuracy"][self.epoch - 1], self.curves["validation_accuracy"][self.epoch - 1]

    def padded(self, epochs: int) -> dict[str, list[float]]:
        """Return the curves with NaN for the epochs after the run had stopped.

        Args:
            epochs: How many numbers each curve is to have.

        Returns:
            The curves by name.
        """
        return {name: curve + [math.nan] * (epochs - len(curve)) for name, curve in self.curves.items()}


@dataclass(frozen=True)
class Answers:
    """The labels by which predictions are judged; those of training and validation differ between the runs."""

    train: Tensor
    """``(runs, rows)``: the labels as given, of the training rows that are looked at."""
    truth: Tensor
    """``(rows,)``: the true labels of these."""
    validation: Tensor
    """``(runs, rows)``"""
    test: Tensor
    """``(rows,)``"""

    def to(self, device: torch.device) -> "Answers":
        """Return the labels on a device.

        Args:
            device: Where predictions are.

        Returns:
            The same labels.
        """
        return Answers(*(labels.to(device) for labels in (self.train, self.truth, self.validation, self.test)))

    def keep(self, runs: Tensor) -> "Answers":
        """Return the labels of some of the runs.

        Args:
            runs: Their places among those there are.

        Returns:
            New labels.
        """
        return Answers(self.train[runs], self.truth, self.validation[runs], self.test)


def rows_of_curves(train_rows: int, test_rows: int) -> tuple[int, int]:
    """Return how many rows of training and test are looked at after every epoch.

    Of the training rows these are ten thousand at most: a curve needs no more, and to look at all would cost a third of learning
    from them. Of the test rows they are no more than there are training rows, or 500; all of them are looked at in the end.

    Args:
        train_rows: Rows that are trained on.
        test_rows: Rows of the test split.

    Returns:
        Two numbers of rows.

    >>> rows_of_curves(1000, 300), rows_of_curves(100, 10_000), rows_of_curves(50_000, 10_000)
    ((1000, 300), (100, 500), (10000, 10000))
    """
    return min(train_rows, MOST_FITTED), min(test_rows, max(train_rows, FEWEST_OF_CURVES))


def places_of_curves(data: PreparedData) -> tuple[Tensor, Tensor]:
    """Return which rows of training and of test are looked at after every epoch, from all parts alike.

    Args:
        data: What is trained on.

    Returns:
        Places among the training rows, and among the test rows.
    """
    splits = len(data.train), len(data.test)
    fitted, tested = (
        torch.arange(count) * rows // max(1, count) for count, rows in zip(rows_of_curves(*splits), splits, strict=True)
    )
    return fitted, tested


def looked_at(data: PreparedData) -> Tensor:
    """Return the rows that are predicted after every epoch, those of training, of validation and of test in turn.

    Args:
        data: What is trained on.

    Returns:
        Row numbers.
    """
    fitted, tested = places_of_curves(data)
    return torch.cat([data.train[fitted], data.validation, data.test[tested]])


def answers_of(jobs: Sequence[Job], data: PreparedData) -> Answers:
    """Return the labels by which runs are judged after every epoch.

    Args:
        jobs: The runs, with their labels.
        data: What they are trained on.

    Returns:
        The labels of the rows that are looked at.
    """
    truth = data.labels if data.true_labels is None else data.true_labels
    fitted, tested = places_of_curves(data)
    return Answers(
        train=torch.stack([job.train_labels[fitted] for job in jobs]),
        truth=truth[data.train[fitted]],
        validation=torch.stack([job.validation_labels for job in jobs]),
        test=truth[data.test[tested]],
    )


def epoch_shares(predicted: Tensor, answers: Answers) -> dict[str, Tensor]:
    """Return the shares of an epoch, one for each run, of the classes ``(runs, rows)`` predicted for all three splits in turn.

    Args:
        predicted: Classes of the rows of training, validation and test, ``(runs, rows)``.
        answers: What they are compared with.

    Returns:
        Shares ``(runs,)`` by the name of a curve.
    """
    train, validation, test = torch.split(predicted, [len(answers.truth), answers.validation.shape[1], len(answers.test)], 1)
    wrong = answers.train != answers.truth
    return {
        "train_accuracy": _share(train == answers.train),
        "validation_accuracy": _share(validation == answers.validation),
        "test_accuracy": _share(test == answers.test),
        "false_label_accuracy": _share((train == answers.truth) & wrong, wrong),
        "memorised": _share((train == answers.train) & wrong, wrong),
    }


def _share(hits: Tensor, among: Tensor | None = None) -> Tensor:
    """Return the share of hits, NaN where there is nothing to hit."""
    count = among.sum(1) if among is not None else torch.tensor(hits.shape[1])
    return hits.sum(1).to(precise(hits.device)) / count
