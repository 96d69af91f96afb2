"""Angles between features, class weights and one another."""

from dataclasses import dataclass

import numpy as np

from lossmith.analysis.arrays import Array, Numbers, as_labels, as_matrix
from lossmith.analysis.separation import unit_rows
from lossmith.expressions.limits import Limits

__all__ = ["CosineDistances", "angular_visual_hardness", "cosine_distances"]

_BLOCK = 1024


def angular_visual_hardness(features: Numbers, weights: Numbers, labels: Numbers) -> Array:
    """Return for each example its angle to the weights of its class, as a share of the sum of its angles to all classes.

    ``features`` are ``(n, d)``, ``weights`` of the final layer ``(C, d)``. Small is easy; an example that leans to no class
    has 1 / C, and so has one all of whose angles are 0. A vector of zeros is at right angles to everything.

    Args:
        features: What the final layer saw, ``(n, d)``.
        weights: Those of the final layer, ``(C, d)``.
        labels: The class of each example, ``(n,)``.

    Returns:
        The hardness of each example, ``(n,)``, between 0 and 1.

    Raises:
        ValueError: If widths or lengths do not match, a label is no class, or a number is not finite.

    >>> angular_visual_hardness([[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [0, 0])
    array([0. , 0.5])

    Reference: Chen et al. 2020, definition 1.
    """
    owner = "angular_visual_hardness"
    x, w = as_matrix(owner, "features", features), as_matrix(owner, "weights", weights)
    if x.shape[1] != w.shape[1]:
        raise ValueError(f"{owner}: weights must have {x.shape[1]} columns, as features have, got {w.shape[1]}.")
    truth = as_labels(owner, labels, rows=len(x), classes=len(w))
    angles = _angles(unit_rows(x), unit_rows(w))
    total = angles.sum(1)
    shares = angles[np.arange(len(truth)), truth] / np.where(total > 0.0, total, 1.0)
    return np.where(total > 0.0, shares, 1.0 / len(w))


def _angles(x: Array, w: Array) -> Array:
    """Return the angles between unit rows; where the cosine is close to 1 or -1, from the chord, which keeps its digits."""
    cosines = np.clip(x @ w.T, -1.0, 1.0)
    angles: Array = np.arccos(cosines)
    rows, classes = np.nonzero(np.abs(cosines) > 0.99)
    for start in range(0, len(rows), _BLOCK):
        i, j = rows[start : start + _BLOCK], classes[start : start + _BLOCK]
        apart, together = np.linalg.norm(x[i] - w[j], axis=1), np.linalg.norm(x[i] + w[j], axis=1)
        angles[i, j] = 2.0 * np.arctan2(apart, together)
    return angles


@dataclass(frozen=True, eq=False)
class CosineDistances:
    """Histograms of ``1 - cosine`` over pairs of different examples."""

    edges: Array
    """``(bins + 1,)``: from 0 to 2."""
    within: Array
    """``(bins,)``: pairs of the same class."""
    between: Array
    """``(bins,)``: pairs of different classes."""

    def density(self, pairs: Array) -> Array:
        """Return a histogram as a density that integrates to 1, or zeros where there are no pairs.

        Args:
            pairs: One of the histograms, ``within`` or ``between``.

        Returns:
            The density in each bin, ``(bins,)``.
        """
        return np.asarray(pairs / (max(int(pairs.sum()), 1) * np.diff(self.edges)))


def cosine_distances(features: Numbers, labels: Numbers, bins: int = 100) -> CosineDistances:
    """Return how cosine distances are distributed within and between classes, over all pairs of examples.

    All n (n - 1) / 2 pairs are counted, in blocks of rows. Vectors of zeros are at distance 1/2 from every direction and 0 from
    one another, as in :func:`lossmith.analysis.class_separation`.

    Args:
        features: Vectors of any length, ``(n, d)``.
        labels: The class of each example, ``(n,)``.
        bins: The number of bins between 0 and 2.

    Returns:
        The histograms of pairs within and between classes.

    Raises:
        ValueError: If lengths do not match, a number is not finite, or ``bins`` is below 1.

    >>> distances = cosine_distances([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 0, 1], bins=4)
    >>> distances.within, distances.between
    (array([1, 0, 0, 0]), array([0, 0, 2, 0]))
    """
    x = as_matrix("cosine_distances", "features", features)
    truth = as_labels("cosine_distances", labels, rows=len(x))
    Limits(1, whole=True).check("bins", bins, owner="cosine_distances")
    units = unit_rows(x)
    counts = np.zeros((2, bins), dtype=np.int64)
    for start in range(0, len(x), _BLOCK):
        block, later = slice(start, start + _BLOCK), slice(start + _BLOCK, None)
        own = _histogram(units[block], units[block], truth[block], truth[block], bins)
        own[0, 0] -= len(units[block])  # an example and itself; every other pair was counted from both sides
        counts += own // 2 + _histogram(units[block], units[later], truth[block], truth[later], bins)
    return CosineDistances(2.0 * np.arange(bins + 1) / bins, counts[0], counts[1])


def _histogram(first: Array, second: Array, first_labels: Array, second_labels: Array, bins: int) -> Array:
    """Count the pairs of two sets of unit rows by their distance: those of the same class, and the others."""
    squares = [np.square(rows).sum(1) / 2.0 for rows in (first, second)]
    # Rounded to 12 digits, so that the edges of bins are not decided by rounding.
    distances = np.round(squares[0][:, None] + squares[1][None, :] - first @ second.T, 12)
    cells = np.clip((distances * (bins / 2.0)).astype(np.int64), 0, bins - 1)
    cells += bins * (first_labels[:, None] != second_labels[None, :])
    return np.bincount(cells.ravel(), minlength=2 * bins).reshape(2, bins)
