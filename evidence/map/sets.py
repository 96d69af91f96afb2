"""The data sets of the map: all tables, texts and images within reach, small ones first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evidence.tables import MORE, NAMES, TARGET, file_of, made_table
from lossmith.data.sources.known_sets import read_known_set

__all__ = ["MOST_ROWS", "MapSet", "map_sets"]

MOST_ROWS = 5000
"""Rows of a table, of which two thirds are trained on."""
TEXTS = ("bbc-news", "election-tweets", "reuters", "newsgroups")
IMAGES = ("mnist", "fashion-mnist", "cifar-10")
IMAGE_ROWS = {"train": 6000, "test": 2000}


@dataclass(frozen=True)
class MapSet:
    """A data set, and what is said about its study beyond the usual."""

    name: str
    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The name of its study."""
        return self.name.replace(":", "-")

    def source(self, folder: Path) -> Any:
        """Return what is studied: a file for a table, otherwise the name.

        Args:
            folder: Where files of tables go.

        Returns:
            What :func:`lossmith.compare` reads.

        Raises:
            ValueError: If it is not on this machine; the line says how to get it.
        """
        if self.kind == "image":
            return _some_images(self.name)
        if self.kind == "text":
            return self.name
        return made_table(self.name, file_of(self.name, folder), most=MOST_ROWS).file


def _some_images(name: str) -> dict[str, Any]:
    """Return some images of either split, the same ones always: all test images would cost more than training."""
    examples, random, found = read_known_set(name), np.random.default_rng(0), {}
    for split, count in IMAGE_ROWS.items():
        rows = np.sort(random.permutation(np.flatnonzero(examples.split == split))[:count])
        found |= {f"x_{split}": np.asarray(examples.inputs)[rows], f"y_{split}": np.asarray(examples.labels)[rows].astype(int)}
    return found


def map_sets() -> Iterator[MapSet]:
    """Yield the sets: tables, then texts and images, which have fewer rows, trials and replicates than they could have."""
    for name in (*NAMES, *MORE):
        yield MapSet(name, "table", {"target": TARGET, "train_rows": MOST_ROWS})
    for name in TEXTS:
        yield MapSet(name, "text", {"train_rows": 2000, "trials": 6, "seeds": 3})
    for name in IMAGES:
        yield MapSet(name, "image", {"train_rows": 1500, "trials": 6, "seeds": 3})
