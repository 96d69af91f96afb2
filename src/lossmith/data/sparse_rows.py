"""Rows of which few numbers are not 0, such as counts of n-grams: only those numbers are kept."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Inputs", "Occurring", "SparseRows", "as_tensor"]


class SparseRows:
    """A matrix ``(n, width)`` in single precision of which each row lists its columns and their values.

    It answers to what a tensor of inputs is asked for: its length and shape, some of its rows, another device. A column may
    be listed twice in a row; its values then add up.

    Args:
        starts: ``(n + 1,)``: where the entries of each row begin, and where the last one's end.
        columns: The column of each entry.
        values: Its value.
        width: How many columns there are.

    >>> rows = SparseRows(torch.tensor([0, 1, 3]), torch.tensor([2, 0, 1]), torch.tensor([5.0, 6.0, 7.0]), width=3)
    >>> rows.shape, rows[torch.tensor([1])].dense()
    (torch.Size([2, 3]), tensor([[6., 7., 0.]]))
    """

    ndim = 2

    def __init__(self, starts: Tensor, columns: Tensor, values: Tensor, width: int) -> None:
        self.starts, self.columns, self.values, self.width = starts, columns, values, width

    @classmethod
    def of(cls, matrix: "csr_array") -> "SparseRows":
        """Return the rows of a matrix of scipy, which shares their memory where it can.

        Args:
            matrix: In rows, ``(n, width)``.

        Returns:
            The rows.
        """
        columns = torch.from_numpy(matrix.indices.astype(np.int32, copy=False))
        values = torch.from_numpy(matrix.data.astype(np.float32, copy=False))
        return cls(torch.from_numpy(matrix.indptr.astype(np.int64)), columns, values, matrix.shape[1])

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def shape(self) -> torch.Size:
        """Rows and columns."""
        return torch.Size((len(self), self.width))

    @property
    def dtype(self) -> torch.dtype:
        """That of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """That of the values."""
        return self.values.device

    def dim(self) -> int:
        """Return 2, as these are always rows of numbers."""
        return self.ndim

    def is_floating_point(self) -> bool:
        """Return True."""
        return True

    def to(self, *target: Any) -> "SparseRows":
        """Return the rows on another device, or with values in another precision.

        Args:
            *target: What ``Tensor.to`` takes.

        Returns:
            The rows; the same tensors where nothing changes.
        """
        values = self.values.to(*target)
        return SparseRows(self.starts.to(values.device), self.columns.to(values.device), values, self.width)

    def __getitem__(self, rows: Tensor) -> "SparseRows":
        first, sizes = self.starts[:-1][rows], self.starts.diff()[rows]
        starts = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        # The place of each entry: where its row begins, and how far it is behind the first of that row.
        places = torch.arange(int(starts[-1]), device=starts.device) + (first - starts[:-1]).repeat_interleave(sizes)
        return SparseRows(starts, self.columns[places], self.values[places], self.width)

    def split(self, size: int) -> Iterator["SparseRows"]:
        """Yield parts of so many rows.

        Args:
            size: The rows of a part; the last one may have fewer.

        Yields:
            The parts in their order.
        """
        for part in torch.split(torch.arange(len(self), device=self.starts.device), size):
            yield self[part]

    def dense(self) -> Tensor:
        """Return all numbers, zeros too, ``(n, width)``."""
        rows = torch.arange(len(self), device=self.starts.device).repeat_interleave(self.starts.diff())
        return self.values.new_zeros(self.shape).index_put_((rows, self.columns.long()), self.values, accumulate=True)

    def occurring(self) -> "Occurring":
        """Return the columns that occur, in their order, and the rows with these columns alone."""
        present = torch.zeros(self.width, dtype=torch.bool, device=self.columns.device)
        present[self.columns.long()] = True
        numbers = present.cumsum(0).sub_(1)
        columns = present.nonzero().squeeze(1)
        return Occurring(columns, SparseRows(self.starts, numbers[self.columns.long()], self.values, len(columns)))

    def matrix(self) -> "csr_array":
        """Return the rows as a matrix of scipy, which shares their memory."""
        from scipy.sparse import csr_array

        return csr_array((self.values.numpy(), self.columns.numpy(), self.starts.numpy()), shape=tuple(self.shape))

    def parts(self) -> tuple[Tensor, ...]:
        """Return what tells these rows from others of the same shape, for a fingerprint."""
        return self.starts, self.columns, self.values


class Occurring(NamedTuple):
    """The columns that some rows have, and the rows with their columns numbered among these."""

    columns: Tensor
    rows: SparseRows


Inputs: TypeAlias = Tensor | SparseRows
"""What a network takes, a row for each example."""


def as_tensor(inputs: Inputs) -> Tensor:
    """Return inputs as a tensor, for modules that know nothing else.

    Args:
        inputs: Either kind.

    Returns:
        A tensor with all numbers.
    """
    return inputs.dense() if isinstance(inputs, SparseRows) else inputs
