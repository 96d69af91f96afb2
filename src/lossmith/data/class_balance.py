"""Classes that are much more frequent than others."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lossmith.data.sources.examples import Array
from lossmith.expressions.limits import Limits
from lossmith.expressions.quotes import quote

__all__ = ["class_weights", "imbalance_notes"]

# Of an even share: what the largest class has at least, or the smallest at most, where classes are called uneven.
_LARGE = 3.0
_SMALL = 0.2


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
