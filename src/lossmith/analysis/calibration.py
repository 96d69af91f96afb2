"""Whether predicted probabilities are to be believed.

Functions take probabilities ``(n, C)`` and labels ``(n,)``. Those that average over examples need no more memory than a batch:
:class:`CalibrationBins` takes one batch after another.
"""

from dataclasses import dataclass

import numpy as np

from lossmith.analysis.arrays import Array, Numbers, at_labels, probabilities_and_labels
from lossmith.expressions.limits import Limits

__all__ = [
    "CalibrationBins",
    "ReliabilityDiagram",
    "adaptive_calibration_error",
    "classwise_calibration_error",
    "expected_calibration_error",
    "reliability_diagram",
]


def expected_calibration_error(probabilities: Numbers, labels: Numbers, bins: int = 15) -> float:
    """Return the gap between confidence and accuracy in bins of the confidence, averaged over examples.

    The confidence is the largest probability. Bins are evenly spaced, ``((m - 1) / bins, m / bins]``, so that a confidence of 1
    is in the last one.

    Args:
        probabilities: Those of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.
        bins: The number of bins of the confidence.

    Returns:
        The mean gap, between 0 and 1.

    Raises:
        ValueError: If a row is no distribution, a label is no class, lengths do not match, or ``bins`` is below 1.

    >>> expected_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.25

    Reference: Guo, Pleiss, Sun and Weinberger 2017, equation 3.
    """
    return reliability_diagram(probabilities, labels, bins).expected_calibration_error


def reliability_diagram(probabilities: Numbers, labels: Numbers, bins: int = 15) -> "ReliabilityDiagram":
    """Return the confidence and the accuracy in evenly spaced bins of the confidence.

    Args:
        probabilities: Those of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.
        bins: The number of bins of the confidence.

    Returns:
        What a reliability diagram draws.

    Raises:
        ValueError: If a row is no distribution, a label is no class, lengths do not match, or ``bins`` is below 1.

    >>> reliability_diagram([[0.75, 0.25], [0.9, 0.1]], [0, 1], bins=2).accuracy
    array([0. , 0.5])
    """
    return CalibrationBins(bins).update(probabilities, labels).diagram()


def classwise_calibration_error(probabilities: Numbers, labels: Numbers, bins: int = 15) -> float:
    """Return the calibration error of each class's probability against how often the class occurs, averaged over classes.

    It sees what :func:`expected_calibration_error` cannot: probabilities of classes that are not predicted.

    Args:
        probabilities: Those of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.
        bins: The number of bins of each class's probability.

    Returns:
        The mean gap, between 0 and 1.

    Raises:
        ValueError: If a row is no distribution, a label is no class, lengths do not match, or ``bins`` is below 1.

    >>> classwise_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.25

    Reference: Kull et al. 2019, equation 4.
    """
    values, truth = probabilities_and_labels("classwise_calibration_error", probabilities, labels)
    _check_bins("classwise_calibration_error", bins)
    rows, classes = values.shape
    # Cell (class, bin) holds the sum of p - [label is the class] over its members.
    cells = _bin_numbers(values, bins) + bins * np.arange(classes)
    gaps = np.bincount(cells.ravel(), weights=values.ravel(), minlength=classes * bins)
    gaps -= np.bincount(at_labels(cells, truth), minlength=classes * bins)
    return float(np.abs(gaps).sum() / (rows * classes))


def adaptive_calibration_error(probabilities: Numbers, labels: Numbers, bins: int = 15) -> float:
    """Return the expected calibration error with bins that hold equally many examples, as far as they can be divided.

    Of examples with the same confidence each counts with their common accuracy, so that their order does not matter. With
    fewer examples than bins every example is a bin.

    Args:
        probabilities: Those of the classes, ``(n, C)``.
        labels: The class of each example, ``(n,)``.
        bins: The number of bins, which hold equally many examples.

    Returns:
        The mean gap, between 0 and 1.

    Raises:
        ValueError: If a row is no distribution, a label is no class, lengths do not match, or ``bins`` is below 1.

    >>> adaptive_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 1], bins=1)
    0.25
    """
    values, truth = probabilities_and_labels("adaptive_calibration_error", probabilities, labels)
    _check_bins("adaptive_calibration_error", bins)
    _, group, sizes = np.unique(values.max(1), return_inverse=True, return_counts=True)
    gap = values.max(1) - (np.bincount(group, weights=values.argmax(1) == truth) / sizes)[group]
    in_order = np.array_split(gap[np.argsort(group, kind="stable")], min(bins, len(gap)))
    return float(sum(abs(part.sum()) for part in in_order) / len(gap))


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram:
    """Confidence and accuracy in bins of the confidence; both are 0 in empty bins."""

    edges: Array
    """``(bins + 1,)``: from 0 to 1."""
    counts: Array
    """``(bins,)``: how many examples."""
    confidence: Array
    """``(bins,)``: the mean."""
    accuracy: Array
    """``(bins,)``: the share of right predictions."""

    @property
    def expected_calibration_error(self) -> float:
        """Return the gap averaged over examples."""
        return float(self.counts @ np.abs(self.confidence - self.accuracy) / self.counts.sum())

    @property
    def maximum_calibration_error(self) -> float:
        """Return the gap of the worst bin."""
        return float(np.abs(self.confidence - self.accuracy).max())


class CalibrationBins:
    """Sums by bin of the confidence, from one batch after another.

    Args:
        bins: The number of evenly spaced bins.

    Raises:
        ValueError: If ``bins`` is below 1.

    >>> bins = CalibrationBins(bins=10)
    >>> for probabilities, labels in [([[0.75, 0.25]], [0]), ([[0.75, 0.25]], [1])]:
    ...     bins = bins.update(probabilities, labels)
    >>> bins.diagram().expected_calibration_error
    0.25
    """

    def __init__(self, bins: int = 15) -> None:
        _check_bins("CalibrationBins", bins)
        self.bins = bins
        self._counts = np.zeros(bins, dtype=np.int64)
        self._confidence = np.zeros(bins)
        self._right = np.zeros(bins)

    def update(self, probabilities: Numbers, labels: Numbers) -> "CalibrationBins":
        """Add a batch of probabilities ``(n, C)`` and labels ``(n,)``.

        Args:
            probabilities: Those of the classes, ``(n, C)``.
            labels: The class of each example, ``(n,)``.

        Returns:
            The same object, so that calls can be chained.

        Raises:
            ValueError: If a row is no distribution, a label is no class, or lengths do not match.
        """
        values, truth = probabilities_and_labels("CalibrationBins", probabilities, labels)
        confidence = values.max(1)
        members = _bin_numbers(confidence, self.bins)
        self._counts += np.bincount(members, minlength=self.bins)
        self._confidence += np.bincount(members, weights=confidence, minlength=self.bins)
        self._right += np.bincount(members, weights=values.argmax(1) == truth, minlength=self.bins)
        return self

    def diagram(self) -> ReliabilityDiagram:
        """Return the averages of what was added.

        Returns:
            What a reliability diagram draws.

        Raises:
            ValueError: If no examples were added.
        """
        if not self._counts.any():
            raise ValueError("CalibrationBins: no examples were added.")
        occupied = np.maximum(self._counts, 1)
        edges = np.arange(self.bins + 1) / self.bins
        return ReliabilityDiagram(edges, self._counts.copy(), self._confidence / occupied, self._right / occupied)


def _check_bins(owner: str, bins: int) -> None:
    Limits(1, whole=True).check("bins", bins, owner=owner)


def _bin_numbers(values: Array, bins: int) -> Array:
    """Return the m of ``(m / bins, (m + 1) / bins]``; 0 is in the first bin, too."""
    inner_edges = np.arange(1, bins) / bins
    return np.searchsorted(inner_edges, values, side="left")
