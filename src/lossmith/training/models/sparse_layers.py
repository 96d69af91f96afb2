"""First layers for sparse rows."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lossmith.data.sparse_rows import Inputs, SparseRows, as_tensor

__all__ = ["SparseLinear", "Spread", "bag", "first_table", "fitting_inputs"]

_SPREAD_OF_FEATURES = 0.1
"""What a fresh layer makes of a row of length 1. So small, what is learnt soon outweighs it, in rare columns, too."""


class SparseLinear(nn.Module):
    """A linear layer that reads only those weights that the columns of sparse rows ask for: an embedding bag with a bias.

    Args:
        columns: How many columns rows have.
        width: How many features it makes.

    >>> from lossmith.data.sparse_rows import SparseRows
    >>> rows = SparseRows(torch.tensor([0, 1, 3]), torch.tensor([2, 0, 1]), torch.tensor([5.0, 6.0, 7.0]), width=3)
    >>> layer = SparseLinear(3, 4)
    >>> torch.allclose(layer(rows), layer(rows.dense()))
    True
    """

    def __init__(self, columns: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(_SPREAD_OF_FEATURES * torch.randn(columns, width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, rows: Inputs) -> Tensor:
        """Return features ``(n, width)`` of rows ``(n, columns)``, sparse or not.

        Args:
            rows: The rows.

        Returns:
            The features.
        """
        if isinstance(rows, SparseRows):
            return bag(rows, self.weight) + self.bias
        return rows @ self.weight + self.bias


class Spread(nn.Module):
    """Writes out sparse rows in full, for layers that know nothing else."""

    def forward(self, rows: Inputs) -> Tensor:
        """Return rows with all their zeros.

        Args:
            rows: Rows, sparse or not.

        Returns:
            The same numbers as a tensor.
        """
        return as_tensor(rows)


def bag(rows: SparseRows, weight: Tensor) -> Tensor:
    """Return the product of sparse rows and a matrix.

    Args:
        rows: ``(n, columns)``.
        weight: ``(columns, width)``.

    Returns:
        ``(n, width)``.
    """
    values = rows.values.to(weight.dtype)
    offsets = rows.starts.to(rows.columns.dtype)
    return F.embedding_bag(rows.columns, weight, offsets, mode="sum", per_sample_weights=values, include_last_offset=True)


def first_table(model: nn.Module) -> str | None:
    """Return the name of the matrix that sparse rows are multiplied by; None where a model does not begin so.

    Args:
        model: Any module.

    Returns:
        A name as in ``model.named_parameters()``.
    """
    layers = (name for name, part in model.named_modules() if isinstance(part, SparseLinear))
    return next((f"{name}.weight".lstrip(".") for name in layers), None)


def fitting_inputs(model: nn.Module, inputs: Inputs) -> Inputs:
    """Return inputs as a model takes them: sparse rows are written out for one that has no layer for them.

    Args:
        model: The module.
        inputs: A row for each example.

    Returns:
        The inputs, or a tensor with all their zeros.
    """
    knows_sparse = any(isinstance(part, SparseLinear | Spread) for part in model.modules())
    return inputs if knows_sparse else as_tensor(inputs)
