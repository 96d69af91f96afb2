"""What the page knows about the losses: parameters with their ranges, from the catalogue."""

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lossmith.losses import LOSSES, ClassificationLoss, LogitBias
from lossmith.losses.composite import CompositeLoss
from lossmith.losses.limits import Limits

__all__ = ["Slider", "catalogue"]

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
    """Return, ready for JSON, every loss that is a function of a row of logits, and the logit bias that goes with any."""
    losses = {name: _entry(loss()) for name, loss in LOSSES.items() if loss is not LogitBias}
    return {"losses": losses, "bias": _parameter(LogitBias(), "epsilon"), "biasPresets": dict(LogitBias.presets)}


def _entry(loss: ClassificationLoss) -> dict[str, Any]:
    names = list(loss.parameters_in_order())
    parameters = {name: _parameter(loss, name) for name in names}
    return {
        "summary": " ".join((inspect.getdoc(loss) or "").replace("``", "").split("\n\n")[0].split()),
        "parameters": parameters,
        "defaults": loss.parameters_in_order(),
        "forms": _forms(type(loss), names),
        "presets": {classes: type(loss).for_classes(classes).parameters_in_order() for classes in loss.presets},
    }


def _parameter(loss: ClassificationLoss, name: str) -> dict[str, Any]:
    default = getattr(loss, name)
    if isinstance(default, bool):
        return {"kind": "switch", "start": default}
    limits = next(part.limits[name] for part in _with_parts(loss) if name in part.limits)
    published = [UNSET_START if default is None else default]
    published += [preset[name] for preset in loss.presets.values() if name in preset]
    slider = Slider.covering(limits, published)
    ends = {"lowOpen": limits.low_open, "highOpen": limits.high_open, "allowed": str(limits)}
    bounds = {"lowest": _finite(limits.low), "highest": _finite(limits.high)}
    return {"kind": "whole" if limits.whole else "number", **vars(slider), **bounds, **ends}


def _with_parts(loss: ClassificationLoss) -> Iterator[ClassificationLoss]:
    yield loss
    if isinstance(loss, CompositeLoss):
        yield from loss.parts


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def _forms(loss: type[ClassificationLoss], names: list[str]) -> list[list[str]]:
    """Return the sets of parameters that can be given together: the constructor is asked.

    >>> _forms(LOSSES["ce-el"], ["focus", "alpha", "beta"])
    [['focus'], ['alpha', 'beta']]
    """
    optional = [name for name in names if name in loss.limits and loss.limits[name].optional]
    forms = []
    for given in _subsets(optional):
        made = _made_with(loss, given)
        form = [] if made is None else [name for name, value in made.parameters_in_order().items() if value is not None]
        if made is not None and form not in forms:
            forms.append(form)
    return forms


def _subsets(names: list[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def _made_with(loss: type[ClassificationLoss], given: tuple[str, ...]) -> ClassificationLoss | None:
    values: dict[str, Any] = {name: min(UNSET_START, loss.limits[name].high) for name in given}
    try:
        return loss(**values)
    except ValueError:
        return None
