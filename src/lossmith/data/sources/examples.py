"""What a source holds, before anything is fitted to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["SPLITS", "Array", "Examples", "Groups", "joined"]

Array = np.ndarray[Any, Any]
Groups = str | Mapping[Any, Any] | Sequence[Any]

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and labels, one row an example, as the source has them."""

    name: str
    inputs: pd.DataFrame | Array
    """A table of features, or an array: features ``(n, d)``, images ``(n, h, w)``, ``(n, c, h, w)`` or ``(n, h, w, c)``."""
    labels: Array
    """Of any type; missing where None or NaN."""
    split: Array | None = None
    """Of each row one of ``SPLITS``, or ``""`` where the source leaves it to us; None where it says nothing at all."""
    true_labels: Array | None = None
    classes: tuple[str, ...] | None = None
    """The names of the classes, where labels are their numbers."""
    groups: Groups | None = None
    notes: tuple[str, ...] = ()

    def rows(self, chosen: Array) -> "Examples":
        """Return these rows alone.

        Args:
            chosen: Row numbers, or a mask.

        Returns:
            New examples.
        """
        return replace(
            self,
            inputs=self.inputs.iloc[chosen] if isinstance(self.inputs, pd.DataFrame) else self.inputs[chosen],
            labels=self.labels[chosen],
            split=None if self.split is None else self.split[chosen],
            true_labels=None if self.true_labels is None else self.true_labels[chosen],
        )


def joined(parts: Mapping[str, Examples]) -> Examples:
    """Put the parts that serve for training, validation and test behind one another.

    A part that has splits of its own keeps them.

    Args:
        parts: Examples by split, at least one.

    Returns:
        All examples, with their splits.

    Raises:
        ValueError: If their inputs do not have one shape.
    """
    first = next(iter(parts.values()))
    known = [part.true_labels is not None for part in parts.values()]
    return replace(
        first,
        inputs=_stacked([part.inputs for part in parts.values()], first.name),
        labels=np.concatenate([part.labels.astype(object) for part in parts.values()]),
        split=np.concatenate([_split(part, split) for split, part in parts.items()]),
        true_labels=np.concatenate([_truth(part) for part in parts.values()]) if any(known) else None,
        notes=tuple(dict.fromkeys(note for part in parts.values() for note in part.notes)),
    )


def _split(part: Examples, split: str) -> Array:
    """Return the split of each row: its own where it is marked, and that of its part otherwise."""
    own = np.full(len(part.labels), "", dtype=object) if part.split is None else part.split
    return np.where(own == "", split, own)


def _truth(part: Examples) -> Array:
    """Return the true labels, which are the labels where nothing better is known."""
    return (part.labels if part.true_labels is None else part.true_labels).astype(object)


def _stacked(inputs: Sequence[pd.DataFrame | Array], name: str) -> pd.DataFrame | Array:
    tables = [part for part in inputs if isinstance(part, pd.DataFrame)]
    if len(tables) == len(inputs):
        return pd.concat(tables, ignore_index=True)
    arrays = [part for part in inputs if not isinstance(part, pd.DataFrame)]
    shapes = {part.shape[1:] for part in arrays}
    if tables or len(shapes) > 1:
        raise ValueError(
            f"{name}: the splits must have inputs of one shape, got {sorted(map(str, shapes)) or 'tables and arrays'}."
        )
    return np.concatenate(arrays)
