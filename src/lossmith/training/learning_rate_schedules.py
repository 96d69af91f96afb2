"""How the learning rate changes during training, as the papers have it; each schedule can be written with its numbers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from lossmith.expressions.limits import Limits, is_whole
from lossmith.expressions.quotes import quote
from lossmith.expressions.reader import ExpressionReader

__all__ = ["LEARNING_RATE_SCHEDULES", "LearningRateSchedule", "Moment", "make_learning_rate_schedule"]

HALF_AND_THREE_QUARTERS = (0.5, 0.75)
"""Where the rate changes unless told: after 100 and 150 of 200 epochs, as in most papers."""
_SHARE = Limits(0.0, 1.0, low_open=True, high_open=True)


class Moment(NamedTuple):
    """A step of training."""

    epoch: int
    """From 0."""
    step: int
    """Of the epoch, from 0."""
    steps: int
    """Of an epoch."""
    epochs: int

    @property
    def progress(self) -> float:
        """The share of training that is over."""
        return (self.epoch * self.steps + self.step) / (self.epochs * self.steps)


class LearningRateSchedule(ABC):
    """What multiplies the learning rate of a run at every moment."""

    @abstractmethod
    def factor(self, moment: Moment) -> float:
        """Return the factor of the learning rate.

        Args:
            moment: A step of training.

        Returns:
            The factor, 1 at most.
        """

    def check_epochs(self, epochs: int) -> None:
        """Raise an error where the schedule does not fit into so many epochs.

        Args:
            epochs: How long training is.

        Raises:
            ValueError: If it does not.
        """
        Limits(1, whole=True).check("epochs", epochs, owner="Recipe")


@dataclass(frozen=True)
class Constant(LearningRateSchedule):
    """The same throughout."""

    def factor(self, moment: Moment) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True)
class Cosine(LearningRateSchedule):
    """Half a wave of the cosine, from the full rate to none, in every step."""

    def factor(self, moment: Moment) -> float:
        """Return a point of the wave."""
        return _half_wave(moment.progress)


@dataclass(frozen=True)
class WarmupCosine(LearningRateSchedule):
    """Rises along a line for a share of training, then half a wave of the cosine."""

    warmup: float = 0.05

    def __post_init__(self) -> None:
        _SHARE.check("warmup", self.warmup, owner="warmup-cosine")

    def factor(self, moment: Moment) -> float:
        """Return a point of the line or of the wave."""
        progress, first = moment.progress, 1 / (moment.epochs * moment.steps)  # the first step is not lost
        if progress < self.warmup:
            return (progress + first) / (self.warmup + first)
        return _half_wave((progress - self.warmup) / (1 - self.warmup))


@dataclass(frozen=True)
class Exponential(LearningRateSchedule):
    """Times a factor after each epoch; 0.95 is that of Staats, Thamm and Rosenow for their MLP1024."""

    by: float = 0.95

    def __post_init__(self) -> None:
        Limits(0.0, 1.0, low_open=True).check("by", self.by, owner="exponential")

    def factor(self, moment: Moment) -> float:
        """Return a power."""
        return float(self.by**moment.epoch)


class Steps(LearningRateSchedule):
    """Times a factor at each milestone.

    Milestones are shares of training between 0 and 1, or whole epochs after which the rate changes. ``epochs`` says of how many
    epochs they were meant: for another number of them they are scaled.

    Args:
        *milestones: One after another; by default after half, and after three quarters.
        factor: What the rate is multiplied by at each.
        epochs: What whole milestones refer to; by default the epochs of training, whatever they are.

    Raises:
        ValueError: If a number is out of its range, or they are not in order.

    >>> schedule = Steps(60, 120, 160, factor=0.2, epochs=200)
    >>> [round(schedule.factor(Moment(epoch, 0, 1, 200)), 3) for epoch in (59, 60, 120, 160)]
    [1.0, 0.2, 0.04, 0.008]
    >>> [round(schedule.factor(Moment(epoch, 0, 1, 10)), 3) for epoch in range(10)]
    [1.0, 1.0, 1.0, 0.2, 0.2, 0.2, 0.04, 0.04, 0.008, 0.008]
    """

    def __init__(self, *milestones: float, factor: float = 0.1, epochs: int | None = None) -> None:
        self.milestones = milestones or HALF_AND_THREE_QUARTERS
        Limits(0.0, 1.0, low_open=True).check("factor", factor, owner="steps")
        Limits(2, whole=True, optional=True).check("epochs", epochs, owner="steps")
        self._times, self._epochs = factor, epochs
        self._check_milestones()

    def _check_milestones(self) -> None:
        given = quote(list(self.milestones))
        whole = all(is_whole(milestone) and milestone > 0 for milestone in self.milestones)
        if not whole and not all(type(milestone) is float and 0 < milestone < 1 for milestone in self.milestones):
            raise ValueError(f"steps: milestones must be whole epochs > 0, or shares between 0 and 1, got {given}.")
        if any(following <= milestone for milestone, following in pairwise(self.milestones)):
            raise ValueError(f"steps: milestones must come one after another, got {given}.")
        if self._epochs is not None:
            if not whole:
                raise ValueError(f"steps: epochs belongs to milestones in whole epochs, got shares {given}.")
            self._check_last(self._epochs)

    def _check_last(self, epochs: int) -> None:
        last = self.milestones[-1]
        if is_whole(last) and last >= epochs:
            hint = "" if self._epochs else "; add epochs=N, of which it was meant, to scale it"
            raise ValueError(f"steps: milestones must come before the end, got {last} of {epochs} epochs{hint}.")

    def check_epochs(self, epochs: int) -> None:
        """Raise an error for a milestone that training never reaches, unless milestones are scaled."""
        super().check_epochs(epochs)
        if self._epochs is None:
            self._check_last(epochs)

    def factor(self, moment: Moment) -> float:
        """Return a power, one higher after each milestone."""
        passed = sum(moment.epoch >= self._start(milestone, moment.epochs) for milestone in self.milestones)
        return float(self._times**passed)

    def _start(self, milestone: float, epochs: int) -> int:
        """Return the first epoch after a milestone."""
        if is_whole(milestone):
            return math.ceil(Fraction(milestone * epochs, self._epochs or epochs))
        return math.ceil(Fraction(str(milestone)) * epochs)  # 0.95 means 95/100, not the binary fraction next to it


def _half_wave(share: float) -> float:
    return (1 + math.cos(math.pi * share)) / 2


LEARNING_RATE_SCHEDULES: dict[str, Callable[..., LearningRateSchedule]] = {
    "constant": Constant,
    "cosine": Cosine,
    "steps": Steps,
    "warmup-cosine": WarmupCosine,
    "exponential": Exponential,
}
"""By name."""


def make_learning_rate_schedule(expression: str, *, owner: str = "make_learning_rate_schedule") -> LearningRateSchedule:
    """Read a schedule of the learning rate from text.

    Args:
        expression: A name, or a name with numbers.
        owner: Whom errors name.

    Returns:
        The schedule.

    Raises:
        TypeError: If the expression is not text.
        ValueError: If it cannot be read, or a number is out of its range.

    >>> make_learning_rate_schedule("exponential(0.9)")
    Exponential(by=0.9)
    >>> make_learning_rate_schedule("steps(150, 100)")
    Traceback (most recent call last):
    ValueError: steps: milestones must come one after another, got [150, 100].
    """
    schedule = ExpressionReader(expression, LEARNING_RATE_SCHEDULES, caller=owner, kind="schedule").read()
    assert isinstance(schedule, LearningRateSchedule)
    return schedule
