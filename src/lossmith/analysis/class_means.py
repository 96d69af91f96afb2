"""Means and scatters of the classes, from one batch of features after another."""

import numpy as np
from scipy.sparse import csr_array

from lossmith.analysis.arrays import Array, Numbers, as_labels, as_matrix

__all__ = ["ClassMeans", "class_centroids"]


class ClassMeans:
    """The mean of each class and the squared distances from it.

    Batches are joined by the update of Chan, Golub and LeVeque, relative to the first example: nothing cancels, however far
    from 0 the features are, and features that do not vary have a scatter of exactly 0.

    >>> means = ClassMeans().update(np.array([[1.0], [3.0], [8.0]]), np.array([0, 0, 2]))
    >>> means.centroids
    array([[2.], [8.]])
    >>> means.variances
    array([1., 0.])
    """

    def __init__(self) -> None:
        self._origin: Array | None = None
        self._counts = np.zeros(0, dtype=np.int64)
        self._means = np.zeros((0, 0))
        self._scatters = np.zeros(0)

    def update(self, features: Array, labels: Array) -> "ClassMeans":
        """Add a batch of checked features ``(n, d)`` and labels ``(n,)``.

        Args:
            features: Finite numbers, ``(n, d)``.
            labels: The class of each example, ``(n,)``.

        Returns:
            The same object, so that calls can be chained.

        Raises:
            ValueError: If the features have another width than those before.
        """
        if self._origin is None:
            self._origin = features[0].copy()
            self._means = np.zeros((0, features.shape[1]))
        if features.shape[1] != len(self._origin):
            raise ValueError(f"ClassMeans: features must have {len(self._origin)} columns, got {features.shape[1]}.")
        self._grow(int(labels.max()) + 1)
        self._join(features - self._origin, labels)
        return self

    @property
    def occurring(self) -> Array:
        """Return the classes that have examples."""
        return np.flatnonzero(self._counts)

    @property
    def counts(self) -> Array:
        """Return how many examples each occurring class has."""
        return np.asarray(self._counts[self._counts > 0])

    @property
    def centroids(self) -> Array:
        """Return the mean of each occurring class ``(K, d)``."""
        return np.asarray(self.relative_centroids + self._origin)

    @property
    def relative_centroids(self) -> Array:
        """Return the means relative to the first example, in which small differences keep their digits."""
        return np.asarray(self._means[self._counts > 0])

    @property
    def variances(self) -> Array:
        """Return the mean squared distance of the examples of each occurring class from its mean."""
        return np.asarray(self._scatters[self._counts > 0] / self.counts)

    def _grow(self, classes: int) -> None:
        missing = max(0, classes - len(self._counts))
        self._counts = np.pad(self._counts, (0, missing))
        self._means = np.pad(self._means, ((0, missing), (0, 0)))
        self._scatters = np.pad(self._scatters, (0, missing))

    def _join(self, features: Array, labels: Array) -> None:
        counts = np.bincount(labels, minlength=len(self._counts))
        members = csr_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)), shape=(len(labels), len(counts)))
        means = (members.T @ features) / np.maximum(counts, 1)[:, None]
        distances = np.square(features - means[labels]).sum(1)
        total = np.maximum(self._counts + counts, 1)
        shift = means - self._means
        self._scatters += np.bincount(labels, weights=distances, minlength=len(counts))
        self._scatters += np.square(shift).sum(1) * self._counts * counts / total
        self._means += shift * (counts / total)[:, None]
        self._counts = self._counts + counts


def class_centroids(features: Numbers, labels: Numbers) -> Array:
    """Return the mean of each class that occurs ``(K, d)``, in the order of the classes.

    Args:
        features: Vectors, ``(n, d)``.
        labels: The class of each example, ``(n,)``.

    Returns:
        A row for each class that occurs.

    Raises:
        ValueError: If lengths do not match or a number is not finite.

    >>> class_centroids([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]], [0, 0, 1])
    array([[2., 0.],
           [0., 5.]])
    """
    values = as_matrix("class_centroids", "features", features)
    return ClassMeans().update(values, as_labels("class_centroids", labels, rows=len(values))).centroids
