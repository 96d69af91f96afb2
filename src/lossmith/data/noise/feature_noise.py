"""Label noise that looks at the features: examples near the boundary between classes, or far from it, or all in their own way."""

import warnings
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from lossmith.data.noise.label_noise import Labels, Numbers, RateNoise
from lossmith.data.prepared import PreparedData
from lossmith.data.sparse_rows import SparseRows

__all__ = ["InstanceNoise", "LargeMarginNoise", "Margins", "SmallMarginNoise", "margins"]

_BLUR = 0.25  # how far seeds move a row in the order of margins, as a share of all rows
_SPREAD = 0.1  # standard deviation of the flip probability among examples
_FITTED_ROWS = 5000
_WORD_BUCKETS = 512


class Margins(NamedTuple):
    """How far examples are from the boundary of a linear classifier."""

    distances: Numbers
    """``(n,)``: from the nearest boundary of the own class, negative on its far side."""
    rivals: Labels
    """``(n,)``: the class on the other side of it."""


_KNOWN_MARGINS: WeakKeyDictionary[PreparedData, Margins] = WeakKeyDictionary()


def margins(data: PreparedData) -> Margins:
    """Measure the margin of every row by a logistic regression that is fitted to true labels of training rows.

    The fit depends on neither seed nor rate, so it is kept for as long as the data is.

    Args:
        data: The data.

    Returns:
        The margin and the nearest other class of every row.
    """
    if data not in _KNOWN_MARGINS:
        _KNOWN_MARGINS[data] = _measured(_features(data), data)
    return _KNOWN_MARGINS[data]


def _measured(features: Any, data: PreparedData) -> Margins:
    truth = (data.labels if data.true_labels is None else data.true_labels).numpy()
    weights, biases = _logistic_regression(features, truth, data.train.numpy(), data.num_classes)
    scores = features @ weights.T + biases
    own, rows = data.labels.numpy(), np.arange(features.shape[0])
    between = np.linalg.norm(weights[:, None] - weights[None], axis=2)  # of each pair of classes, how steep their boundary is
    distances = (scores[rows, own][:, None] - scores) / np.maximum(between[own], np.finfo(np.float64).tiny)
    distances[rows, own] = np.inf
    rivals = distances.argmin(1)
    return Margins(distances[rows, rivals], rivals)


class _MarginNoise(RateNoise):
    """Takes examples in an order of margins, which the seed blurs, and gives them the label beyond the nearest boundary."""

    def _noisy(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Labels:
        known = margins(data)
        distances, rivals = known.distances[rows], known.rivals[rows]
        places = np.empty(len(rows))
        places[np.argsort(self._order(distances), kind="stable")] = np.arange(len(rows)) / max(len(rows), 1)
        keys = places + _BLUR * self._draws(data, rows, seed, "rows")
        return np.where(self._first(keys), rivals, labels)

    def _order(self, distances: Numbers) -> Numbers:
        raise NotImplementedError


class SmallMarginNoise(_MarginNoise):
    """Examples near the boundary between classes carry the label of the other side; ``rate`` is the share of wrong labels.

    The boundary is that of a logistic regression on true labels. See Amid, Warmuth, Anil and Koren, "Robust bi-tempered
    logistic loss", figure 2(b).
    """

    name = "small-margin"

    def _order(self, distances: Numbers) -> Numbers:
        return np.abs(distances)


class LargeMarginNoise(_MarginNoise):
    """Examples far from the boundary, deep in their class, carry the label of the nearest other one: outliers.

    See :class:`SmallMarginNoise`, and figure 2(c) of the same paper.
    """

    name = "large-margin"

    def _order(self, distances: Numbers) -> Numbers:
        return -distances


class InstanceNoise(RateNoise):
    """Every example has its own chance to be wrong, around ``rate``, and its features decide which class it is taken for.

    The chance is normal with deviation 0.1, cut off at 0 and 1. The class is drawn from the softmax of a random projection of
    the features, one for each true class. Examples are drawn independently, so that the share of wrong labels is only near
    the rate. Follows Xia et al., "Part-dependent label noise" (2020).
    """

    name = "instance"

    def _noisy(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Labels:
        from scipy.stats import truncnorm

        if self.rate == 0:
            return labels
        ends = (-self.rate / _SPREAD, (1 - self.rate) / _SPREAD)
        # The same quantile for every rate: a chance grows with the rate, and who is wrong stays wrong.
        chances = self.rate + _SPREAD * truncnorm.ppf(self._draws(data, rows, seed, "chances"), *ends)
        wrong = self._draws(data, rows, seed, "rows") < chances
        return np.where(wrong, self._taken_for(data, rows, labels, seed), labels)

    def _taken_for(self, data: PreparedData, rows: Labels, labels: Labels, seed: int) -> Labels:
        features = _features(data)
        generator = self._generator(seed, "projections")
        noise = -np.log(-np.log(self._generator(seed, "classes").uniform(1e-300, 1.0, (len(data.labels), data.num_classes))))[
            rows
        ]
        taken = labels.copy()
        for label in range(data.num_classes):
            projection = generator.standard_normal((features.shape[1], data.num_classes))
            members = np.flatnonzero(labels == label)
            scores = features[rows[members]] @ projection + noise[members]  # the largest is a draw from the softmax
            scores[:, label] = -np.inf
            taken[members] = scores.argmax(1)
        return taken


def _features(data: PreparedData) -> Any:
    """Return the inputs as rows of numbers, sparse where they are.

    Of words, that is how often each comes, with words that share a bucket counted together.
    """
    if isinstance(data.inputs, SparseRows):
        return data.inputs.matrix()
    if data.inputs.is_floating_point():
        return np.asarray(data.inputs.flatten(1).numpy())
    words = data.inputs.numpy()
    counts = np.zeros((len(words), _WORD_BUCKETS))
    np.add.at(counts, (np.arange(len(words))[:, None], words % _WORD_BUCKETS), words > 0)
    return counts


def _logistic_regression(features: Any, labels: Labels, rows: Labels, num_classes: int) -> tuple[Numbers, Numbers]:
    """Return weights ``(classes, d)`` and biases; classes without rows are never rivals."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if len(rows) > _FITTED_ROWS:
        rows = np.random.default_rng(0).choice(rows, _FITTED_ROWS, replace=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a boundary that is nearly there serves as well
        model = LogisticRegression(C=1.0, max_iter=100).fit(features[rows], labels[rows])
    weights, biases = np.zeros((num_classes, features.shape[1])), np.full(num_classes, -np.inf)
    found = model.coef_, model.intercept_
    if len(model.classes_) == 2:  # which scikit-learn gives one score
        found = np.concatenate([-found[0] / 2, found[0] / 2]), np.concatenate([-found[1] / 2, found[1] / 2])
    weights[model.classes_], biases[model.classes_] = found
    return weights, biases
