"""What is written down about each run while a stack is trained."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lossmith.training.recipe import CURVES

__all__ = ["Answers", "Record", "epoch_shares", "rows_of_curves"]

FEWEST_OF_CURVES = 500


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
    """``(runs, rows)``: the labels as given."""
    truth: Tensor
    """``(rows,)``: the true labels of the training rows."""
    validation: Tensor
    """``(runs, rows)``"""
    test: Tensor
    """``(rows,)``"""

    def keep(self, runs: Tensor) -> "Answers":
        """Return the labels of some of the runs.

        Args:
            runs: Their places among those there are.

        Returns:
            New labels.
        """
        return Answers(self.train[runs], self.truth, self.validation[runs], self.test)


def rows_of_curves(train_rows: int, test_rows: int) -> int:
    """Return how many test rows are looked at after every epoch: no more than there are training rows, or 500.

    All of them are looked at in the end; a curve needs no ten thousand after every epoch of a few hundred.

    Args:
        train_rows: Rows that are trained on.
        test_rows: Rows of the test split.

    Returns:
        A number of rows.

    >>> rows_of_curves(1000, 300), rows_of_curves(1000, 10_000), rows_of_curves(100, 10_000)
    (300, 1000, 500)
    """
    return min(test_rows, max(train_rows, FEWEST_OF_CURVES))


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
    return hits.sum(1).double() / count
