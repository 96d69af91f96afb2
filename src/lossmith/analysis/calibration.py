"""Whether predicted probabilities are to be believed.

Functions take probabilities ``(n, C)`` and labels ``(n,)``. Those that average over examples need no more memory than a batch:
:class:`CalibrationBins` takes one batch after another.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from lossmith.analysis.arrays import Array, Numbers, as_labels, as_matrix, as_probabilities
from lossmith.losses.limits import Limits

__all__ = [
    "CalibrationBins",
    "ReliabilityDiagram",
    "adaptive_calibration_error",
    "brier_score",
    "classwise_calibration_error",
    "expected_calibration_error",
    "logit_negative_log_likelihood",
    "negative_log_likelihood",
    "reliability_diagram",
]


def negative_log_likelihood(probabilities: Numbers, labels: Numbers) -> float:
    """Return the mean of ``-log p_y``. It is infinite if a label had probability 0: the model ruled out what happened.

    Where probabilities come from a softmax, a 0 is mostly a number too small for its precision, and
    :func:`logit_negative_log_likelihood` of the logits has the exact value.

    >>> round(negative_log_likelihood([[0.5, 0.5], [0.2, 0.8]], [0, 1]), 4)
    0.4581
    >>> negative_log_likelihood([[0.0, 1.0]], [0])
    inf
    """
    values, truth = _checked("negative_log_likelihood", probabilities, labels)
    with np.errstate(divide="ignore"):
        return float(-np.log(_at(values, truth)).mean())


def logit_negative_log_likelihood(logits: Numbers, labels: Numbers, *, temperature: float = 1.0) -> float:
    """Return the mean of ``-log softmax(logits / temperature)_y``, finite for every finite logit.

    >>> logit_negative_log_likelihood([[0.0, 1000.0]], [0])
    1000.0
    """
    owner = "logit_negative_log_likelihood"
    Limits(0.0, low_open=True).check("temperature", temperature, owner=owner)
    values = as_matrix(owner, "logits", logits) / temperature
    truth = as_labels(owner, labels, rows=len(values), classes=values.shape[1])
    return float(logsumexp(values - _at(values, truth)[:, None], axis=1).mean())


def brier_score(probabilities: Numbers, labels: Numbers) -> float:
    """Return the mean squared distance between the probabilities and the one-hot label: 0 is perfect, 2 is surely wrong.

    >>> round(brier_score([[0.5, 0.5], [0.2, 0.8]], [0, 1]), 4)
    0.29
    """
    values, truth = _checked("brier_score", probabilities, labels)
    target = _at(values, truth)
    others = np.square(values).sum(1) - target**2
    return float(np.maximum(others, 0.0).mean() + np.mean((1.0 - target) ** 2))


def expected_calibration_error(probabilities: Numbers, labels: Numbers, bins: int = 15) -> float:
    """Return the gap between confidence and accuracy in bins of the confidence, averaged over examples.

    The confidence is the largest probability. Bins are evenly spaced, ``((m - 1) / bins, m / bins]``, so that a confidence of 1
    is in the last one.

    >>> expected_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.25

    Reference: Guo, Pleiss, Sun and Weinberger 2017, equation 3.
    """
    return reliability_diagram(probabilities, labels, bins).expected_calibration_error


def reliability_diagram(probabilities: Numbers, labels: Numbers, bins: int = 15) -> "ReliabilityDiagram":
    """Return the confidence and the accuracy in evenly spaced bins of the confidence.

    >>> reliability_diagram([[0.75, 0.25], [0.9, 0.1]], [0, 1], bins=2).accuracy
    array([0. , 0.5])
    """
    return CalibrationBins(bins).update(probabilities, labels).diagram()


def classwise_calibration_error(probabilities: Numbers, labels: Numbers, bins: int = 15) -> float:
    """Return the calibration error of each class's probability against how often the class occurs, averaged over classes.

    It sees what :func:`expected_calibration_error` cannot: probabilities of classes that are not predicted.

    >>> classwise_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.25

    Reference: Kull et al. 2019, equation 4.
    """
    values, truth = _checked("classwise_calibration_error", probabilities, labels)
    _check_bins("classwise_calibration_error", bins)
    rows, classes = values.shape
    # Cell (class, bin) holds the sum of p - [label is the class] over its members.
    cells = _bin_numbers(values, bins) + bins * np.arange(classes)
    gaps = np.bincount(cells.ravel(), weights=values.ravel(), minlength=classes * bins)
    gaps -= np.bincount(_at(cells, truth), minlength=classes * bins)
    return float(np.abs(gaps).sum() / (rows * classes))


def adaptive_calibration_error(probabilities: Numbers, labels: Numbers, bins: int = 15) -> float:
    """Return the expected calibration error with bins that hold equally many examples, as far as they can be divided.

    Of examples with the same confidence each counts with their common accuracy, so that their order does not matter. With
    fewer examples than bins every example is a bin.

    >>> adaptive_calibration_error([[0.75, 0.25], [0.75, 0.25]], [0, 1], bins=1)
    0.25
    """
    values, truth = _checked("adaptive_calibration_error", probabilities, labels)
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
        """Add a batch of probabilities ``(n, C)`` and labels ``(n,)``."""
        values, truth = _checked("CalibrationBins", probabilities, labels)
        confidence = values.max(1)
        members = _bin_numbers(confidence, self.bins)
        self._counts += np.bincount(members, minlength=self.bins)
        self._confidence += np.bincount(members, weights=confidence, minlength=self.bins)
        self._right += np.bincount(members, weights=values.argmax(1) == truth, minlength=self.bins)
        return self

    def diagram(self) -> ReliabilityDiagram:
        """Return the averages of what was added."""
        if not self._counts.any():
            raise ValueError("CalibrationBins: no examples were added.")
        occupied = np.maximum(self._counts, 1)
        edges = np.arange(self.bins + 1) / self.bins
        return ReliabilityDiagram(edges, self._counts.copy(), self._confidence / occupied, self._right / occupied)


def _checked(owner: str, probabilities: Numbers, labels: Numbers) -> tuple[Array, Array]:
    values = as_probabilities(owner, probabilities)
    return values, as_labels(owner, labels, rows=len(values), classes=values.shape[1])


def _check_bins(owner: str, bins: int) -> None:
    Limits(1, whole=True).check("bins", bins, owner=owner)


def _at(values: Array, labels: Array) -> Array:
    chosen: Array = values[np.arange(len(values)), labels]
    return chosen


def _bin_numbers(values: Array, bins: int) -> Array:
    """Return the m of ``(m / bins, (m + 1) / bins]``; 0 is in the first bin, too."""
    inner_edges = np.arange(1, bins) / bins
    return np.searchsorted(inner_edges, values, side="left")
