"""How much of a fresh network's output meets a loss that learns."""

import math

import numpy as np
import torch
from torch import Tensor

from lossmith.early_learning.average_error import average_error
from lossmith.early_learning.per_example import Loss, check_classes, check_sigma

__all__ = ["learning_path", "overlap"]

# The average error is smooth on the scale of the normal density: more nodes change nothing.
NODES = 12
# Lower logits than this many standard deviations below the mean are too rare to count for the largest error.
START_REACH = 3.0
PATH_POINTS = 40


def overlap(loss: Loss, num_classes: int, *, sigma: float = 1.0, samples: int | None = None, seed: int = 0) -> float:
    """Return how much of the initial logit distribution meets non-vanishing error, a number in [0, 1].

    It is the mean of ``-<delta_k>(z)`` over the target's logits z of a fresh network, which are normal, divided by its largest
    value anywhere between a fresh and a trained network. So it does not depend on the scale of the loss, which the learning
    rate makes up for. 1 means that every example pulls as much as any ever will, as with cross-entropy; near 0 the loss
    hardly starts to learn, as the mean absolute error does with many classes. Errors that push the target down count as 0.

    >>> [round(overlap(loss, num_classes=1000), 2) for loss in ("ce", "gce(q=0.48)", "mae", "logit-bias(mae, epsilon=5.36)")]
    [1.0, 0.08, 0.0, 0.45]
    """
    check_classes("num_classes", num_classes, "overlap")
    check_sigma(sigma, "overlap")
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    start = sigma * torch.from_numpy(nodes)
    places = torch.cat([start, learning_path(num_classes, sigma)])
    pull = (-average_error(loss, num_classes, places, sigma=sigma, samples=samples, seed=seed).value).clamp(min=0.0)
    largest = pull[places >= -START_REACH * sigma].max()
    mean = torch.from_numpy(weights / weights.sum()) @ pull[:NODES]
    return min(1.0, float(mean / largest)) if largest > 0 else 0.0


def learning_path(num_classes: int, sigma: float, points: int = PATH_POINTS) -> Tensor:
    """Return logits of the target from a fresh network, three standard deviations down, to one that has learnt the class.

    The sum of the others' exponentials is about ``(K - 1) exp(sigma**2 / 2)``; the last point is 6 above its logarithm.
    """
    learnt = math.log(num_classes - 1) + sigma**2 / 2 + 6
    return torch.linspace(-START_REACH * sigma, learnt, points, dtype=torch.float64)
