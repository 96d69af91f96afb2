"""Batches of many runs at once, each in the order of its own seed, and their mixing."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lossmith.data.sparse_rows import Inputs, SparseRows
from lossmith.training.seeds import derived_seed, generator

__all__ = ["Batch", "Batches", "Mixup"]


class Batch(NamedTuple):
    """A batch for each run."""

    inputs: Inputs
    """``(runs, rows, ...)``, or sparse rows that all runs see."""
    target: Tensor
    """``(runs, rows)`` class indices, or ``(runs, rows, classes)`` probabilities."""


class Batches:
    """Goes through the training rows, epoch by epoch, in a new order for each run and epoch."""

    def __init__(self, inputs: Inputs, rows: Tensor, labels: Tensor, seeds: Sequence[int], size: int) -> None:
        self.inputs = inputs
        self.rows = rows
        """Those rows of the inputs that are trained on."""
        self.labels = labels
        """``(runs, rows)``"""
        self.size = size
        self.generators = [generator(seed, "batches") for seed in seeds]

    def __len__(self) -> int:
        rows = len(self.rows)
        # A last batch of one row would have no variance for batch normalisation. That row gets its turn in other epochs.
        return max(1, rows // self.size + (rows % self.size > 1))

    def epoch(self) -> Iterator[Batch]:
        """Yield the batches of one epoch.

        Yields:
            A batch for each run at a time.
        """
        order = torch.stack([torch.randperm(len(self.rows), generator=own) for own in self.generators])
        for chosen in torch.split(order.to(self.rows.device), self.size, 1)[: len(self)]:
            yield Batch(self._inputs(chosen), self.labels.gather(1, chosen))

    def _inputs(self, chosen: Tensor) -> Inputs:
        if isinstance(self.inputs, SparseRows):  # of runs that have one seed
            return self.inputs[self.rows[chosen[0]]]
        inputs = self.inputs.index_select(0, self.rows[chosen.flatten()])
        return inputs.view(*chosen.shape, *self.inputs.shape[1:])

    def keep(self, runs: Tensor) -> None:
        """Go on with some of the runs.

        Args:
            runs: Their places among those there are.
        """
        self.labels = self.labels[runs]
        self.generators = [self.generators[run] for run in runs.tolist()]


class Mixup:
    """Mixes each row of a batch with another, and their labels alike, in a proportion drawn for every batch.

    The batch is in random order already, so the partner of a row is the one as far from the other end.

    Reference: Zhang et al. 2018.
    """

    def __init__(self, alpha: float, seeds: Sequence[int], num_classes: int) -> None:
        self.alpha = alpha
        self.num_classes = num_classes
        self._draws = [np.random.default_rng(derived_seed(seed, "mixup")) for seed in seeds]

    def __call__(self, batch: Batch) -> Batch:
        """Return the mixed batch, whose targets are probabilities."""
        drawn = torch.tensor([draw.beta(self.alpha, self.alpha) for draw in self._draws], dtype=batch.inputs.dtype)
        share = drawn.to(batch.target.device)
        target = F.one_hot(batch.target, self.num_classes).to(batch.inputs.dtype)
        if isinstance(batch.inputs, SparseRows):
            return Batch(_mixed_rows(batch.inputs, share[0]), _mixed(target, share))
        return Batch(_mixed(batch.inputs, share), _mixed(target, share))

    def keep(self, runs: Tensor) -> None:
        """Go on with some of the runs.

        Args:
            runs: Their places among those there are.
        """
        self._draws = [self._draws[run] for run in runs.tolist()]


def _mixed(rows: Tensor, share: Tensor) -> Tensor:
    return torch.lerp(rows.flip(1), rows, share.view(-1, *[1] * (rows.dim() - 1)))


def _mixed_rows(rows: SparseRows, share: Tensor) -> SparseRows:
    """Return rows that list their own entries and those of their partner."""
    order = torch.arange(len(rows), device=rows.device)
    both = rows[torch.stack([order, order.flip(0)], 1).flatten()]
    shares = torch.stack([share, 1 - share]).repeat(len(rows)).repeat_interleave(both.starts.diff())
    return SparseRows(both.starts[::2], both.columns, both.values * shares, rows.width)
