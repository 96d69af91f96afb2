"""Numbers that change during training. :class:`~lossmith.LossScheduler` gives them to the parameters of a loss.

Time is counted from 0 in whatever the training loop steps by, epochs or batches; ``total`` is how much of it there is.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from numbers import Real

from lossmith.expressions.limits import Limits, is_whole
from lossmith.expressions.quotes import quote

__all__ = ["Constant", "Cosine", "Cyclic", "Linear", "Piecewise", "Schedule"]


class Schedule(ABC):
    """A number for every moment of training."""

    @abstractmethod
    def value(self, time: int, total: int | None) -> float:
        """Return the number at ``time``, of ``total``.

        Args:
            time: The step, from 0.
            total: How many steps there are, if known.

        Returns:
            The number.

        Raises:
            ValueError: If the number depends on a total that is not known.
        """

    @abstractmethod
    def extremes(self) -> tuple[float, ...]:
        """Return numbers between which all values lie, each of which is a value."""

    def check_total(self, total: int | None) -> None:
        """Raise an error where the schedule cannot run for so long, or needs to know for how long it runs.

        Args:
            total: How many steps there are, if known.

        Raises:
            ValueError: If the schedule does not fit.
        """
        _known(total, type(self).__name__)


@dataclass(frozen=True)
class Constant(Schedule):
    """The same number throughout.

    >>> Constant(0.3).value(7, total=10)
    0.3
    """

    number: float

    def __post_init__(self) -> None:
        _set_number(self, "number")

    def value(self, time: int, total: int | None) -> float:
        """Return the number."""
        return self.number

    def extremes(self) -> tuple[float, ...]:
        """Return the number."""
        return (self.number,)

    def check_total(self, total: int | None) -> None:
        """Accept any."""


@dataclass(frozen=True)
class Piecewise(Schedule):
    """A number for each phase of training.

    Without ``at`` the phases are equally long: with n of them the phase at a time is ``n * time // total``, in integers, so
    that every boundary is exact. Where there are fewer epochs than phases, an epoch takes the phase in which it starts, and
    the phases in which none starts are left out.

    >>> [Piecewise([0.0, 0.1, 0.2]).value(epoch, total=6) for epoch in range(6)]
    [0.0, 0.0, 0.1, 0.1, 0.2, 0.2]
    >>> [Piecewise([0.0, 0.1, 0.2]).value(epoch, total=2) for epoch in range(2)]
    [0.0, 0.1]

    ``at`` says where the second and later phases start: as whole times, or as shares of ``total`` between 0 and 1, which are
    rounded down to a whole time, though never to 0. So the last 5 % of ten epochs are one epoch:

    >>> [Piecewise([0.0, 0.5], at=[0.95]).value(epoch, total=10) for epoch in (0, 8, 9)]
    [0.0, 0.0, 0.5]
    """

    values: Sequence[float]
    at: Sequence[float] | None = None

    def __post_init__(self) -> None:
        _set_numbers(self, "values")
        if self.at is None:
            return
        given: object = self.at
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise TypeError(f"Piecewise: at must be a list of starts, got {quote(given)}.")
        object.__setattr__(self, "at", tuple(self.at))
        if len(self.at) != len(self.values) - 1:
            raise ValueError(
                f"Piecewise: {len(self.values)} phases need {len(self.values) - 1} starts in at, got {len(self.at)}."
            )
        if not all(is_whole(start) and start > 0 for start in self.at) and not all(_is_share(start) for start in self.at):
            raise ValueError(f"Piecewise: at must hold whole times > 0, or shares between 0 and 1, got {quote(list(self.at))}.")
        if any(following <= start for start, following in pairwise(self.at)):
            raise ValueError(f"Piecewise: phases must start one after another, got at={quote(list(self.at))}.")

    def value(self, time: int, total: int | None) -> float:
        """Return the number of the phase at ``time``; after the end, that of the last phase."""
        if self.at is None:
            return self.values[min(len(self.values) * time // _known(total, "Piecewise"), len(self.values) - 1)]
        return self.values[sum(time >= self._start(start, total) for start in self.at)]

    def extremes(self) -> tuple[float, ...]:
        """Return the numbers of all phases."""
        return tuple(self.values)

    def check_total(self, total: int | None) -> None:
        """Check that there is time for every phase that starts at a whole time."""
        if self.at is None or any(_is_share(start) for start in self.at):
            super().check_total(total)
            return
        for phase, start in enumerate(self.at, 2):
            if total is not None and start >= total:
                raise ValueError(f"Piecewise: phase {phase} is missing, for it starts at {start} and total is {total}.")

    @staticmethod
    def _start(start: float, total: int | None) -> int:
        if is_whole(start):
            return int(start)
        # 0.95 means 95/100, not the binary fraction next to it.
        return max(1, math.floor(Fraction(str(start)) * _known(total, "Piecewise")))


@dataclass(frozen=True)
class _Ramp(Schedule):
    start: float
    end: float

    def __post_init__(self) -> None:
        _set_number(self, "start")
        _set_number(self, "end")

    def value(self, time: int, total: int | None) -> float:
        """Return ``start`` at first and ``end`` at the last time, both to the last digit."""
        last = _known(total, type(self).__name__) - 1
        share = self._share(min(time / last, 1.0)) if last else 0.0
        return self.start * (1 - share) + self.end * share

    def extremes(self) -> tuple[float, ...]:
        """Return both ends."""
        return (self.start, self.end)

    @abstractmethod
    def _share(self, progress: float) -> float: ...


class Linear(_Ramp):
    """From ``start`` to ``end`` along a line; the last epoch has ``end``.

    >>> [Linear(0.0, 0.5).value(epoch, total=3) for epoch in range(3)]
    [0.0, 0.25, 0.5]
    """

    def _share(self, progress: float) -> float:
        return progress


class Cosine(_Ramp):
    """From ``start`` to ``end`` along half a wave of the cosine: slow, fast, slow; the last epoch has ``end``.

    >>> [round(Cosine(0.0, 1.0).value(epoch, total=5), 4) for epoch in range(5)]
    [0.0, 0.1464, 0.5, 0.8536, 1.0]
    """

    def _share(self, progress: float) -> float:
        return math.sin(math.pi / 2 * progress) ** 2


@dataclass(frozen=True)
class Cyclic(Schedule):
    """Numbers in turn, ``length`` epochs each, over and over; or ``cycles`` times in equal phases.

    >>> [Cyclic([3.0, 1.0], length=2).value(epoch, total=None) for epoch in range(6)]
    [3.0, 3.0, 1.0, 1.0, 3.0, 3.0]
    >>> [Cyclic([3.0, 1.0], cycles=2).value(epoch, total=8) for epoch in range(8)]
    [3.0, 3.0, 1.0, 1.0, 3.0, 3.0, 1.0, 1.0]
    """

    values: Sequence[float]
    length: int | None = None
    cycles: int | None = None

    def __post_init__(self) -> None:
        _set_numbers(self, "values")
        if (self.length is None) == (self.cycles is None):
            raise ValueError(
                f"Cyclic: give either length or cycles, got length={quote(self.length)}, cycles={quote(self.cycles)}."
            )
        for name in ("length", "cycles"):
            number = getattr(self, name)
            if number is not None and not (is_whole(number) and number >= 1):
                raise ValueError(f"Cyclic: {name} must be a whole number >= 1, got {quote(number)}.")

    def value(self, time: int, total: int | None) -> float:
        """Return the number at ``time``; with ``cycles``, the first one again after the end."""
        if self.length is not None:
            return self.values[time // self.length % len(self.values)]
        assert self.cycles is not None
        return self.values[self.cycles * len(self.values) * time // _known(total, "Cyclic") % len(self.values)]

    def extremes(self) -> tuple[float, ...]:
        """Return all numbers."""
        return tuple(self.values)

    def check_total(self, total: int | None) -> None:
        """Accept any, unless the number of cycles is given."""
        if self.length is None:
            super().check_total(total)


def _set_number(schedule: Schedule, name: str) -> None:
    number = Limits().check(name, getattr(schedule, name), owner=type(schedule).__name__)
    object.__setattr__(schedule, name, number)


def _set_numbers(schedule: Schedule, name: str) -> None:
    owner, given = type(schedule).__name__, getattr(schedule, name)
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise ValueError(f"{owner}: {name} must be one number or more for the phases, got {quote(given)}.")
    object.__setattr__(schedule, name, tuple(Limits().check(name, number, owner=owner) for number in given))


def _known(total: int | None, owner: str) -> int:
    if total is None:
        raise ValueError(f"{owner}: total must be given, because the values depend on it.")
    return total


def _is_share(number: object) -> bool:
    return isinstance(number, Real) and not is_whole(number) and 0 < float(number) < 1
