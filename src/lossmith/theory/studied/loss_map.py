"""The map of losses: mean accuracies on data sets that were studied, one row for each set, noise and loss."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

__all__ = ["BASELINE", "KINDS", "SAME_SHARE", "LossMap", "StudiedSet", "shipped_map"]

BASELINE = "ce"
KINDS = ("table", "text", "image")
SAME_SHARE = 0.03
"""Shares of wrong labels that are as good as the same, as rows are whole; another share is another question."""
FILE = Path(__file__).with_name("map.csv")
COLUMNS = ("data", "kind", "rows", "classes", "imbalance", "noise", "loss", "accuracy")


@dataclass(frozen=True)
class StudiedSet:
    """A data set that losses were compared on."""

    name: str
    kind: str
    """``table``, ``text`` or ``image``."""
    rows: int
    """Training rows of a replicate."""
    classes: int
    imbalance: float | None = None
    """Rows of the rarest class for each of the most frequent, where losses were judged by balanced accuracy; None where they
    were judged by accuracy."""
    accuracy: Mapping[float, Mapping[str, float]] = field(default_factory=dict, repr=False, hash=False)
    """By the share of wrong labels and by loss: the mean over replicates and kinds of noise; balanced accuracy where that
    judged."""

    def difference(self, noise: float, loss: str) -> float | None:
        """Return by how much a loss was ahead of cross-entropy at a share of wrong labels; None where that was not studied."""
        found = self.accuracy.get(noise, {})
        return found[loss] - found[BASELINE] if loss in found and BASELINE in found else None


@dataclass(frozen=True)
class LossMap:
    """All sets of a map, and what was measured about advice from it."""

    sets: tuple[StudiedSet, ...]
    about: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """``protocol``, how the sets were studied; ``neighbours``, how many sets advice is taken from, where that was measured."""

    @cached_property
    def losses(self) -> tuple[str, ...]:
        """All losses, in the order in which they occur."""
        return tuple(dict.fromkeys(loss for each in self.sets for found in each.accuracy.values() for loss in found))

    @cached_property
    def noises(self) -> tuple[float, ...]:
        """The shares of wrong labels that sets were studied at."""
        return tuple(sorted({noise for each in self.sets for noise in each.accuracy}))

    def without(self, name: str) -> "LossMap":
        """Return the map as it would be without a set."""
        return LossMap(tuple(each for each in self.sets if each.name != name), self.about)

    def beside(self, source: str) -> "LossMap":
        """Return what is known beside some data: the map without a set of that name, whatever file or collection it came from.

        Args:
            source: The name of the data, or its file.

        Returns:
            The map without it.
        """
        return LossMap(tuple(each for each in self.sets if _bare(each.name) != _bare(source)), self.about)

    def differences(self, kind: str, noise: float) -> dict[str, list[float]]:
        """Return by how much each loss was ahead of cross-entropy on every set of a kind that was judged by accuracy.

        Args:
            kind: ``table``, ``text`` or ``image``.
            noise: The share of wrong labels.

        Returns:
            By loss; without those that were not studied there.
        """
        sets = [each for each in self.sets if each.kind == kind and each.imbalance is None]
        found = {loss: [each.difference(noise, loss) for each in sets] for loss in self.losses if loss != BASELINE}
        there = {loss: [number for number in numbers if number is not None] for loss, numbers in found.items()}
        return {loss: numbers for loss, numbers in there.items() if numbers}

    @classmethod
    def read(cls, file: Path) -> "LossMap":
        """Read a map.

        Args:
            file: A first line of JSON behind ``#``, then comma-separated columns.

        Returns:
            The map.

        Raises:
            ValueError: If the file has other columns, or a number in it is none.
        """
        with file.open(encoding="utf-8", newline="") as lines:
            about = json.loads(next(lines).removeprefix("#"))
            reader = csv.DictReader(lines)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise ValueError(f"{file}: columns must be {', '.join(COLUMNS)}, got {', '.join(reader.fieldnames or ())}.")
            return cls(_sets(list(reader)), about)


def _bare(name: str) -> str:
    """Return the name of data without folder, suffix and collection, such as ``vowel`` for ``keel:vowel``."""
    return Path(name).stem.rpartition(":")[2]


def _sets(rows: Sequence[Mapping[str, str]]) -> tuple[StudiedSet, ...]:
    found: dict[tuple[str, str, int, int, float | None], dict[float, dict[str, float]]] = {}
    for row in rows:
        key = row["data"], row["kind"], int(row["rows"]), int(row["classes"]), float(row["imbalance"] or 0) or None
        found.setdefault(key, {}).setdefault(float(row["noise"]), {})[row["loss"]] = float(row["accuracy"])
    return tuple(StudiedSet(*key, accuracy) for key, accuracy in found.items())


@lru_cache(maxsize=1)
def shipped_map() -> LossMap:
    """Return the map that comes with the library; an empty one where there is none."""
    return LossMap.read(FILE) if FILE.is_file() else LossMap(())
