"""Which numbers of a loss a search may change, within which ranges, and the expression with other numbers."""

import inspect
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial

from lossmith.expressions.limits import Limits
from lossmith.expressions.written import Change, WrittenPart, changed_text
from lossmith.losses import ClassificationLoss, WeightedSum
from lossmith.losses.contract.adjustable import AdjustableNumber, adjustable_numbers, path_of
from lossmith.objectives.named_objectives import OBJECTIVES, make_objective, written_parts
from lossmith.objectives.ranges import Range, range_of

__all__ = ["search_space", "with_parameters"]

# What the objectives that are more than a loss have themselves.
_OWN_LIMITS = {
    "dropout": {"keep": Limits(0.0, 1.0, low_open=True, usual=(0.3, 1.0))},
    "cosine-softmax": {"tau": Limits(0.0, low_open=True)},
    "extra-l2": {"final_weight_decay": Limits(0.0)},
    "ldam-drw": {
        "max_margin": Limits(0.0, usual=(0.0, 1.0)),
        "scale": Limits(0.0, low_open=True, usual=(1.0, 64.0)),
        "beta": Limits(0.0, 1.0, high_open=True, usual=(0.0, 0.9999)),
    },
    "two-pass-cot": {"gamma": Limits(0.0)},
}


def search_space(loss: str | ClassificationLoss) -> dict[str, Range]:
    """Return where to look for every number of a loss when it is tuned.

    The ranges follow from what the loss allows and from the numbers that it has: give it those that suit the data, and it is
    around them that is searched. A loss can be trained with everything in its ranges. Parts of sums and wrappers have paths,
    as in schedules. The first factor of a sum stays as it is, for the learning rate does the same. Numbers that a schedule
    changes, those that are not in use, and options such as label smoothing are left out.

    Args:
        loss: A loss, or the expression of a loss or of an objective.

    Returns:
        The ranges by the names that :func:`with_parameters` takes; empty where there is nothing to tune.

    Raises:
        TypeError: If it is neither text nor a loss of the library.
        ValueError: If the expression cannot be read.

    >>> search_space("gce")
    {'q': Range(low=0.0, high=1.0, log=False, whole=False)}
    >>> list(search_space("nce + 20*logit-bias(gce)"))
    ['factors.1', 'losses.1.epsilon', 'losses.1.losses.0.q']
    >>> list(search_space("dropout(loss=focal)"))
    ['gamma', 'dropout.keep']
    """
    if isinstance(loss, ClassificationLoss):
        numbers = _numbers_of_loss(loss)
    else:
        numbers = _Written(loss, "search_space").numbers
    return {name: range_of(number.limits, number.value) for name, number in numbers.items()}


def with_parameters(expression: str, values: Mapping[str, float]) -> str:
    """Return the expression of a loss or an objective with some of its numbers changed.

    Args:
        expression: A loss or an objective, as it is written on the command line.
        values: Numbers by the names that :func:`search_space` gives them; the last part of a path is enough where it is unique.

    Returns:
        The expression with these numbers; as it was where there are none.

    Raises:
        TypeError: If the expression is not text, or a value is not a number.
        ValueError: If it cannot be read, a name is unknown, or a number is out of its range.

    >>> with_parameters("logit-bias(gce)", {"epsilon": 3.0, "q": 0.5})
    'logit-bias(gce(q=0.5), epsilon=3.0)'
    >>> with_parameters("nce + 20*mae", {"factors.1": 5.0})
    '1.0*nce + 5.0*mae'
    >>> with_parameters("dropout(loss=focal)", {"dropout.keep": 0.5, "gamma": 1.0})
    'dropout(loss=focal(gamma=1.0), keep=0.5)'
    """
    written = _Written(expression, "with_parameters")
    return written.changed(values) if values else expression


@dataclass(frozen=True)
class _Number:
    """A number that a search may change."""

    value: float
    limits: Limits
    set: Callable[[float], None]


class _Written:
    """An expression whose numbers can be changed.

    A loss in it is printed anew with its new numbers; of an objective around it only the numbers themselves change.
    """

    def __init__(self, expression: str, caller: str) -> None:
        if not isinstance(expression, str):
            raise TypeError(f"{caller}: loss must be text or a lossmith loss, got {type(expression).__name__}.")
        self._expression, self._caller = expression, caller
        objective, parts = written_parts(expression)
        losses = [part for part in parts if isinstance(part.made, ClassificationLoss)]
        self._losses = [part for part in losses if not any(other.holds(part) for other in losses)]
        self._given: dict[int, tuple[WrittenPart, dict[str, float]]] = {}
        of_loss = _numbers_of_loss(objective.loss, {id(part) for loss in self._losses for part in loss.made.modules()})
        self.numbers = {path: number for path, number in of_loss.items() if path not in objective.schedules}
        for part in parts:
            self.numbers |= self._numbers_of_objective(part)

    def _numbers_of_objective(self, part: WrittenPart) -> dict[str, _Number]:
        defaults = inspect.signature(OBJECTIVES[part.name]).parameters if part.name in _OWN_LIMITS else {}
        return {
            f"{part.name}.{name}": _Number(
                part.arguments.get(name, defaults[name].default),
                limits,
                partial(self._give, part, name),
            )
            for name, limits in _OWN_LIMITS.get(part.name, {}).items()
        }

    def _give(self, part: WrittenPart, name: str, value: float) -> None:
        self._given.setdefault(part.start, (part, {}))[1][name] = value

    def changed(self, values: Mapping[str, float]) -> str:
        """Return the expression with other numbers."""
        for name, value in values.items():
            path = path_of(name, self.numbers, owner=self._caller)
            self.numbers[path].set(_as_number(path, value, self.numbers[path].limits, self._caller))
        losses = [Change(loss.start, loss.end, repr(loss.made)) for loss in self._losses]
        own = [change for part, given in self._given.values() for change in part.given(self._expression, given)]
        written = changed_text(self._expression, [*losses, *own])
        make_objective(written)  # for what objectives themselves find wrong with their numbers
        return written


def _as_number(name: str, value: float, limits: Limits, caller: str) -> float:
    """Return the number as its parameter takes it: a whole one may come as 3.0."""
    number: float | None = Limits().check(name, value, owner=caller)
    assert number is not None
    return int(number) if limits.whole and number.is_integer() else number


def _numbers_of_loss(loss: ClassificationLoss, written: Container[int] | None = None) -> dict[str, _Number]:
    """Return the numbers of a loss and of its parts by path, if need be only of those parts whose text there is."""
    adjustable = adjustable_numbers(loss)
    found: dict[str, _Number] = {}
    for path, part in loss.named_modules():
        if not isinstance(part, ClassificationLoss) or (written is not None and id(part) not in written):
            continue
        prefix = f"{path}." if path else ""
        if type(part) is WeightedSum:
            factors = {name: adjustable[name] for name in (f"{prefix}factors.{i}" for i in range(1, len(part.factors)))}
            found |= {name: _of_factor(factor) for name, factor in factors.items() if factor.get() != 0}
        own = {name: value for name, value in part.parameters_in_order().items() if type(value) in (int, float)}
        found |= {f"{prefix}{name}": _of_parameter(AdjustableNumber(part, name), value) for name, value in own.items()}
    return found


def _of_factor(factor: AdjustableNumber) -> _Number:
    """Return a factor as a number that keeps its sign."""
    value = factor.get()
    return _Number(value, Limits(0.0) if value > 0 else Limits(high=0.0), factor.set)


def _of_parameter(parameter: AdjustableNumber, value: float) -> _Number:
    return _Number(value, parameter.limits(), parameter.set)
