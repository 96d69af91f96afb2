"""The equation behind parameters for another number of classes: the average error at 0 is to stay what it is."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from lossmith.losses import ClassificationLoss, make_loss
from lossmith.losses.contract.adjustable import AdjustableNumber, adjustable_numbers, path_of
from lossmith.numerics.bracketed_root import bracketed_root
from lossmith.theory.fresh_network.average_error import average_error, default_samples
from lossmith.theory.fresh_network.overlap import learning_path
from lossmith.theory.fresh_network.solve_logit_bias import solve_logit_bias
from lossmith.theory.per_example import check_classes, check_sigma, named_loss

__all__ = ["KeptError", "NoSolutionError", "Place", "Ranges", "Samples", "Sampling", "axis"]

Ranges = Mapping[str, tuple[float, float]]
"""Where to look for parameters, by name."""

Samples = int | Callable[[int], int] | None
"""How many samples to draw, or a function that says so for a number of classes."""

Place = tuple[float, ...]

# A parameter without an upper bound is searched from its value divided by this to its value times this.
WIDEST_FACTOR = 1000.0
# A parameter without any bound, such as a logit bias, is searched so far on both sides of its value.
WIDEST_SHIFT = 20.0
# Points further apart than by this factor are spaced by equal factors, nearer ones by equal differences.
LARGE_FACTOR = 20.0


class NoSolutionError(ValueError):
    """No value of the parameters keeps the average error."""


@dataclass(frozen=True)
class Sampling:
    """How an average error is estimated."""

    sigma: float = 1.0
    samples: Samples = None
    seed: int = 0


class KeptError:
    """The average error of a loss at another number of classes, as a function of some of its parameters."""

    def __init__(
        self,
        owner: str,
        loss: str | ClassificationLoss,
        from_classes: int,
        to_classes: int,
        names: Sequence[str],
        *,
        sampling: Sampling,
        reference: str | ClassificationLoss | None = None,
    ) -> None:
        check_classes("from_classes", from_classes, owner)
        check_classes("to_classes", to_classes, owner)
        check_sigma(sampling.sigma, owner)
        self.loss = named_loss(loss, owner)
        self.from_classes, self.to_classes = from_classes, to_classes
        self.sampling = sampling
        known = adjustable_numbers(self.loss)
        self.names = tuple(path_of(name, known, owner=owner) for name in names)
        self.numbers = tuple(known[name] for name in self.names)
        given = named_loss(self.loss if reference is None else reference, owner)
        self.target, self.target_error = self._error_at_zero(given, from_classes)
        self._owner, self._given, self._written = owner, given, str(self.loss)
        if self.target == 0:
            raise NoSolutionError(f"{owner}: {given} has no average error at {from_classes} classes, hence none to keep.")

    def excess(self, *values: float) -> float:
        """Return by how much the average error is above what is wanted; NaN where the loss does not take the values."""
        try:
            self.set(*values)
            return self._error_at_zero(self.loss, self.to_classes)[0] - self.target
        except ValueError:
            return math.nan

    def set(self, *values: float) -> None:
        """Give the parameters these values."""
        for number, value in zip(self.numbers, values, strict=True):
            number.set(value)

    def roots(self, points: Sequence[float], excesses: Sequence[float], place: Callable[[float], Place]) -> Iterator[Place]:
        """Yield solutions of the equation on a line, given what it is at some points; ``place`` tells where these are."""
        for (low, high), (below, above) in zip(pairwise(points), pairwise(excesses), strict=True):
            if below * above <= 0:
                tolerance = 1e-4 * abs(high - low)
                yield place(bracketed_root(lambda value: self.excess(*place(value)), low, high, tolerance=tolerance))

    def standard_error(self, *values: float) -> float:
        """Return how far the last parameter may be off because both sides of the equation are estimates."""
        *first, last = values
        step = 1e-3 * max(abs(last), 1e-3)
        nearby = [place for place in (last - step, last + step) if not math.isnan(self.excess(*first, place))]
        slope = (self.excess(*first, nearby[-1]) - self.excess(*first, nearby[0])) / (nearby[-1] - nearby[0] or math.inf)
        self.set(*values)
        noise = math.hypot(self.target_error, self._error_at_zero(self.loss, self.to_classes)[1])
        return noise / abs(slope) if slope else math.inf

    def shape_change(self) -> float:
        """Return how much the curve of the loss as it is set differs from the reference, between fresh and learnt."""
        difference = self._curve(self.loss, self.to_classes) - self._reference_curve
        return float(difference.square().mean().sqrt() / self._reference_curve.abs().max())

    @cached_property
    def _reference_curve(self) -> Tensor:
        return self._curve(self._given, self.from_classes)

    def no_solution(self, places: Mapping[str, Sequence[float]]) -> NoSolutionError:
        """Return the error to raise where nothing was found at the places; the loss must be as it was given."""
        searched = " and ".join(f"{name} in [{values[0]:g}, {values[-1]:g}]" for name, values in places.items())
        if self._error_at_zero(make_loss(self._written), self.to_classes)[0] < self.target:
            advice = "it learns faster there as it is"
        else:
            bias = solve_logit_bias(self.to_classes, sigma=self.sampling.sigma).epsilon
            advice = f"use a logit bias: logit-bias({self._written}, epsilon={bias:.2f})"
        return NoSolutionError(
            f"{self._owner}: no {searched} gives {self._written} the average error {self.target:.4g} at {self.to_classes} classes"
            f" that {self._given} has at {self.from_classes}; {advice}."
        )

    def _error_at_zero(self, loss: ClassificationLoss, num_classes: int) -> tuple[float, float]:
        samples = self._samples(num_classes)
        value, error = average_error(loss, num_classes, 0.0, sigma=self.sampling.sigma, samples=samples, seed=self.sampling.seed)
        return float(value), float(error)

    def _samples(self, num_classes: int) -> int:
        samples = default_samples if self.sampling.samples is None else self.sampling.samples
        return samples(num_classes) if callable(samples) else samples

    def _curve(self, loss: ClassificationLoss, num_classes: int) -> Tensor:
        path = learning_path(num_classes, self.sampling.sigma)
        samples = min(128, self._samples(num_classes))
        return average_error(loss, num_classes, path, sigma=self.sampling.sigma, samples=samples).value


def axis(number: AdjustableNumber, points: int, within: tuple[float, float] | None) -> list[float]:
    """Return values of a parameter to try, from its range or from what its limits and its value suggest."""
    low, high = within or _range(number)
    if low > 0 and high / low > LARGE_FACTOR:
        return torch.logspace(math.log10(low), math.log10(high), points, dtype=torch.float64).clamp(low, high).tolist()
    return torch.linspace(low, high, points, dtype=torch.float64).tolist()


def _range(number: AdjustableNumber) -> tuple[float, float]:
    limits, value = number.limits(), number.get()
    if math.isinf(limits.low):
        return value - WIDEST_SHIFT, value + WIDEST_SHIFT
    if math.isinf(limits.high):
        distance = value - limits.low or 1.0
        return limits.low + distance / WIDEST_FACTOR, limits.low + distance * WIDEST_FACTOR
    margin = 1e-6 * (limits.high - limits.low)
    return limits.low + margin * limits.low_open, limits.high - margin * limits.high_open
