"""What is taken for what: matrices of the shares of each true class, a row, that carry each label, a column."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.expressions.printed_form import printed_value
from lossmith.expressions.quotes import quote

__all__ = ["MATRICES", "Estimate", "GivenMatrix", "LabelMatrix", "PairMatrix", "SymmetricMatrix", "as_label_matrix"]

_RATE = Limits(0.0, 1.0, high_open=True)
_ROUNDING = 1e-5
"""How far the shares of a class may be from 1: what single precision and printed digits leave."""


class LabelMatrix:
    """Base of what may be given as ``matrix``."""

    def of(self, num_classes: int, like: Tensor) -> Tensor:
        """Return the shares of each true class that carry each label.

        Args:
            num_classes: How many classes there are.
            like: A tensor whose device and type the matrix gets.

        Returns:
            ``(classes, classes)``; every row adds up to 1.

        Raises:
            ValueError: If the matrix is for another number of classes.
        """
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class _OneRate(LabelMatrix):
    """Base of matrices for any number of classes, that one rate describes."""

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _RATE.check("rate", self.rate, owner=type(self).__name__))

    def __repr__(self) -> str:
        return f"{_NAMES[type(self)]}({self.rate})"

    def of(self, num_classes: int, like: Tensor) -> Tensor:
        own = torch.eye(num_classes, dtype=like.dtype, device=like.device)
        return own if num_classes == 1 else (1 - self.rate) * own + self.rate * self._others(own)

    def _others(self, own: Tensor) -> Tensor:
        """Return what becomes of wrong labels, a row a class."""
        raise NotImplementedError


class SymmetricMatrix(_OneRate):
    """Wrong labels are spread evenly over the other classes."""

    def _others(self, own: Tensor) -> Tensor:
        return (1 - own) / (len(own) - 1)


class PairMatrix(_OneRate):
    """Wrong labels are those of the next class, and of the first for the last."""

    def _others(self, own: Tensor) -> Tensor:
        return own.roll(1, 1)


class GivenMatrix(LabelMatrix):
    """Shares that were given, row by row.

    Args:
        *rows: The shares of each true class that carry each label; every row adds up to 1, and every label is somebody's.
    """

    def __init__(self, *rows: Sequence[float] | Tensor) -> None:
        try:
            matrix = torch.stack([torch.as_tensor(row, dtype=torch.float64, device="cpu") for row in rows])
        except (RuntimeError, TypeError, ValueError):
            raise ValueError(f"matrix: must be rows of numbers of one length, got {quote(list(rows), 80)}") from None
        if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
            raise ValueError(f"matrix: must be square, of 2 classes at least, got shape {tuple(matrix.shape)}.")
        _check_shares(matrix)
        self.matrix = matrix / matrix.sum(1, keepdim=True)

    def __repr__(self) -> str:
        return f"matrix({', '.join(printed_value(row.tolist()) for row in self.matrix)})"

    def of(self, num_classes: int, like: Tensor) -> Tensor:
        """Return the shares, in the type and on the device of another tensor."""
        if num_classes != len(self.matrix):
            raise ValueError(f"matrix: must have a row for each of {num_classes} classes, got {len(self.matrix)}.")
        return self.matrix.to(like)


def _check_shares(matrix: Tensor) -> None:
    for number, row in enumerate(matrix):
        if not (bool((row >= 0).all()) and abs(float(row.sum()) - 1) <= _ROUNDING):
            raise ValueError(f"matrix: row {number} must be shares that add up to 1, got {quote(row.tolist(), 80)}.")
    for number, column in enumerate(matrix.T):
        if not bool((column > 0).any()):
            raise ValueError(f"matrix: label {number} must be that of some class, got a column of zeros.")


class Estimate(LabelMatrix):
    """Stands for the matrix that ``lossmith compare`` estimates from the training rows."""

    def __repr__(self) -> str:
        return "estimate"

    def of(self, num_classes: int, like: Tensor) -> Tensor:
        """Raise an error: only data can tell."""
        raise ValueError(
            "matrix: estimate is filled in by compare, from training rows; elsewhere give the matrix,"
            " such as that of lossmith.analysis.estimate_noise(...)."
        )


MATRICES: Mapping[str, Callable[..., LabelMatrix]] = {
    "symmetric": SymmetricMatrix,
    "pair": PairMatrix,
    "matrix": GivenMatrix,
    "estimate": Estimate,
}
"""What can be written after ``matrix=``."""
_NAMES = {kind: name for name, kind in MATRICES.items()}


def as_label_matrix(matrix: Any, owner: str) -> LabelMatrix | None:
    """Return a matrix of labels from whatever was given.

    Args:
        matrix: A matrix of the catalogue, rows of numbers, or None.
        owner: Whom the error names.

    Returns:
        The matrix, or None.

    Raises:
        ValueError: If it is no matrix of shares.

    >>> as_label_matrix([[0.9, 0.1], [0.5, 0.5]], "ForwardCorrection")
    matrix([0.9, 0.1], [0.5, 0.5])
    """
    if matrix is None or isinstance(matrix, LabelMatrix):
        return matrix
    if hasattr(matrix, "to_numpy"):  # a data frame, which would give the names of its columns
        matrix = np.array(matrix.to_numpy())
    try:
        return GivenMatrix(*matrix)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{owner}: {error}") from None
