"""Singular values of features, weights and class centroids."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import svdvals

from lossmith.analysis.arrays import Array, Numbers, as_matrix

__all__ = ["Spectrum", "singular_spectrum"]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values, the largest first."""

    values: Array

    @property
    def relative(self) -> Array:
        """Return the values divided by the largest; zeros where all are 0."""
        return np.asarray(self.values / self.values[0] if self.values[0] > 0.0 else self.values)

    @property
    def effective_rank(self) -> float:
        """Return ``exp`` of the entropy of the values as shares of their sum: k for k equal values, 0 where all are 0.

        Reference: Roy and Vetterli 2007.
        """
        positive = self.relative[self.relative > 0.0]
        if len(positive) == 0:
            return 0.0
        shares = positive / positive.sum()
        return float(np.exp(-(shares * np.log(shares)).sum()))


def singular_spectrum(matrix: Numbers, *, centre: bool = False) -> Spectrum:
    """Return the singular values of features ``(n, d)``, weights ``(C, d)`` or class centroids ``(K, d)`` (figure E.2).

    With ``centre`` the mean of the rows is subtracted first. ``class_centroids`` gives the centroids.

    Args:
        matrix: Vectors as rows.
        centre: Whether to subtract the mean of the rows first.

    Returns:
        The singular values, the largest first.

    Raises:
        ValueError: If the matrix is empty or a number is not finite.

    >>> spectrum = singular_spectrum([[3.0, 0.0], [0.0, 3.0], [0.0, 0.0]])
    >>> spectrum.values, round(spectrum.effective_rank, 12)
    (array([3., 3.]), 2.0)
    """
    values = as_matrix("singular_spectrum", "matrix", matrix)
    if centre:
        values = values - values[0]  # first, so that rows that do not vary are exactly 0
        values = values - values.mean(0)
    if len(values) > 2 * values.shape[1]:
        # The triangular factor has the same singular values, without the errors of a Gram matrix.
        values = np.asarray(np.linalg.qr(values, mode="r"))
    return Spectrum(np.asarray(svdvals(values)))
