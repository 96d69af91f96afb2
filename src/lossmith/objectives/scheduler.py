"""The scheduler that changes parameters of a loss during training."""

from collections.abc import Mapping
from itertools import chain
from numbers import Real
from typing import Any

from lossmith.expressions.limits import is_whole
from lossmith.losses import ClassificationLoss
from lossmith.losses.contract.adjustable import adjustable_numbers, path_of
from lossmith.objectives.named_schedules import make_schedule
from lossmith.objectives.schedules import Constant, Schedule

__all__ = ["LossScheduler", "checked_schedules"]


class LossScheduler:
    """Sets parameters of a loss as training goes on, with the habits of torch's learning-rate schedulers.

    The values of epoch 0 are set when it is made, and each :meth:`step` sets the next. Step once an epoch, with ``total`` the
    number of epochs, or once a batch, with ``total`` the number of batches; schedules that do not depend on it need none. A
    schedule is one of :mod:`lossmith.objectives.schedules`, its name, or a number.

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

    Args:
        loss: The loss whose parameters change.
        schedules: Schedules by parameter.
        total: How many steps there are; needed where a schedule depends on it.
        **more_schedules: The same by keyword.

    Raises:
        TypeError: If the loss is not one of the library, or a schedule is neither a schedule, nor text, nor a number.
        ValueError: If a parameter is unknown or named twice, a value is out of its range, or a schedule does not fit ``total``.
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
        if schedules is not None and not isinstance(schedules, Mapping):
            raise TypeError(f"LossScheduler: schedules must map parameters to schedules, got {schedules!r}.")
        self.loss = loss
        self.total = total
        self.last_epoch = 0
        self.schedules = checked_schedules(loss, schedules or {}, more_schedules)
        if not self.schedules:
            raise ValueError("LossScheduler: give a schedule for at least one parameter, got none.")
        for schedule in self.schedules.values():
            schedule.check_total(total)
        self._parameters = adjustable_numbers(loss)
        self._apply()

    def step(self) -> None:
        """Set the values of the next epoch; after the last one they stay.

        Raises:
            ValueError: If there were ``total`` steps before.
        """
        if self.total is not None and self.last_epoch >= self.total:
            raise ValueError(f"LossScheduler: total is {self.total}, and step was called more often than that.")
        self.last_epoch += 1
        self._apply()

    def get_last_value(self) -> dict[str, float]:
        """Return the values that are set, by the path of their parameter.

        Returns:
            The value of each scheduled parameter.
        """
        # Training loops call step() once more after the last epoch: what that epoch had is still in place.
        time = self.last_epoch if self.total is None else min(self.last_epoch, self.total - 1)
        return {path: schedule.value(time, self.total) for path, schedule in self.schedules.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return what :meth:`load_state_dict` needs, in plain numbers and text.

        Returns:
            The step, the total and the schedules.
        """
        return {"last_epoch": self.last_epoch, "total": self.total, "schedules": self._written()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to where another scheduler of the same schedules was, and set the values of that time.

        Args:
            state_dict: What :meth:`state_dict` returned.

        Raises:
            ValueError: If it is that of other schedules or of another total, or its step is out of range.
        """
        own = {"total": self.total, "schedules": self._written()}
        for name, expected in own.items():
            if state_dict.get(name) != expected:
                raise ValueError(f"LossScheduler: the saved {name} must be {expected}, got {state_dict.get(name)}.")
        last_epoch = state_dict.get("last_epoch")
        if not (is_whole(last_epoch) and last_epoch >= 0 and (self.total is None or last_epoch <= self.total)):
            most = "" if self.total is None else f" and <= {self.total}"
            raise ValueError(f"LossScheduler: the saved last_epoch must be a whole number >= 0{most}, got {last_epoch!r}.")
        self.last_epoch = last_epoch
        self._apply()

    def _written(self) -> dict[str, str]:
        return {path: repr(schedule) for path, schedule in self.schedules.items()}

    def _apply(self) -> None:
        for path, value in self.get_last_value().items():
            self._parameters[path].set(value)


def checked_schedules(loss: ClassificationLoss, *schedules: Mapping[str, Schedule | str | float]) -> dict[str, Schedule]:
    """Return the schedules by the path of their parameter; raise an error for an unknown one or a value out of its range."""
    known = adjustable_numbers(loss)
    found: dict[str, Schedule] = {}
    for name, schedule in chain.from_iterable(each.items() for each in schedules):
        path = path_of(name, known, owner="LossScheduler")
        if path in found:
            raise ValueError(f"LossScheduler: {path} must have one schedule, got {found[path]} and {schedule}.")
        found[path] = _as_schedule(name, schedule)
    for path, schedule in found.items():
        known[path].check(schedule.extremes())
    return found


def _as_schedule(name: str, schedule: Schedule | str | float) -> Schedule:
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, str):
        return make_schedule(schedule)
    number: object = schedule
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"LossScheduler: {name} must have a schedule, its name or a number, got {schedule!r}.")
    return Constant(float(number))
