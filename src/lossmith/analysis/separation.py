"""How far apart the classes are, compared with how far apart the examples of a class are.

The index averages the distances of all pairs of examples within a class, and of all pairs, every class counting the same.
With half the squared Euclidean distance ``|x - y|**2 / 2``, which for unit vectors is ``1 - cosine``, the averages collapse:

    within = mean over k of v_k,    all = within + mean over k of |m_k - m|**2,

where ``m_k`` and ``v_k`` are mean and variance of class k, and ``m`` is the mean of the ``m_k``. That takes O(n d), not
O(n**2 d), and sums of squares only, so that nothing cancels. The derivation is in docs/analysis.md.
"""

from dataclasses import dataclass

import numpy as np

from lossmith.analysis.arrays import Array, Numbers, as_labels, as_matrix
from lossmith.analysis.class_means import ClassMeans

__all__ = ["DISTANCES", "ClassSeparation", "SeparationSums", "class_separation", "unit_rows"]

DISTANCES = ("cosine", "centred-cosine", "euclidean")

# Differences of this many units in the last place, relative to the length of the vectors, are rounding.
_ROUNDING = 16 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class ClassSeparation:
    """Average distances between examples, every class counting the same."""

    within: float
    """Of pairs in the same class."""
    overall: float
    """Of all pairs."""
    classes: int
    """How many classes occur."""

    @property
    def r_squared(self) -> float:
        """Return ``1 - within / overall``: 0 where classes do not differ, 1 where each is a point; 0 where nothing varies."""
        return 1.0 - self.within / self.overall if self.overall > 0.0 else 0.0


def class_separation(features: Numbers, labels: Numbers, distance: str = "cosine") -> ClassSeparation:
    """Return the class separation of features ``(n, d)``, in O(n d).

    ``distance`` is ``cosine``; ``centred-cosine``, of features less their mean; or ``euclidean``, half the squared distance.
    A feature vector of zeros has no direction: it stays 0, and is at distance 1/2 from every direction and 0 from other zeros.

    Args:
        features: Vectors, ``(n, d)``.
        labels: The class of each example, ``(n,)``.
        distance: One of ``DISTANCES``.

    Returns:
        The mean distances within classes and overall.

    Raises:
        ValueError: If the distance is unknown, lengths do not match, or a number is not finite.

    >>> separation = class_separation([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [0, 0, 1])
    >>> round(separation.r_squared, 4)
    0.7965

    Reference: Kornblith, Chen, Lee and Norouzi 2021, equation 11 and table E.1.
    """
    if distance not in DISTANCES:
        raise ValueError(f"class_separation: distance must be one of {', '.join(DISTANCES)}, got {distance!r}.")
    values = as_matrix("class_separation", "features", features)
    centre = values[0] + (values - values[0]).mean(0) if distance == "centred-cosine" else None
    return SeparationSums(normalize=distance != "euclidean", centre=centre).update(values, labels).result()


class SeparationSums:
    """The class separation from one batch after another.

    It normalizes each example unless told otherwise; ``centre`` is subtracted before. The mean of all features, for the centred
    cosine, must be known beforehand, from a first pass: ``ClassMeans`` or a running sum.

    Args:
        normalize: Whether each example is divided by its length.
        centre: What is subtracted from each example before, ``(d,)``.

    >>> sums = SeparationSums()
    >>> for features, labels in [([[1.0, 0.0], [1.0, 1.0]], [0, 0]), ([[0.0, 1.0]], [1])]:
    ...     sums = sums.update(features, labels)
    >>> round(sums.result().r_squared, 4)
    0.7965
    """

    def __init__(self, *, normalize: bool = True, centre: Array | None = None) -> None:
        self._normalize = normalize
        self._centre = centre
        self._means = ClassMeans()
        self._largest = 0.0

    def update(self, features: Numbers, labels: Numbers) -> "SeparationSums":
        """Add a batch of features ``(n, d)`` and labels ``(n,)``.

        Args:
            features: Vectors, ``(n, d)``.
            labels: The class of each example, ``(n,)``.

        Returns:
            The same object, so that calls can be chained.

        Raises:
            ValueError: If lengths do not match or a number is not finite.
        """
        values = as_matrix("SeparationSums", "features", features)
        truth = as_labels("SeparationSums", labels, rows=len(values))
        length = np.linalg.norm(values, axis=1).max()
        if self._centre is not None:
            values = values - self._centre
        if self._normalize:
            values = unit_rows(values, zero_below=_ROUNDING * length if self._centre is not None else 0.0)
        self._largest = max(self._largest, float(np.linalg.norm(values, axis=1).max()))
        self._means.update(values, truth)
        return self

    def result(self) -> ClassSeparation:
        """Return the separation of what was added.

        Returns:
            The mean distances within classes and overall.

        Raises:
            ValueError: If no examples were added.
        """
        if len(self._means.counts) == 0:
            raise ValueError("SeparationSums: no examples were added.")
        centroids = self._means.relative_centroids
        within = float(self._means.variances.mean())
        between = float(np.square(centroids - centroids.mean(0)).sum(1).mean())
        if within + between <= (_ROUNDING * self._largest) ** 2:
            within = between = 0.0
        return ClassSeparation(within, within + between, len(centroids))


def unit_rows(values: Array, *, zero_below: float = 0.0) -> Array:
    """Return the rows divided by their length; rows that are no longer than ``zero_below`` become 0.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    # Divided by the largest entry first, squares neither overflow nor vanish.
    largest = np.abs(values).max(1, keepdims=True)
    scaled = values / np.where(largest > 0.0, largest, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    directed = largest * lengths > zero_below
    return np.where(directed, scaled, 0.0) / np.where(directed, lengths, 1.0)
