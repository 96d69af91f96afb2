"""The catalogue of losses, written for people."""

import inspect
from textwrap import shorten

from lossmith.losses import LOSSES, ClassificationLoss, WeightedSum, make_loss

__all__ = ["description", "listing"]


def listing(columns: int = 160) -> str:
    """Return one line per loss, of so many columns at most: how it is written with its defaults, and what it is."""
    written_out = columns >= 120
    rows = [(repr(loss()) if written_out else name, _summary(loss)) for name, loss in LOSSES.items()]
    width = max(len(written) for written, _ in rows)
    room = max(columns - width - 2, 30)
    return "\n".join(f"{written:{width}}  {shorten(summary, room, placeholder=' ...')}" for written, summary in rows)


def description(expression: str) -> str:
    """Return the documentation of one loss with its parameters, their values and ranges."""
    made = make_loss(expression)
    loss, name = type(made), made.name
    parts = [f"{made}: lossmith.{loss.__name__}", _documentation(loss), _parameters(made)]
    if loss.presets:
        written = [f"  {name}@{classes} = {loss.for_classes(classes)!r}" for classes in loss.presets]
        parts.append("\n".join(["Published for a number of classes:", *written]))
    return "\n\n".join(part for part in parts if part)


def _summary(loss: type[ClassificationLoss]) -> str:
    return _documentation(loss).split("\n\n")[0].replace("\n", " ")


def _documentation(loss: type[ClassificationLoss]) -> str:
    """Return the docstring as a terminal shows it best."""
    return (inspect.getdoc(loss) or "").replace("``", "")


def _parameters(loss: ClassificationLoss) -> str:
    own = {} if type(loss) is WeightedSum else loss.parameters_in_order()
    lines = [
        f"  {name} = {value!r}, {loss.limits[name]}" if name in loss.limits else f"  {name} = {value!r}"
        for name, value in own.items()
    ]
    return "\n".join(["Parameters:", *lines]) if lines else ""
