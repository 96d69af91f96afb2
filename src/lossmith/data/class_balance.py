"""Classes that are much more frequent than others."""

import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lossmith.data.sources.examples import Array
from lossmith.expressions.limits import Limits
from lossmith.expressions.quotes import quote
from lossmith.losses.rare_classes.class_weights import DEFAULT_BETA, class_balanced_weights

__all__ = ["check_weighting", "class_counts", "class_weights", "imbalance_notes", "weights_by"]

# Of an even share: what the largest class has at least, or the smallest at most, where classes are called uneven.
_LARGE = 3.0
_SMALL = 0.2
WEIGHTINGS = ("none", "balanced", "effective")
"""How classes can be weighed."""


def class_weights(labels: Tensor, num_classes: int) -> Tensor:
    """Return a weight for each class with which all classes count alike, as scikit-learn's ``balanced`` does.

    With n rows of k classes, a class of c rows weighs ``n / (k c)``, so that the mean weight of a row is 1. A class without
    rows, which is none of the k, weighs 0: nothing can be said of it, and it must not pull where labels are smoothed.

    Args:
        labels: The class indices of the training rows, as they are trained with.
        num_classes: How many classes there are.

    Returns:
        Weights ``(num_classes,)`` in single precision, for the option ``weight`` of any loss.

    Raises:
        TypeError: If the labels are not a tensor of integers, or the number of classes is not whole.
        ValueError: If there are no labels, or one is no class.

    >>> class_weights(torch.tensor([0, 0, 0, 2]), num_classes=3)
    tensor([0.6667, 0.0000, 2.0000])
    """
    Limits(2, whole=True).check("num_classes", num_classes, owner="class_weights")
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        got = labels.dtype if isinstance(labels, Tensor) else type(labels).__name__
        raise TypeError(f"class_weights: labels must be a tensor of integers, got {got}.")
    if labels.dim() != 1 or not len(labels):
        raise ValueError(f"class_weights: labels must be one or more in a row, got shape {tuple(labels.shape)}.")
    lowest, highest = int(labels.min()), int(labels.max())
    if lowest < 0 or highest >= num_classes:
        wrong = quote(lowest if lowest < 0 else highest)
        raise ValueError(f"class_weights: labels must be classes from 0 to {num_classes - 1}, got {wrong}.")
    counts = torch.bincount(labels.long(), minlength=num_classes).double()
    present = counts > 0
    weights = len(labels) / (present.sum() * counts.clamp(min=1))
    return torch.where(present, weights, 0.0).float()


def check_weighting(how: str) -> None:
    """Raise an error for a way to weigh classes that nobody knows.

    Args:
        how: ``none``, ``balanced``, ``effective`` or ``effective(BETA)``.

    Raises:
        ValueError: If it is none of these, or beta is out of its range.
    """
    if how in WEIGHTINGS:
        return
    beta = _beta(how)
    if beta is None:
        raise ValueError(f"compare: class_weight must be one of {', '.join(WEIGHTINGS)} or effective(BETA), got {quote(how)}.")
    Limits(0.0, 1.0).check("beta of class_weight", beta, owner="compare")


def _beta(how: str) -> float | None:
    """Return the number of ``effective(BETA)``, or None for anything else."""
    found = re.fullmatch(r"effective(?:\(\s*([\d.eE+-]+)\s*\))?", how)
    try:
        return None if found is None else float(found[1] or DEFAULT_BETA)
    except ValueError:
        return None


def weights_by(how: str, labels: Tensor, num_classes: int) -> Tensor | None:
    """Return a weight for each class by one of the ways that ``compare`` knows.

    Args:
        how: ``none``; ``balanced``, as :func:`class_weights`; ``effective`` or ``effective(BETA)``, by effective numbers of rows.
        labels: The class indices of the training rows, as they are trained with.
        num_classes: How many classes there are.

    Returns:
        Weights ``(num_classes,)``, 0 for a class without rows; or None.

    >>> weights_by("effective(1.0)", torch.tensor([0, 0, 0, 2]), num_classes=3)
    tensor([0.5000, 0.0000, 1.5000])
    """
    if how == "none":
        return None
    if how == "balanced":
        return class_weights(labels, num_classes)
    counts = torch.bincount(labels, minlength=num_classes)
    weights = torch.zeros(num_classes)
    weights[counts > 0] = class_balanced_weights(counts[counts > 0], _beta(how) or 0.0)
    return weights


def class_counts(labels: Tensor, num_classes: int, weights: Tensor | None = None) -> Tensor:
    """Return how many rows each class has, for losses that want to know it.

    A class without rows counts as the least frequent of the others, or as one row if that is less: losses take logarithms.

    Args:
        labels: The class indices of the training rows, as they are trained with.
        num_classes: How many classes there are.
        weights: How much each row counts; one by default.

    Returns:
        Counts ``(num_classes,)`` in single precision, for the parameter ``counts`` of a loss.

    >>> class_counts(torch.tensor([0, 0, 0, 2, 2]), num_classes=3)
    tensor([3., 1., 2.])
    """
    counts = torch.bincount(labels, weights, minlength=num_classes).double()
    least = counts[counts > 0].amin().clamp(max=1.0)
    return torch.where(counts > 0, counts, least).float()


def imbalance_notes(labels: Array, classes: Sequence[str]) -> list[str]:
    """Say so where the largest class has three times an even share or more, or the smallest less than a fifth of one.

    Args:
        labels: The class indices of the training rows.
        classes: The names of the classes; those without rows do not count.

    Returns:
        One line, or none.

    >>> imbalance_notes(np.repeat([0, 1], [95, 5]), ("a", "b"))
    ["classes are uneven: 'a' 95 %, 'b' 5 % of training rows; accuracy hides the rare ones: --metric balanced-accuracy"]
    >>> imbalance_notes(np.repeat([0, 1], [90, 10]), ("a", "b"))
    []
    """
    counts = np.bincount(labels, minlength=len(classes))
    present = np.flatnonzero(counts)
    if len(present) < 2:
        return []
    shares = counts / counts.sum()
    even = 1 / len(present)
    most, least = present[shares[present].argmax()], present[shares[present].argmin()]
    if shares[most] < _LARGE * even and shares[least] >= _SMALL * even:
        return []
    written = ", ".join(f"{classes[place]!r} {_percent(shares[place])}" for place in (most, least))
    return [f"classes are uneven: {written} of training rows; accuracy hides the rare ones: --metric balanced-accuracy"]


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %") if share >= 0.01 else f"{100 * share:.1g} %"
