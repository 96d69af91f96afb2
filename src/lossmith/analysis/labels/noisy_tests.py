"""What accuracy on labels of which some are wrong says about accuracy on true ones."""

from dataclasses import dataclass

import numpy as np

from lossmith.analysis.arrays import Numbers, as_matrix
from lossmith.expressions.limits import Limits

__all__ = ["NoisyTest", "noisy_test"]

_EVEN = 0.05
"""Mistakes that count as differently as this count alike: an estimate of a matrix is no better."""


@dataclass(frozen=True)
class NoisyTest:
    """Accuracy on given labels, as a function of accuracy on true ones."""

    factor: float
    """What a point of accuracy on true labels is on given ones, where wrong ones are spread evenly."""
    offset: float
    """What accuracy is on given labels where it is 0 on true ones."""
    least: float
    """What the avoided mistake counts that counts least, of 1 on true labels, by what is taken for what."""
    most: float
    """The same of the one that counts most."""

    @property
    def keeps_order(self) -> bool:
        """Whether a loss that is better on given labels is better on true ones: avoided mistakes count alike, and count."""
        return self.least > 0 and self.most - self.least <= _EVEN

    def __str__(self) -> str:
        even = f"Spread evenly, they leave the order of losses as it is: accuracy is {self.factor:.2f} times that on true labels"
        even += f" plus {self.offset:.2f}, and differences are {1 / self.factor:.1f} times as large as they look."
        if self.factor <= 0:
            return "Labels tell nothing of the true classes any more."
        if self.keeps_order:
            return even
        return (
            f"{even} By what seems to be taken for what, a mistake that is avoided counts {self.least:.2f} to {self.most:.2f}"
            " there: losses that make mistakes on different classes may be in another order on true labels."
        )


def noisy_test(transition: Numbers, rate: float) -> NoisyTest:
    """Return what a test split with wrong labels allows to say.

    Args:
        transition: The share of each true class, a row, that carries each label, ``(C, C)``.
        rate: The share of wrong labels.

    Returns:
        How accuracies on given and on true labels belong together.

    Raises:
        ValueError: If the matrix is not square, or the rate is not in [0, 1].

    >>> noisy_test([[0.8, 0.2], [0.2, 0.8]], 0.2).keeps_order, noisy_test([[0.6, 0.4], [0.0, 1.0]], 0.2).keeps_order
    (True, False)
    """
    matrix = as_matrix("noisy_test", "transition", transition)
    classes = len(matrix)
    if matrix.shape != (classes, classes) or classes < 2:
        raise ValueError(f"noisy_test: transition must be square, of 2 classes at least, got shape {matrix.shape}.")
    Limits(0.0, 1.0).check("rate", rate, owner="noisy_test")
    counts = (np.diag(matrix)[:, None] - matrix)[~np.eye(classes, dtype=bool)]
    share = rate / (classes - 1)
    return NoisyTest(1 - rate - share, share, float(counts.min()), float(counts.max()))
