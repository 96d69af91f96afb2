"""What every kind of label noise does, and what a corrupted set of labels turned out to be."""

import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossmith.data.prepared import PreparedData
from lossmith.expressions.limits import Limits

__all__ = ["LabelNoise", "Labels", "Numbers", "RateNoise", "RealisedNoise", "balanced_keys", "realised"]

Labels = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


class LabelNoise(ABC):
    """A way to make some labels wrong.

    Everything random belongs to a row of the data, a seed and a kind of noise. So the same seed corrupts the same labels
    whatever is trained on them, and training and validation rows draw independently of one another.
    """

    name: ClassVar[str]

    def corrupt(self, data: PreparedData, rows: Tensor, seed: int) -> Tensor:
        """Return labels for these rows of the data, some of them wrong. Rows of the test split are refused.

        Args:
            data: The data.
            rows: Row numbers of the training or the validation split.
            seed: Draws which labels become wrong, >= 0.

        Returns:
            Class indices, one for each of the rows.

        Raises:
            ValueError: If a row is of the test split, the seed is negative, or the noise does not suit the data.
        """
        owner = type(self).__name__
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise ValueError(f"{owner}: seed must be an integer >= 0, got {seed!r}.")
        tests = int(torch.isin(rows, data.test).sum())
        if tests:
            raise ValueError(f"{owner}: rows must not be of the test split, got {tests} that are.")
        return torch.from_numpy(self._noisy(data, rows.numpy(), data.labels[rows].numpy(), seed))

    @abstractmethod
    def _noisy(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Labels:
        """Return the labels of the rows, corrupted."""

    def _generator(self, seed: int, purpose: str) -> np.random.Generator:
        return np.random.default_rng([seed, zlib.crc32(f"{self.name} {purpose}".encode())])

    def _draws(self, data: PreparedData, rows: Labels, seed: int, purpose: str) -> Numbers:
        """Return an even random number in [0, 1) for each row, the same whichever rows are asked for with it."""
        return self._generator(seed, purpose).random(len(data.labels))[rows]

    def _keys(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Numbers:
        offsets = self._generator(seed, "offsets").random(data.num_classes)
        return balanced_keys(labels, self._draws(data, rows, seed, "rows"), offsets)


@dataclass(frozen=True, repr=False)
class RateNoise(LabelNoise):
    """Noise that corrupts a share of the labels: ``round(rate * n)`` of n, so that seeds differ in which, not in how many.

    A label that is wrong at one rate is wrong at every higher rate of the same seed.
    """

    rate: float

    def __post_init__(self) -> None:
        rate = Limits(0.0, 1.0).check("rate", self.rate, owner=type(self).__name__)
        object.__setattr__(self, "rate", rate)

    def __repr__(self) -> str:
        return f"{self.name}({self.rate})"

    def _first(self, keys: Numbers) -> npt.NDArray[np.bool_]:
        """Mark the share ``rate`` that has the smallest keys."""
        chosen = np.zeros(len(keys), dtype=bool)
        chosen[np.argsort(keys, kind="stable")[: int(self.rate * len(keys) + 0.5)]] = True
        return chosen


class RealisedNoise(NamedTuple):
    """What the noise came to."""

    rate: float
    """The share of labels that are wrong."""
    matrix: Numbers
    """``(classes, classes)``: the share of each true class, a row, that carries each label, a column; 0 in rows without any."""


def realised(labels: Tensor, noisy: Tensor, num_classes: int) -> RealisedNoise:
    """Count how many labels are wrong, and which became which.

    Args:
        labels: The true class indices.
        noisy: The same with noise.
        num_classes: How many classes there are.

    Returns:
        The share of wrong labels, and the matrix of what became what.

    >>> realised(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 1, 1]), num_classes=2)
    RealisedNoise(rate=0.25, matrix=array([[0.5, 0.5], [0. , 1. ]]))
    """
    counts = np.zeros((num_classes, num_classes))
    np.add.at(counts, (labels.numpy(), noisy.numpy()), 1.0)
    wrong = counts.sum() - np.trace(counts)
    return RealisedNoise(float(wrong / max(counts.sum(), 1.0)), counts / np.maximum(counts.sum(1, keepdims=True), 1.0))


def balanced_keys(labels: Labels, draws: Numbers, offsets: Numbers) -> Numbers:
    """Return keys in [0, 1) that order rows at random, and are spread evenly within every class.

    The rows of a class are put in the order of their draws; the r-th of n has the key ``(r + offset) / n``. Of the rows with
    the smallest keys every class then has its share, but for rounding, and a threshold on the keys is systematic sampling.

    Args:
        labels: Class indices, ``(n,)``.
        draws: A random number for each row, ``(n,)``.
        offsets: A random number in [0, 1) for each class.

    Returns:
        The keys, ``(n,)``.
    """
    order = np.lexsort((draws, labels))
    counts = np.bincount(labels, minlength=len(offsets))
    ranks = np.empty(len(labels))
    ranks[order] = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return (ranks + offsets[labels]) / np.maximum(counts[labels], 1)
