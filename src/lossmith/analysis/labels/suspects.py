"""The share of wrong labels, what was taken for what, and the rows whose label is probably wrong."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import beta

from lossmith.analysis.arrays import Array, Numbers, at_labels, check_same_rows, probabilities_and_labels
from lossmith.analysis.labels.confusion import clean_probabilities, fit_confusion, wrong_chances
from lossmith.analysis.labels.saturation import fit_saturation
from lossmith.expressions.limits import Limits

__all__ = ["NoiseEstimate", "estimate_noise", "suspects"]

_COUNTED = 0.6
"""What a row counts for in intervals of classes, as in those of the whole: chances are not certainties."""


UNCLEAR = 0.15
"""From such a share of wrong predictions on, it matters whether labels are wrong where predictions are."""


@dataclass(frozen=True)
class NoiseEstimate:
    """How many labels are wrong, and what was taken for what."""

    rate: float
    """The share of wrong labels."""
    interval: tuple[float, float]
    """Where it is with 95 %, if the most certain predictions are right, and labels wrong as often where predictions are not."""
    error: float
    """The share of predictions that are taken to be wrong themselves."""
    disagreement: float
    """The share of rows whose label is not what is predicted, wrong or right."""
    joint: pd.DataFrame
    """The share of all rows with each true class, a row, and each label, a column."""
    transition: pd.DataFrame
    """The share of each true class, a row, that carries each label, a column: the ``matrix`` of ``forward-correction``."""
    by_class: pd.DataFrame
    """By label: ``rows``, the share of them that is ``wrong`` with its interval ``low`` to ``high``, ``probably``, the class that
    most of the wrong ones are of, and ``missed``, the share of the true class that carries other labels."""
    truths: Array
    """``(n, C)``: how probable each class is the true one of each row, given its inputs and its label."""

    @property
    def caution(self) -> str:
        """What such predictions cannot tell, in a sentence; empty where few of them are taken to be wrong."""
        if self.error < UNCLEAR:
            return ""
        return (
            f"{100 * self.error:.0f} % of the predictions are taken to be wrong themselves: labels that are wrong on such "
            "unclear rows alone, as people's often are, are not counted. In all, predictions disagree with "
            f"{100 * self.disagreement:.0f} % of the labels."
        )

    def __str__(self) -> str:
        low, high = self.interval
        return f"{100 * self.rate:.1f} % of the labels are wrong ({100 * low:.1f} to {100 * high:.1f})"


def estimate_noise(probabilities: Numbers, labels: Numbers, *, classes: Sequence[object] | None = None) -> NoiseEstimate:
    """Estimate how many labels are wrong, and what was taken for what, from predictions of rows that were not trained on.

    Agreement between predictions and labels grows with the certainty of predictions, up to where these are nearly always right:
    what they still disagree with are wrong labels. A curve that says so is fitted to all rows, and a matrix of what is taken for
    what to that. Where even the most certain predictions are often wrong, that cannot be told from wrong labels, and the
    estimate is too high. Where labels are wrong mostly on rows that predictions are wrong on, too, it is too low.

    Args:
        probabilities: Those of the classes for rows that were not trained on, from cross-validation say, ``(n, C)``.
        labels: The label of each row, ``(n,)``.
        classes: Names of the classes; numbers by default.

    Returns:
        The estimate, with its interval, its matrices, and the share of each label that is wrong.

    Raises:
        ValueError: If a row is no distribution, a label is no class, lengths do not match, or there is only one class.

    >>> generator = np.random.default_rng(0)
    >>> truth = generator.integers(2, size=2000)
    >>> scores = 1 / (1 + np.exp(-(2 * truth - 1) * generator.normal(3, 2, 2000)))
    >>> labels = np.where(generator.random(2000) < 0.2, 1 - truth, truth)
    >>> print(estimate_noise(np.stack([1 - scores, scores], 1), labels))
    19.6 % of the labels are wrong (16.1 to 22.9)
    """
    values, given = probabilities_and_labels("estimate_noise", probabilities, labels)
    names = _names(classes, values.shape[1])
    ordered = np.sort(values, 1)
    agrees = values.argmax(1) == given
    found = fit_saturation(ordered[:, -1] - ordered[:, -2], agrees, len(names))
    confusion = fit_confusion(clean_probabilities(values, found.error), given, found.rate)
    joint, transition = (pd.DataFrame(each, names.rename("true"), names.rename("label")) for each in confusion[:2])
    by_class = _by_class(confusion.truths, confusion.transition, given, names)
    shares = found.rate, found.interval, found.error, float(1 - agrees.mean())
    return NoiseEstimate(*shares, joint, transition, by_class, confusion.truths)


def suspects(
    probabilities: Numbers,
    labels: Numbers,
    *,
    classes: Sequence[object] | None = None,
    least: float = 0.5,
    estimate: NoiseEstimate | None = None,
) -> pd.DataFrame:
    """Return the rows whose label is probably wrong, the most suspect first.

    Args:
        probabilities: Those of the classes for rows that were not trained on, from cross-validation say, ``(n, C)``.
        labels: The label of each row, ``(n,)``.
        classes: Names of the classes; numbers by default.
        least: How likely a label must be wrong to be listed, 0 <= least <= 1.
        estimate: What :func:`estimate_noise` gave for the same rows, if it is at hand.

    Returns:
        A table with ``row``, from 0, ``label``, ``probably`` (the most probable other class), ``chance`` (how likely the label is
        wrong) and ``predicted`` (the probability that was predicted for the label).

    Raises:
        ValueError: If a row is no distribution, a label is no class, lengths do not match, or there is only one class.

    >>> probabilities = np.repeat([[0.98, 0.02], [0.03, 0.97]], 50, 0)
    >>> labels = np.repeat([0, 1], 50)
    >>> labels[3] = 1
    >>> suspects(probabilities, labels, classes=["cat", "dog"]).round(2)
       row label probably  chance  predicted
    0    3   dog      cat    0.66       0.02
    """
    values, given = probabilities_and_labels("suspects", probabilities, labels)
    Limits(0.0, 1.0).check("least", least, owner="suspects")
    names = _names(classes, values.shape[1])
    truths = (estimate or estimate_noise(values, given)).truths
    check_same_rows("suspects", "estimate", len(truths), len(values))
    others = truths.copy()
    others[np.arange(len(given)), given] = -1.0
    chances = wrong_chances(truths, given)
    order = np.lexsort((at_labels(values, given), -chances))
    rows = order[chances[order] >= least]
    return pd.DataFrame(
        {
            "row": rows,
            "label": names[given[rows]],
            "probably": names[others[rows].argmax(1)],
            "chance": chances[rows],
            "predicted": at_labels(values, given)[rows],
        }
    )


def _names(classes: Sequence[object] | None, number: int) -> pd.Index:
    if number < 2:
        raise ValueError(f"estimate_noise: probabilities must be of 2 classes at least, got {number}.")
    if classes is not None and len(classes) != number:
        raise ValueError(f"estimate_noise: classes must be {number} names, one for each column, got {len(classes)}.")
    return pd.Index(range(number) if classes is None else classes)


def _by_class(truths: Array, transition: Array, labels: Array, names: pd.Index) -> pd.DataFrame:
    classes = len(names)
    rows = np.bincount(labels, minlength=classes)
    sums = np.zeros((classes, classes))
    np.add.at(sums, labels, truths)
    shares = sums / np.maximum(rows, 1)[:, None]
    wrong = np.where(rows > 0, 1 - np.diag(shares), np.nan)
    low, high = beta.ppf([[0.025], [0.975]], _COUNTED * rows * wrong + 0.5, _COUNTED * rows * (1 - wrong) + 0.5)
    probably = names[np.where(np.eye(classes, dtype=bool), -1.0, shares).argmax(1)]
    ends = {"low": np.minimum(low, wrong), "high": np.maximum(high, wrong)}
    found = {"rows": rows, "wrong": wrong, **ends, "probably": probably, "missed": 1 - np.diag(transition)}
    return pd.DataFrame(found, names.rename("label"))
