"""How much of a fresh network's output meets a loss that learns."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from lossmith.theory.fresh_network.average_error import average_error
from lossmith.theory.per_example import Loss, check_classes, check_sigma

__all__ = ["learning_path", "overlap"]

# The average error is smooth on the scale of the normal density: more nodes change nothing.
NODES = 12
# Lower logits than this many standard deviations below the mean are too rare to count for the largest error.
START_REACH = 3.0
PATH_POINTS = 40
# With so many classes or more the path is searched in two steps.
MANY_CLASSES = 20_000
COARSE_POINTS, CLOSE_POINTS = 12, 10


def overlap(loss: Loss, num_classes: int, *, sigma: float = 1.0, samples: int | None = None, seed: int = 0) -> float:
    """Return how much of the initial logit distribution meets non-vanishing error, a number in [0, 1].

    It is the mean of ``-<delta_k>(z)`` over the target's logits z of a fresh network, which are normal, divided by its largest
    value anywhere between a fresh and a trained network. So it does not depend on the scale of the loss, which the learning
    rate makes up for. 1 means that every example pulls as much as any ever will, as with cross-entropy; near 0 the loss
    hardly starts to learn, as the mean absolute error does with many classes. Errors that push the target down count as 0.

    Args:
        loss: A loss, its expression, or a function of logits and target.
        num_classes: How many classes there are, at least 2.
        sigma: The standard deviation of a fresh network's logits, > 0.
        samples: How many rows of logits are drawn.
        seed: Draws them.

    Returns:
        The overlap; from about 0.05 on a loss learns.

    Raises:
        TypeError: If the loss is none of the three.
        ValueError: If a number is out of its range, or the loss cannot be differentiated.

    >>> [round(overlap(loss, num_classes=1000), 2) for loss in ("ce", "gce(q=0.48)", "mae", "logit-bias(mae, epsilon=5.36)")]
    [1.0, 0.08, 0.0, 0.45]
    """
    check_classes("num_classes", num_classes, "overlap")
    check_sigma(sigma, "overlap")

    def pulls(places: Tensor) -> Tensor:
        return (-average_error(loss, num_classes, places, sigma=sigma, samples=samples, seed=seed).value).clamp(min=0.0)

    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    start = sigma * torch.from_numpy(nodes)
    at_start = pulls(start)
    mean = torch.from_numpy(weights / weights.sum()) @ at_start
    largest = max(at_start[start >= -START_REACH * sigma].max(), _largest_on_the_path(pulls, num_classes, sigma))
    return min(1.0, float(mean / largest)) if largest > 0 else 0.0


def _largest_on_the_path(pulls: Callable[[Tensor], Tensor], num_classes: int, sigma: float) -> Tensor:
    """Return the largest pull while the network learns; with many classes, where each place is slow, in two steps."""
    if num_classes <= MANY_CLASSES:
        return pulls(learning_path(num_classes, sigma)).max()
    path = learning_path(num_classes, sigma, COARSE_POINTS)
    coarse = pulls(path)
    best = int(coarse.argmax())
    low, high = (float(path[max(0, min(best + side, COARSE_POINTS - 1))]) for side in (-1, 1))
    return max(coarse.max(), pulls(torch.linspace(low, high, CLOSE_POINTS, dtype=torch.float64)[1:-1]).max())


def learning_path(num_classes: int, sigma: float, points: int = PATH_POINTS) -> Tensor:
    """Return logits of the target from a fresh network, three standard deviations down, to one that has learnt the class.

    The sum of the others' exponentials is about ``(K - 1) exp(sigma**2 / 2)``; the last point is 6 above its logarithm.
    """
    learnt = math.log(num_classes - 1) + sigma**2 / 2 + 6
    return torch.linspace(-START_REACH * sigma, learnt, points, dtype=torch.float64)
