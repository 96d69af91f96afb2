"""The scheduler that changes parameters of a loss during training."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lossmith.losses import ClassificationLoss
from lossmith.losses.limits import Limits, is_whole
from lossmith.losses.nearest import nearest
from lossmith.losses.weighted_sum import WeightedSum
from lossmith.schedules import Constant, Schedule, make_schedule

__all__ = ["LossScheduler", "checked_schedules"]


class LossScheduler:
    """Sets parameters of a loss as training goes on, with the habits of torch's learning-rate schedulers.

    The values of epoch 0 are set when it is made, and each :meth:`step` sets the next. Step once an epoch, with ``total`` the
    number of epochs, or once a batch, with ``total`` the number of batches; schedules that do not depend on it need none. A
    schedule is one of :mod:`lossmith.schedules`, its name, or a number.

    >>> from lossmith import make_loss
    >>> loss = make_loss("ce-el")
    >>> scheduler = LossScheduler(loss, focus="focus-gradual", total=12)
    >>> for epoch in range(12):
    ...     scheduler.step()  # after the epoch's training
    >>> loss
    ce-el(focus=0.5)

    Parameters of the parts of a sum or a wrapper are named by their path, or by their name where only one part has it:
    ``factors.1``, ``losses.0.q``. All values are checked against the parameter's range before training starts.

    >>> loss = make_loss("nce + 20*logit-bias(gce)")
    >>> LossScheduler(loss, {"factors.1": "linear(20, 5)", "q": 0.5}, epsilon="epsilon-cyclic", total=66).get_last_value()
    {'factors.1': 20.0, 'losses.1.losses.0.q': 0.5, 'losses.1.epsilon': 5.2}
    """

    def __init__(
        self,
        loss: ClassificationLoss,
        schedules: Mapping[str, Schedule | str | float] | None = None,
        *,
        total: int | None = None,
        **more_schedules: Schedule | str | float,
    ) -> None:
        if total is not None and not (is_whole(total) and total >= 1):
            raise ValueError(f"LossScheduler: total must be a whole number >= 1, got {total!r}.")
        if not isinstance(loss, ClassificationLoss):
            raise TypeError(f"LossScheduler: loss must be a lossmith loss, got {type(loss).__name__}.")
        self.loss = loss
        self.total = total
        self.last_epoch = 0
        self.schedules = checked_schedules(loss, {**(schedules or {}), **more_schedules})
        if not self.schedules:
            raise ValueError("LossScheduler: give a schedule for at least one parameter, got none.")
        for schedule in self.schedules.values():
            schedule.check_total(total)
        self._parameters = _parameters(loss)
        self._apply()

    def step(self) -> None:
        """Set the values of the next epoch; after the last one they stay."""
        if self.total is not None and self.last_epoch >= self.total:
            raise ValueError(f"LossScheduler: total is {self.total}, and step was called more often than that.")
        self.last_epoch += 1
        self._apply()

    def get_last_value(self) -> dict[str, float]:
        """Return the values that are set, by the path of their parameter."""
        # After the last epoch, step() is called once more, by habit: what the last epoch had is still in place.
        time = self.last_epoch if self.total is None else min(self.last_epoch, self.total - 1)
        return {path: schedule.value(time, self.total) for path, schedule in self.schedules.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return what :meth:`load_state_dict` needs, in plain numbers and text."""
        return {"last_epoch": self.last_epoch, "total": self.total, "schedules": self._written()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to where another scheduler of the same schedules was, and set the values of that time."""
        own = {"total": self.total, "schedules": self._written()}
        for name, expected in own.items():
            if state_dict.get(name) != expected:
                raise ValueError(f"LossScheduler: the saved {name} must be {expected}, got {state_dict.get(name)}.")
        self.last_epoch = int(state_dict["last_epoch"])
        self._apply()

    def _written(self) -> dict[str, str]:
        return {path: repr(schedule) for path, schedule in self.schedules.items()}

    def _apply(self) -> None:
        for path, value in self.get_last_value().items():
            self._parameters[path].set(value)


def checked_schedules(loss: ClassificationLoss, schedules: Mapping[str, Schedule | str | float]) -> dict[str, Schedule]:
    """Return the schedules by the path of their parameter; raise an error for an unknown one or a value out of its range."""
    known = _parameters(loss)
    found = {_path(name, known): _as_schedule(schedule) for name, schedule in schedules.items()}
    for path, schedule in found.items():
        known[path].check(schedule.extremes())
    return found


@dataclass(frozen=True)
class _Parameter:
    """A number that belongs to a loss."""

    owner: ClassificationLoss
    name: str

    def set(self, value: float) -> None:
        setattr(self.owner, self.name, value)

    def check(self, values: Iterable[float]) -> None:
        """Set every value in turn, which raises the loss's own error where it is out of range."""
        before = getattr(self.owner, self.name)
        try:
            for value in values:
                self.set(value)
        finally:
            self.set(before)


@dataclass(frozen=True)
class _Factor(_Parameter):
    """The factor of one part of a sum."""

    owner: WeightedSum
    position: int

    def set(self, value: float) -> None:
        self.owner.factors[self.position] = value

    def check(self, values: Iterable[float]) -> None:
        for value in values:
            Limits().check(self.name, value, owner="WeightedSum")


def _parameters(loss: ClassificationLoss) -> dict[str, _Parameter]:
    """Return every number that can be scheduled, by path; those that are None are not in use."""
    found: dict[str, _Parameter] = {}
    for path, module in loss.named_modules():
        if not isinstance(module, ClassificationLoss):
            continue
        prefix = f"{path}." if path else ""
        own = [name for name, value in module.parameters_in_order().items() if type(value) is float]
        options = [] if path else ["label_smoothing"]  # a sum or a wrapper has one for all of its parts
        found |= {f"{prefix}{name}": _Parameter(module, name) for name in [*own, *options]}
        if type(module) is WeightedSum:
            found |= {f"{prefix}factors.{i}": _Factor(module, f"factors.{i}", i) for i in range(len(module.factors))}
    return found


def _path(name: str, known: Mapping[str, _Parameter]) -> str:
    if name in known:
        return name
    matches = [path for path in known if path.endswith(f".{name}")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ValueError(f"LossScheduler: {name!r} is a parameter of several parts, name one of {', '.join(matches)}.")
    hint = nearest(name, [*known, *(path.rpartition(".")[2] for path in known)])
    advice = f"; known are {', '.join(known)}." if hint == "." else hint
    raise ValueError(f"LossScheduler: unknown parameter {name!r}{advice}")


def _as_schedule(schedule: Schedule | str | float) -> Schedule:
    if isinstance(schedule, Schedule):
        return schedule
    return make_schedule(schedule) if isinstance(schedule, str) else Constant(schedule)
