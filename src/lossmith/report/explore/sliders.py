"""What the page knows about the losses: parameters with their ranges, from the catalogue."""

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lossmith.expressions.limits import Limits
from lossmith.kernels.traced import UntraceableError, trace
from lossmith.losses import LOSSES, ClassificationLoss, LogitBias
from lossmith.losses.contract.composite import CompositeLoss
from lossmith.losses.contract.needs_data import NeedsData, is_complete
from lossmith.losses.contract.wrapper import WrapperLoss
from lossmith.report.explore.printed import printed

__all__ = ["Slider", "catalogue", "printed_losses"]

# What a parameter starts at that is not in use unless it is set.
UNSET_START = 1.0
# Where on its slider, from 0 to 1, a value should be at least from which one explores.
LEAST_POSITION = 0.3


@dataclass(frozen=True)
class Slider:
    """The part of a parameter's range that a slider shows; where there is no end, twice what was published, at least 1.

    >>> Slider.covering(Limits(0.0, 1.0), [0.7])
    Slider(low=0.0, high=1.0, start=0.7, power=1.0)
    >>> Slider.covering(Limits(0.0), [2.0])
    Slider(low=0.0, high=4.0, start=2.0, power=1.0)
    >>> Slider.covering(Limits(0.0), [1.0, 50.0]).power
    3.824...
    """

    low: float
    high: float
    start: float
    power: float
    """The value at position x in [0, 1] is ``low + (high - low) * x**power``."""

    @classmethod
    def covering(cls, limits: Limits, published: list[float]) -> "Slider":
        """Make the slider of a parameter, of which the first published value is the default."""
        start = published[0]
        low = limits.low if math.isfinite(limits.low) else min(0.0, *(2 * value for value in published))
        high = limits.high if math.isfinite(limits.high) else max(1.0, *(2 * value for value in published))
        share = (start - low) / (high - low)
        is_squeezed = 0 < share < LEAST_POSITION / 2
        return cls(low, high, start, math.log(share) / math.log(LEAST_POSITION) if is_squeezed else 1.0)


def catalogue() -> dict[str, Any]:
    """Return, ready for JSON, every loss that is a function of a row of logits, and the logit bias that goes with any.

    Losses whose formula cannot be printed for a browser are left out, with the reason.

    Returns:
        The losses by name, the parameter of the bias with its presets, and the reasons by the names of losses left out.
    """
    formulas, left_out = printed_losses()
    losses = {name: _entry(_ready(LOSSES[name]), list(forms)) for name, forms in formulas.items()}
    bias = {"bias": _parameter(LogitBias(), "epsilon"), "biasPresets": dict(LogitBias.presets)}
    return {"losses": losses, **bias, "leftOut": left_out}


def printed_losses() -> tuple[dict[str, dict[tuple[str, ...], str]], dict[str, str]]:
    """Print the formulas of all losses.

    Returns:
        For each loss and each form of it, the names of the parameters that are given, the formula in JavaScript; and for each
        loss that has none, why.
    """
    formulas, left_out = {}, {}
    for name, loss in LOSSES.items():
        if issubclass(loss, WrapperLoss):
            continue
        try:
            formulas[name] = {tuple(form): _printed_form(made, form) for form, made in _forms(loss)}
        except UntraceableError as reason:
            left_out[name] = f"The formula {reason}."
    return formulas, left_out


def _printed_form(loss: ClassificationLoss, form: list[str]) -> str:
    """Print a formula, unless it holds something that depends on the parameters without being computed from them anew."""
    given = {name: getattr(loss, name) for name in form}
    other = type(loss)(**{name: _another(name, value, _limits(loss, name)) for name, value in given.items()})
    for name, value in loss.__getstate__().items():
        if name not in form and repr(value) != repr(vars(other)[name]):
            raise UntraceableError(f"uses {name}, which the constructor makes of parameters; formula() should")
    return printed(trace(loss, form))


def _another(name: str, value: Any, limits: Limits) -> Any:
    """Return a value within the limits that is another one."""
    if isinstance(value, bool):
        return not value
    if not isinstance(value, int | float):
        raise UntraceableError(f"has a parameter {name} that is no number")
    steps = (1, -1) if limits.whole else (0.25, -0.25, 0.01, -0.01)
    return next((value + step for step in steps if _is_allowed(value + step, limits)), value)


def _is_allowed(value: float, limits: Limits) -> bool:
    try:
        limits.check("", value, owner="")
    except ValueError:
        return False
    return True


def _entry(loss: ClassificationLoss, forms: list[tuple[str, ...]]) -> dict[str, Any]:
    parameters = {name: _parameter(loss, name) for name in _shown(loss)}
    return {
        "summary": " ".join((inspect.getdoc(loss) or "").replace("``", "").split("\n\n")[0].split()),
        "parameters": parameters,
        "defaults": _shown(loss),
        "forms": [list(form) for form in forms],
        "presets": {classes: type(loss).for_classes(classes).parameters_in_order() for classes in loss.presets},
    }


def _parameter(loss: ClassificationLoss, name: str) -> dict[str, Any]:
    default = getattr(loss, name)
    if isinstance(default, bool):
        return {"kind": "switch", "start": default}
    limits = _limits(loss, name)
    published = [UNSET_START if default is None else default]
    published += [preset[name] for preset in loss.presets.values() if name in preset]
    slider = Slider.covering(limits, published)
    ends = {"lowOpen": limits.low_open, "highOpen": limits.high_open, "allowed": str(limits)}
    bounds = {"lowest": _finite(limits.low), "highest": _finite(limits.high)}
    return {"kind": "whole" if limits.whole else "number", **vars(slider), **bounds, **ends}


def _ready(loss: type[ClassificationLoss]) -> ClassificationLoss:
    """Make a loss, with an example of what data would decide."""
    return loss(**loss.example) if issubclass(loss, NeedsData) else loss()


def _shown(loss: ClassificationLoss) -> dict[str, Any]:
    """Return the parameters of a loss without those that data decides."""
    given = loss.from_data if isinstance(loss, NeedsData) else {}
    return {name: value for name, value in loss.parameters_in_order().items() if name not in given}


def _limits(loss: ClassificationLoss, name: str) -> Limits:
    """Return the range of a parameter, which is any number unless the loss or a part of it says more."""
    return next((part.limits[name] for part in _with_parts(loss) if name in part.limits), Limits())


def _with_parts(loss: ClassificationLoss) -> Iterator[ClassificationLoss]:
    yield loss
    if isinstance(loss, CompositeLoss):
        yield from loss.parts


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def _forms(loss: type[ClassificationLoss]) -> list[tuple[list[str], ClassificationLoss]]:
    """Return the sets of parameters that can be given together, each with a loss made so: the constructor is asked.

    >>> [form for form, _ in _forms(LOSSES["ce-el"])]
    [['focus'], ['alpha', 'beta']]
    """
    optional = [name for name, limits in loss.limits.items() if limits.optional]
    forms: dict[tuple[str, ...], ClassificationLoss] = {}
    for given in _subsets(optional):
        made = _made_with(loss, given)
        if made is not None:
            form = tuple(name for name, value in made.parameters_in_order().items() if value is not None)
            forms.setdefault(form, made)
    return [(list(form), made) for form, made in forms.items()]


def _subsets(names: list[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def _made_with(loss: type[ClassificationLoss], given: tuple[str, ...]) -> ClassificationLoss | None:
    values: dict[str, Any] = {name: min(UNSET_START, loss.limits[name].high) for name in given}
    try:
        made = loss(**values)
    except ValueError:
        return None
    return made if is_complete(made) else None
