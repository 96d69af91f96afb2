"""The catalogue of losses, written for people."""

import inspect

from lossmith.losses import LOSSES, ClassificationLoss
from lossmith.losses.expression import nearest

__all__ = ["description", "listing"]


def listing() -> str:
    """Return one line per loss: how it is written with its defaults, and what it is."""
    rows = [(repr(loss()), _summary(loss)) for loss in LOSSES.values()]
    width = max(len(written) for written, _ in rows)
    return "\n".join(f"{written:{width}}  {summary}" for written, summary in rows)


def description(name: str) -> str:
    """Return the documentation of one loss with its parameters and their ranges."""
    if name not in LOSSES:
        raise ValueError(f"unknown loss {name!r}{nearest(name, LOSSES)} 'lossmith list' names all.")
    loss = LOSSES[name]
    parts = [f"{name}: lossmith.{loss.__name__}", inspect.getdoc(loss) or "", _parameters(loss)]
    if loss.presets:
        written = [f"  {name}@{classes} = {loss.for_classes(classes)!r}" for classes in loss.presets]
        parts.append("\n".join(["Published for a number of classes:", *written]))
    return "\n\n".join(part for part in parts if part)


def _summary(loss: type[ClassificationLoss]) -> str:
    return (inspect.getdoc(loss) or "").split("\n\n")[0].replace("\n", " ")


def _parameters(loss: type[ClassificationLoss]) -> str:
    own = loss().parameters_in_order()
    lines = [
        f"  {name} = {value!r}, {loss.limits[name]}" if name in loss.limits else f"  {name} = {value!r}"
        for name, value in own.items()
    ]
    return "\n".join(["Parameters:", *lines]) if lines else ""
