"""How the learning rate changes during training, as the papers have it."""

import math
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["LEARNING_RATE_SCHEDULES", "Moment"]

WARMUP = 0.05
"""Share of training over which ``warmup-cosine`` rises."""
DECAY = 0.95
"""What ``exponential`` multiplies by after each epoch, as for the MLP1024 of Staats, Thamm and Rosenow."""


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


def _constant(_: Moment) -> float:
    """The same throughout."""
    return 1.0


def _half_wave(share: float) -> float:
    return (1 + math.cos(math.pi * share)) / 2


def _cosine(moment: Moment) -> float:
    """Half a wave of the cosine, from the full rate to none, in every step."""
    return _half_wave(moment.progress)


def _steps(moment: Moment) -> float:
    """A tenth after half, and a hundredth after three quarters of the epochs: after 100 and 150 of 200 in the papers."""
    quarters = 4 * moment.epoch // moment.epochs
    return (1.0, 1.0, 0.1, 0.01)[quarters]


def _warmup_cosine(moment: Moment) -> float:
    """Rises along a line for the first 5 %, then half a wave of the cosine."""
    progress, first = moment.progress, 1 / (moment.epochs * moment.steps)  # the first step is not lost
    if progress < WARMUP:
        return (progress + first) / (WARMUP + first)
    return _half_wave((progress - WARMUP) / (1 - WARMUP))


def _exponential(moment: Moment) -> float:
    """Times 0.95 after each epoch."""
    return float(DECAY**moment.epoch)


LEARNING_RATE_SCHEDULES: dict[str, Callable[[Moment], float]] = {
    "constant": _constant,
    "cosine": _cosine,
    "steps": _steps,
    "warmup-cosine": _warmup_cosine,
    "exponential": _exponential,
}
"""By name: what multiplies the learning rate of a run."""
