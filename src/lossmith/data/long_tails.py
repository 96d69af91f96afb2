"""Training rows of which some classes have few: long tails, made of data whose classes are more even."""

import re
import zlib
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lossmith.data.sources.examples import Array
from lossmith.data.splits import Splits
from lossmith.expressions.limits import Limits
from lossmith.expressions.quotes import quote

__all__ = ["LongTail", "long_tailed", "make_long_tail"]

KINDS = ("exponential", "step")
_RATIO = Limits(0.0, 1.0, low_open=True)


@dataclass(frozen=True)
class LongTail:
    """How many rows each class keeps, from the most frequent to the rarest.

    ``exponential(0.01)`` lets classes fall in equal ratios, the last to 0.01 times the rows of the first; ``step(0.01)`` leaves
    the first half of the classes as it is, and 0.01 times the rows of the first to each of the others.
    """

    kind: str
    ratio: float

    def __str__(self) -> str:
        return f"{self.kind}({self.ratio:g})"

    def shares(self, counts: Array) -> Array:
        """Return which share of its rows each class keeps.

        Args:
            counts: How many rows the classes have.

        Returns:
            Numbers in [0, 1], in the order of the counts: a class never gets more rows than it has.

        >>> LongTail("exponential", 0.01).shares(np.array([100, 100, 100]))
        array([1.  , 0.1 , 0.01])
        >>> LongTail("step", 0.1).shares(np.array([10, 50, 100, 100]))
        array([1. , 0.2, 1. , 1. ])
        """
        present = np.flatnonzero(counts)
        order = present[np.argsort(-counts[present], kind="stable")]
        places = np.arange(len(order))
        steps = places / max(1, len(order) - 1) if self.kind == "exponential" else places >= (len(order) + 1) // 2
        wanted = counts.max() * self.ratio**steps
        shares = np.ones(len(counts))
        shares[order] = np.minimum(1.0, wanted / counts[order])
        return shares


def make_long_tail(imbalance: str | float | None) -> LongTail | None:
    """Read a long tail from text; a number alone is the ratio of an exponential one.

    Args:
        imbalance: ``exponential(RATIO)``, ``step(RATIO)`` or a ratio in (0, 1]; ``none``, 1 or None for rows as they are.

    Returns:
        The tail, or None.

    Raises:
        TypeError: If it is neither text nor a number.
        ValueError: If it cannot be read, or the ratio is out of range.

    >>> str(make_long_tail(0.01)), str(make_long_tail("step(0.1)")), make_long_tail("none")
    ('exponential(0.01)', 'step(0.1)', None)
    """
    if imbalance is None or imbalance == "none":
        return None
    if isinstance(imbalance, bool) or not isinstance(imbalance, str | int | float):
        raise TypeError(f"load_data: imbalance must be text or a ratio, got {type(imbalance).__name__}.")
    found = re.fullmatch(r"\s*(?:([a-z]+)\()?\s*([\d.eE+-]+)\s*\)?\s*", str(imbalance))
    kind = "exponential" if found is None or found[1] is None else found[1]
    try:
        ratio = float("x" if found is None else found[2])
    except ValueError:
        kind, ratio = "", 0.0
    if kind not in KINDS:
        known = ", ".join(f"{kind}(RATIO)" for kind in KINDS)
        raise ValueError(f"load_data: imbalance must be a ratio, {known} or none, got {quote(imbalance)}.")
    _RATIO.check("imbalance", ratio, owner="load_data")
    return None if ratio == 1 else LongTail(kind, ratio)


def long_tailed(splits: Splits, labels: Array, tail: LongTail | None, seed: int) -> tuple[Splits, list[str]]:
    """Leave out training and validation rows, such that classes have a long tail; test rows stay as they are.

    Every class keeps at least one of its training rows, and of its validation rows. Which rows these are belongs to the seed, and
    what is kept at one ratio is kept at every larger one.

    Args:
        splits: Row numbers of the splits.
        labels: The class index of every row.
        tail: How many are kept, or None for all.
        seed: Draws them.

    Returns:
        The splits, and a note on what was left out.
    """
    if tail is None:
        return splits, []
    counts = np.bincount(labels[splits.train], minlength=int(labels.max()) + 1)
    shares = tail.shares(counts)
    draws = np.random.default_rng([seed, zlib.crc32(b"long tail")]).random(len(labels))
    train, validation = (_kept(rows, labels, shares, draws) for rows in (splits.train, splits.validation))
    left = np.bincount(labels[train])
    ends = f"{left.max()} rows of the most frequent class, {left[left > 0].min()} of the rarest"
    note = f"imbalance {tail}: {len(train)} of {len(splits.train)} training rows are used, {ends}; test rows stay as they are"
    return Splits(train, validation, splits.test), [note]


def _kept(rows: Tensor, labels: Array, shares: Array, draws: Array) -> Tensor:
    """Return a share of the rows of each class, those with the smallest draws."""
    places = rows.numpy()
    kept = []
    for label in np.unique(labels[places]):
        own = places[labels[places] == label]
        count = max(1, int(shares[label] * len(own) + 0.5))
        kept.append(own[np.argsort(draws[own], kind="stable")[:count]])
    return torch.from_numpy(np.sort(np.concatenate(kept))) if kept else rows
