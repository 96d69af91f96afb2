"""What a loss is asked about logits, apart from the logits."""

from typing import NamedTuple

import torch
from torch import Tensor

from lossmith.kernels.sharded.collectives import Shard
from lossmith.kernels.sharded.rows import ShardedRows
from lossmith.losses.contract.classification_loss import ClassificationLoss
from lossmith.torch_compat import is_autocast_enabled

__all__ = ["Call", "Precision"]


class Precision(NamedTuple):
    """In which precision logits are made."""

    device: str
    autocast: torch.dtype | None
    """What autocast multiplies matrices in, or None where it is off."""

    @classmethod
    def of(cls, features: Tensor) -> "Precision":
        """Return that of a layer that is called now.

        Args:
            features: Its input.

        Returns:
            What autocast asks for, if it is on.
        """
        kind = features.device.type
        return cls(kind, torch.get_autocast_dtype(kind) if is_autocast_enabled(kind) else None)

    def multiplied(self, matrix: Tensor) -> Tensor:
        """Return a matrix or a bias as it is multiplied or added.

        Args:
            matrix: Features, weights or biases.

        Returns:
            The same, rounded where autocast rounds it.
        """
        return matrix if self.autocast is None or matrix.dtype == torch.float64 else matrix.to(self.autocast)

    def context(self) -> torch.autocast:
        """Return the context of the call, for what is computed later."""
        return torch.autocast(self.device, dtype=self.autocast, enabled=self.autocast is not None)


class Call(NamedTuple):
    """A loss with its target, for rows of logits ``(N, C)``."""

    loss: ClassificationLoss
    target: Tensor
    """Class indices ``(N,)``, or probabilities ``(N, C)``."""
    sample_weight: Tensor | None
    denominator: float | Tensor | None
    shard: Shard | None = None
    """Which classes the logits belong to, where they are spread over processes."""

    def of_rows(self, rows: slice | Tensor) -> "Call":
        """Return the call for some of the rows.

        Args:
            rows: A part of all rows, or the places of some.

        Returns:
            The same loss, with the targets and weights of these rows.
        """
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return self._replace(target=self.target[rows], sample_weight=weight)

    def with_denominator(self) -> "Call":
        """Return the call with the denominator that belongs to all rows, so that losses of pieces add up to that of the whole."""
        if self.denominator is not None or self.loss.reduction != "mean":
            return self
        return self._replace(denominator=self.loss.denominator(self.target, sample_weight=self.sample_weight))

    def counted(self) -> Tensor | None:
        """Return the places of the rows that are not ignored, or None where all of them count."""
        if self.target.is_floating_point():
            return None
        counts = self.target != self.loss.ignore_index
        return None if bool(counts.all()) else counts.nonzero().squeeze(1)

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the loss of logits.

        Args:
            logits: A row for each target.

        Returns:
            One number, or one for each row.
        """
        rows = logits if self.shard is None else ShardedRows(logits, self.shard)
        found: Tensor = self.loss(rows, self.target, sample_weight=self.sample_weight, denominator=self.denominator)
        return found
