"""The schedules that have a name: every kind, and those of papers with their numbers."""

from collections.abc import Callable

from lossmith.expressions.reader import ExpressionReader
from lossmith.objectives.schedules import Constant, Cosine, Cyclic, Linear, Piecewise, Schedule

__all__ = ["SCHEDULES", "make_schedule"]


def _focus_zero() -> Schedule:
    """Return F = 0: cross-entropy and expectation loss in equal parts, throughout."""
    return Constant(0.0)


def _focus_late() -> Schedule:
    """Return F = 0, and 0.5 for the last 5 % of the epochs, which is one epoch at least."""
    return Piecewise((0.0, 0.5), at=(0.95,))


def _focus_gradual() -> Schedule:
    """Return F = 0, 0.1, 0.2, 0.3, 0.4, 0.5 in six equal phases."""
    return Piecewise((0.0, 0.1, 0.2, 0.3, 0.4, 0.5))


def _epsilon_cyclic() -> Schedule:
    """Return the logit bias for a thousand classes: six values, eleven epochs each, with every learning-rate phase of 66."""
    return Cyclic((5.2, 4.8, 4.3, 3.7, 3.0, 2.3), length=11)


SCHEDULES: dict[str, Callable[..., Schedule]] = {
    "constant": Constant,
    "piecewise": Piecewise,
    "linear": Linear,
    "cosine": Cosine,
    "cyclic": Cyclic,
    "focus-zero": _focus_zero,
    "focus-late": _focus_late,
    "focus-gradual": _focus_gradual,
    "epsilon-cyclic": _epsilon_cyclic,
}
"""Every schedule by name. The ``focus`` schedules are those of Battash, Hazan and Wolf ("Scheduling", 1 to 3); the cyclic
logit bias is that of Staats, Thamm and Rosenow, "Noise-robust loss functions", appendix 2."""


def make_schedule(expression: str) -> Schedule:
    """Read a schedule from text.

    Args:
        expression: A name, a name with parameters, or a number.

    Returns:
        The schedule.

    Raises:
        TypeError: If the expression is not text.
        ValueError: If it cannot be read, or a parameter is out of its range.

    >>> make_schedule("focus-gradual")
    Piecewise(values=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5), at=None)
    >>> make_schedule("linear(0, 0.5)")
    Linear(start=0.0, end=0.5)
    >>> make_schedule("cyclic([3, 1], length=5)")
    Cyclic(values=(3.0, 1.0), length=5, cycles=None)
    >>> make_schedule("0.3")
    Constant(number=0.3)
    """
    if isinstance(expression, str) and _is_number(expression):
        return Constant(float(expression))
    schedule = ExpressionReader(expression, SCHEDULES, caller="make_schedule", kind="schedule").read()
    assert isinstance(schedule, Schedule)
    return schedule


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
