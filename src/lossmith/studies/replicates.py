"""The data of each replicate: split and encoded anew, unless the user brings the split."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from lossmith.data import PreparedData, load_data
from lossmith.statistics.overlapping import Overlap
from lossmith.studies.settings import Settings
from lossmith.training.seeds import derived_seed

__all__ = ["Replicates", "overlap_of"]


class Replicates:
    """Reads the data for one replicate after another. What is encoded is fitted on the training rows of each."""

    def __init__(self, settings: Settings, source: Any, first: PreparedData) -> None:
        """Take the data of replicate 0, which has been read already.

        Args:
            settings: Those of the study.
            source: What :func:`lossmith.data.load_data` reads.
            first: What it gave for replicate 0.
        """
        self.settings = settings
        self._source = source
        self._seed, self._data = 0, self._at_most_train_rows(first, 0)

    def data(self, seed: int) -> PreparedData:
        """Return the data of a replicate; the last one is kept.

        Args:
            seed: The replicate.

        Returns:
            Data whose rows are the same in all replicates, and whose splits are its own.

        Raises:
            OSError: If it can no longer be read.
            ValueError: If it has changed in a way that cannot be read.
        """
        if seed != self._seed:
            data = load_data(self._source, **self.settings.loading, replicate=seed)
            self._seed, self._data = seed, self._at_most_train_rows(data, seed)
        return self._data

    def _at_most_train_rows(self, data: PreparedData, seed: int) -> PreparedData:
        most = self.settings.train_rows
        if not most or len(data.train) <= most:
            return data
        return replace(data, train=torch.from_numpy(_stratified(data.labels[data.train].numpy(), data.train.numpy(), most, seed)))


def _stratified(labels: np.ndarray, rows: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Return so many rows, of each class in proportion and one at least."""
    generator = np.random.default_rng(derived_seed(seed, "training rows"))
    order = generator.permutation(len(rows))
    # The place of each row among those of its class, as a share: the smallest shares make up a sample of even proportions.
    places = np.empty(len(rows))
    for label in np.unique(labels):
        own = order[labels[order] == label]
        places[own] = np.arange(len(own)) / len(own)
    return np.sort(rows[np.argsort(places, kind="stable")[:most]])


def overlap_of(first: PreparedData, second: PreparedData) -> Overlap:
    """Return how much replicates have in common, from the splits of two of them.

    Args:
        first: The data of a replicate.
        second: That of another.

    Returns:
        The correction that their differences need.
    """
    if not torch.equal(first.test, second.test):
        # The procedure learns from all other rows: from training rows by gradients, from validation rows by its choice.
        return Overlap(len(first.test) / (len(first.labels) - len(first.test)), rows=False)
    if not torch.equal(first.validation, second.validation):
        return Overlap(len(first.validation) / len(first.train), rows=True)
    return Overlap(0.0, rows=True)
