"""The average error of a fresh network: how strongly a loss pulls at the target's logit before anything is learnt."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from lossmith.expressions.limits import Limits
from lossmith.theory.per_example import Loss, PerExampleLoss, check_classes, check_sigma

__all__ = ["AverageError", "average_error"]

# Logits are drawn in blocks of about this many numbers, which bounds the memory whatever the number of classes.
BLOCK_ELEMENTS = 1 << 18
# A search meets the same logits again and again: so many are kept, which takes 8 MB.
KEPT_ELEMENTS = 1 << 21
# A standard error needs some samples, too.
FEWEST_SAMPLES, MOST_SAMPLES = 16, 1 << 14


class AverageError(NamedTuple):
    """Estimates for every z, and their standard errors, of the shape of z."""

    value: Tensor
    standard_error: Tensor


def average_error(
    loss: Loss,
    num_classes: int,
    z: float | Sequence[float] | Tensor = 0.0,
    *,
    sigma: float = 1.0,
    samples: int | None = None,
    seed: int = 0,
) -> AverageError:
    """Estimate ``<delta_k>(z_k)``: the derivative of the loss by the target's logit z_k, averaged over all other logits.

    The other logits are normal with standard deviation ``sigma``, as those of a fresh network are, see
    :func:`logit_scale`. A loss learns if this is well below 0 where z_k is at first, which is near 0; it vanishes where
    the loss has given up on an example.

    ``loss`` is a loss, its expression, or any function ``(logits, target) -> losses`` that autograd can follow. Each z, each loss
    and each parameter meets the same random logits, so the estimate is a smooth function of all of them. By default there
    are enough samples to make the standard error of most losses some 0.2 %.

    Args:
        loss: A loss, its expression, or a function of logits and target.
        num_classes: How many classes there are, at least 2.
        z: The logit of the target, one or many.
        sigma: The standard deviation of the other logits, > 0.
        samples: How many rows of logits are drawn.
        seed: Draws them.

    Returns:
        The estimate and its standard error for each z.

    Raises:
        TypeError: If the loss is none of the three.
        ValueError: If a number is out of its range, or the loss cannot be differentiated.

    >>> value, error = average_error("gce(q=0.7)", num_classes=100)
    >>> f"{value:.5f} +- {error:.5f}"
    '-0.02828 +- 0.00003'

    Reference: equation 3 of Staats, Thamm and Rosenow, "Noise-robust loss functions".
    """
    owner = "average_error"
    check_classes("num_classes", num_classes, owner)
    check_sigma(sigma, owner)
    count = default_samples(num_classes) if samples is None else samples
    Limits(2, whole=True).check("samples", count, owner=owner)
    places = torch.as_tensor(z, dtype=torch.float32)
    if not places.isfinite().all():
        raise ValueError(f"{owner}: z must be finite, got {z}.")
    function = PerExampleLoss(loss, owner)
    moments = _Moments(places.numel())
    for logits in _blocks(num_classes, count, sigma, seed):
        moments.add(torch.stack([_errors_at(function, logits, place) for place in places.flatten().tolist()]))
    return AverageError(moments.mean.view(places.shape), moments.standard_error().view(places.shape))


def default_samples(num_classes: int) -> int:
    """Return enough samples: the more classes, the less their sum varies from one sample to another.

    >>> default_samples(10), default_samples(1000), default_samples(10000)
    (16384, 524, 52)
    """
    return max(FEWEST_SAMPLES, min(MOST_SAMPLES, (1 << 19) // num_classes))


def _blocks(num_classes: int, samples: int, sigma: float, seed: int) -> Iterator[Tensor]:
    few = num_classes * samples <= KEPT_ELEMENTS
    for block in _kept_draws(num_classes, samples, seed) if few else _draws(num_classes, samples, seed):
        yield sigma * block


@lru_cache(maxsize=2)
def _kept_draws(num_classes: int, samples: int, seed: int) -> list[Tensor]:
    return list(_draws(num_classes, samples, seed))


def _draws(num_classes: int, samples: int, seed: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    rows = max(1, BLOCK_ELEMENTS // num_classes)
    for start in range(0, samples, rows):
        yield torch.randn(min(rows, samples - start), num_classes, generator=generator)


def _errors_at(function: PerExampleLoss, logits: Tensor, place: float) -> Tensor:
    logits[:, 0] = place
    return function.target_gradient(logits).double()


class _Moments:
    """Running means and sums of squared deviations, updated block by block without cancellation."""

    def __init__(self, size: int) -> None:
        self.count = 0
        self.mean = torch.zeros(size, dtype=torch.float64)
        self._squares = torch.zeros(size, dtype=torch.float64)

    def add(self, values: Tensor) -> None:
        """Take in values ``(size, n)``."""
        number, mean = values.shape[1], values.mean(1)
        total = self.count + number
        shift = mean - self.mean
        self._squares += (values - mean[:, None]).square().sum(1) + shift.square() * (self.count * number / total)
        self.mean = self.mean + shift * (number / total)
        self.count = total

    def standard_error(self) -> Tensor:
        return (self._squares / (self.count - 1)).sqrt() / math.sqrt(self.count)
