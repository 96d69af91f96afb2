"""The data of each replicate: split and encoded anew, unless the user brings the split."""

from dataclasses import replace
from typing import Any

import torch

from lossmith.data import PreparedData
from lossmith.statistics.differences.overlapping import Overlap
from lossmith.studies.brought import read_data
from lossmith.studies.design.settings import Settings
from lossmith.studies.design.stratified_rows import stratified_rows

__all__ = ["Replicates", "at_most_train_rows", "overlap_of"]


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
        self._seed, self._data = 0, at_most_train_rows(first, settings.train_rows, 0)

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
            data = read_data(self._source, self.settings.loading, replicate=seed)
            self._seed, self._data = seed, at_most_train_rows(data, self.settings.train_rows, seed)
        return self._data


def at_most_train_rows(data: PreparedData, most: int, seed: int) -> PreparedData:
    """Return data with so many training rows at most, and no more validation rows than those.

    Who has few rows to learn from has no more of them to choose settings by; and after every epoch all of them are looked at.

    Args:
        data: Of one replicate.
        most: How many; 0 stands for all.
        seed: The replicate, by which they are drawn.

    Returns:
        The data, of which every class keeps its share.
    """
    if not most or len(data.train) <= most:
        return data
    train, validation = (stratified_rows(data, rows, most, seed) for rows in (data.train, data.validation))
    return replace(data, train=train, validation=validation)


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
