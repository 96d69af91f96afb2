"""What a user brings to a study from Python, as far as a file can know it again."""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from lossmith.data import PreparedData, load_data
from lossmith.objectives.objective import Objective
from lossmith.studies.design.setting_checks import checked

__all__ = ["SPLITS", "BroughtData", "brought_data", "identity_of", "read_data"]

SPLITS = ("validation", "test")
"""The settings that may be data of their own."""


@dataclass(frozen=True)
class BroughtData:
    """A source of data with splits of the user's own that no file holds."""

    source: Any
    splits: Mapping[str, Any]
    """Sources of validation and test rows, by these names."""


def brought_data(source: Any, settings: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Take splits that are no files out of the settings, which a study keeps as text, and put them beside the source.

    Args:
        source: What the data is read from.
        settings: Those of the study, as they were given.

    Returns:
        The source, and the settings that are left.

    Raises:
        TypeError: If there is nothing that the splits belong to.
        ValueError: If a split is nothing that can be read.
    """
    given = {name: checked(name, settings[name]) for name in SPLITS if settings.get(name) is not None}
    splits = {name: value for name, value in given.items() if not isinstance(value, str)}
    if splits and source is None:
        raise TypeError(f"compare: data must be given where {' and '.join(splits)} rows are, got none.")
    left = {name: value for name, value in settings.items() if name not in splits}
    return (BroughtData(source, splits) if splits else source), left


def read_data(source: Any, loading: Mapping[str, Any], **further: Any) -> PreparedData:
    """Read the data of a study, with the splits that were brought for it.

    Args:
        source: What :func:`lossmith.data.load_data` reads, or that with splits.
        loading: The settings of the data.
        **further: Other arguments of :func:`lossmith.data.load_data`.

    Returns:
        The data with its splits.
    """
    if isinstance(source, BroughtData):
        return load_data(source.source, **{**loading, **source.splits}, **further)
    return load_data(source, **loading, **further)


def identity_of(losses: Mapping[str, Any], code: Callable[..., Any] | None, kind: str = "model") -> dict[str, str]:
    """Return a digest for each loss of the user's own, and for a model or training: it changes when code or numbers do."""
    brought = {name: loss for name, loss in losses.items() if not isinstance(loss, Objective)}
    expressions = {name: repr((loss.name, loss.loss)) for name, loss in losses.items() if isinstance(loss, Objective)}
    own = {name: _digest(type(loss), _numbers(loss)) for name, loss in brought.items()}
    return {**expressions, **own, **({kind: _digest(code, "")} if code else {})}


def _digest(code: Any, numbers: str) -> str:
    try:
        source = inspect.getsource(code)
    except (OSError, TypeError):  # typed at a prompt, or not Python at all: its name will have to do
        source = repr(getattr(code, "__qualname__", type(code).__qualname__))
    return hashlib.sha256(f"{source}\n{numbers}".encode()).hexdigest()[:16]


def _numbers(loss: nn.Module) -> str:
    """Return the settings of a module in words: what it has for attributes, and the values of its parameters and buffers."""
    private = set(vars(nn.Module()))
    attributes = {name: repr(value) for name, value in vars(loss).items() if name not in private}
    state = {name: value.tolist() for name, value in loss.state_dict().items()}
    return repr((attributes, state))
