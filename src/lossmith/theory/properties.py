"""Properties of a loss that decide how it fares with wrong labels, measured on the loss itself and not looked up."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor

from lossmith.theory.consistency import is_calibrated
from lossmith.theory.fresh_network.overlap import MANY_CLASSES
from lossmith.theory.per_example import Loss, PerExampleLoss, check_classes

__all__ = ["Properties", "properties"]

# From logits of a fresh network to logits beyond all others, the logarithm doubling each time: a loss that has a bound comes
# closer to it by leaps, and one that grows, even if only like the logarithm of the logits, keeps growing.
SCALES = (1.0, 1e1, 1e2, 1e4, 1e8, 1e16, 1e32, 1e64)
RANDOM_ROWS = 12
# Rows are evaluated in blocks of about this many numbers, which bounds the memory whatever the number of classes.
BLOCK_ELEMENTS = 1 << 18
# A jump of the gradient stays as it is when its place is narrowed down by this factor, again and again.
ZOOM = 64
ZOOM_LEVELS = 5


@dataclass(frozen=True)
class Properties:
    """What :func:`properties` finds."""

    symmetric: bool
    """Whether the losses of an example under all labels add up to a constant: such a loss tolerates symmetric noise."""
    label_sum: float | None
    """That constant, or None."""
    bounded: bool
    bound: float
    """The largest loss that an example can have, or infinity."""
    calibrated: bool | None
    """Whether the least expected loss is had only by predicting the most probable class; None if that could not be tried."""
    smooth: bool
    """Whether the gradient is continuous."""
    largest_gradient: float
    """The largest derivative, in size, by the target's logit, or infinity."""
    largest_gradient_at: float
    """The target's probability there."""
    outlier_slope: float
    """The power of p with which that derivative vanishes as the target's probability p does: 0 for cross-entropy, which never
    gives up on a label, 1 for the mean absolute error."""


def properties(loss: Loss, num_classes: int) -> Properties:
    """Measure the properties of a loss, or of any function ``(logits, target) -> losses``, for a number of classes.

    All is computed in double precision from values and gradients on rows of logits, random ones and those pushed to extremes.
    A property that a loss lacks is thus found by example, and one that it has is as certain as such a search can make it.
    Probabilities are those of the softmax.

    Args:
        loss: A loss, its expression, or a function of logits and target.
        num_classes: How many classes there are, at least 2.

    Returns:
        What was found, field by field.

    Raises:
        TypeError: If the loss is none of the three.
        ValueError: If the number of classes is too small, or the loss cannot be differentiated.

    >>> found = properties("gce(q=0.5)", num_classes=10)
    >>> found.symmetric, found.bounded, round(found.bound, 6), found.calibrated, found.smooth
    (False, True, 2.0, True, True)
    >>> round(found.largest_gradient_at, 3), round(found.outlier_slope, 3)
    (0.333, 0.5)
    """
    check_classes("num_classes", num_classes, "properties")
    function = PerExampleLoss(loss, "properties")
    label_sum = constant_label_sum(function, num_classes)
    bound = largest_loss(function, num_classes)
    gradient, at = largest_gradient(function, num_classes)
    return Properties(
        symmetric=label_sum is not None,
        label_sum=label_sum,
        bounded=math.isfinite(bound),
        bound=bound,
        calibrated=is_calibrated(function, num_classes),
        smooth=is_smooth(function, num_classes),
        largest_gradient=gradient,
        largest_gradient_at=at,
        outlier_slope=outlier_slope(function, num_classes),
    )


def constant_label_sum(function: PerExampleLoss, num_classes: int) -> float | None:
    """Return what the losses under all labels add up to, or None if that depends on the logits."""
    labels = torch.arange(num_classes)
    scales = torch.tensor([[0.1], [1.0], [10.0], [1e3], [1e6]], dtype=torch.float64)
    rows = scales * _normal_rows(len(scales), num_classes)
    each = torch.stack([function(row.expand(num_classes, -1), labels) for row in rows])
    each = each[~each.isnan().any(1)]  # a function that overflows to NaN is known for smaller logits only
    sums = each.sum(1)
    # Rounding of the sum, with a margin for losses that lose some digits themselves.
    tolerance = 1e-9 * float(each.abs().sum(1).amin())
    return float(sums[0]) if len(sums) > 1 and float(sums.max() - sums.min()) <= tolerance else None


def largest_loss(function: PerExampleLoss, num_classes: int) -> float:
    """Return the bound of the loss, or infinity."""
    directions = _directions(num_classes)
    target = torch.zeros(len(directions), dtype=torch.long)
    heights = []
    for scale in SCALES:
        losses = function(directions * scale, target)
        known = losses[~losses.isnan()]
        heights += [float(known.max())] if len(known) else []
    peaks = torch.tensor(heights, dtype=torch.float64).cummax(0).values.tolist()
    if len(peaks) < 3 or math.isinf(peaks[-1]):
        return math.inf
    *_, before, last = (after - earlier for earlier, after in pairwise(peaks))
    settled = last <= max(before / 2, 1e-9 * abs(peaks[-1]))
    return float(peaks[-1]) if settled else math.inf


def largest_gradient(function: PerExampleLoss, num_classes: int) -> tuple[float, float]:
    """Return the largest derivative by the target's logit, in size, and the target's probability there."""
    others = _log_sum_of_others(num_classes)
    far_below, below, near, above, far_above = target_errors(function, num_classes, [-1e6, -40.0, 0.0, 40.0, 1e6]).abs().tolist()
    if max(far_below, far_above) > 1e3 * max(below, near, above):  # it grows with the logits
        return math.inf, 0.0 if far_below > far_above else 1.0
    low, high = others - 40, others + 40
    for _ in range(3):
        places = torch.linspace(low, high, 257, dtype=torch.float64)
        sizes = target_errors(function, num_classes, places.tolist()).abs()
        best = int(sizes.argmax())
        low, high = float(places[max(best - 1, 0)]), float(places[min(best + 1, 256)])
    return float(sizes[best]), float(torch.sigmoid(places[best] - others))


def outlier_slope(function: PerExampleLoss, num_classes: int) -> float:
    """Return the slope of that derivative over the target's probability, both as logarithms, where the target is improbable."""
    probabilities = torch.tensor([1e-7, 1e-6], dtype=torch.float64)
    places = torch.logit(probabilities) + _log_sum_of_others(num_classes)
    sizes = target_errors(function, num_classes, places.tolist()).abs()
    if float(sizes.min()) == 0:
        return math.inf
    return float(torch.diff(sizes.log()) / torch.diff(probabilities.log()))


def wrong_label_pull(function: PerExampleLoss, num_classes: int) -> float:
    """Return how a label that a trained network finds improbable pulls, as a share of the largest pull from there on.

    Improbable means three times less probable than by chance; pull is minus the derivative by the target's logit.
    """
    others, chance = _log_sum_of_others(num_classes), 0.3 / num_classes
    many = num_classes > MANY_CLASSES
    places = others + torch.linspace(math.log(chance / (1 - chance)), 7, 24 if many else 96, dtype=torch.float64)
    # Seven digits of a share are enough, and single precision takes a quarter of the time with a million classes.
    precision = torch.float32 if many else torch.float64
    pull = (-target_errors(function, num_classes, places.tolist(), precision)).clamp(min=0.0)
    largest = pull.max()
    if many:  # each place is slow: a closer look around the best one instead of more places everywhere
        best = int(pull.argmax())
        closer = torch.linspace(float(places[max(best - 1, 0)]), float(places[min(best + 1, 23)]), 8, dtype=torch.float64)
        largest = max(largest, (-target_errors(function, num_classes, closer.tolist(), precision)).max())
    return float(pull[0] / largest) if largest > 0 else 0.0


def is_smooth(function: PerExampleLoss, num_classes: int) -> bool:
    """Return whether the gradient has no jump on lines along which the target, or a rival, overtakes all other classes."""
    starts = _normal_rows(6, num_classes)
    for number, start in enumerate(starts):
        ends = start.clone()
        ends[number % 2] += 2 * (math.log(num_classes) + 6)
        start[number % 2] -= math.log(num_classes) + 6
        if _has_jump(function, start, ends):
            return False
    return True


def _has_jump(function: PerExampleLoss, start: Tensor, end: Tensor) -> bool:
    """Narrow down the place where the gradient changes most; what does not shrink with the interval is a jump."""
    shares = torch.linspace(0, 1, ZOOM + 1, dtype=torch.float64)[:, None]
    target = torch.zeros(len(shares), dtype=torch.long)
    largest = 0.0
    for _ in range(ZOOM_LEVELS):
        gradients = function.gradient(start + shares * (end - start), target)
        largest = max(largest, float(gradients.abs().max()))
        changes = gradients.diff(dim=0).abs().amax(1)
        at = int(changes.argmax())
        start, end = start + shares[at] * (end - start), start + shares[at + 1] * (end - start)
    return float(changes[at]) > 1e-4 * largest


def target_errors(
    function: PerExampleLoss, num_classes: int, places: list[float], precision: torch.dtype = torch.float64
) -> Tensor:
    """Return the derivatives by the target's logit where that has the given values, and the others typical ones."""
    typical = _typical_logits(num_classes).to(precision)
    found = []
    for some in torch.split(torch.tensor(places, dtype=precision), max(1, BLOCK_ELEMENTS // num_classes)):
        rows = typical.repeat(len(some), 1)
        rows[:, 0] = some
        found.append(function.target_gradient(rows))
    return torch.cat(found)


@lru_cache(maxsize=1)
def _typical_logits(num_classes: int) -> Tensor:
    """Return logits of which all but the first are spread like those of a fresh network: quantiles of the normal distribution."""
    levels = (torch.arange(num_classes, dtype=torch.float64) - 0.5) / (num_classes - 1)
    logits: Tensor = torch.special.ndtri(levels.clamp(min=0.5 / num_classes))
    return logits


def _log_sum_of_others(num_classes: int) -> float:
    """Return the logit at which the target has the probability 1/2 among typical others."""
    return float(_typical_logits(num_classes)[1:].logsumexp(0))


def _directions(num_classes: int) -> Tensor:
    """Return ways to push logits to extremes: the target down, rivals up, one or many, and random ones."""
    pushed = torch.zeros(6, num_classes, dtype=torch.float64)
    pushed[0, 0], pushed[1, 0] = -1, 1
    pushed[2, 1] = 1
    pushed[3, 0], pushed[3, 1] = -1, 1
    pushed[4, 1 : (num_classes + 2) // 2] = 1
    pushed[5] = torch.linspace(-1, 1, num_classes, dtype=torch.float64)
    return torch.cat([pushed, _normal_rows(RANDOM_ROWS, num_classes)])


def _normal_rows(rows: int, num_classes: int) -> Tensor:
    return torch.randn(rows, num_classes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
