"""Which sets of a map are most like a task, and how losses did on them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from lossmith.theory.studied.loss_map import BASELINE, LossMap, StudiedSet

__all__ = ["LossRecord", "SimilarData", "Task", "mean_interval", "similar_data"]

FEWEST = 4
"""Sets that an interval needs: with fewer, nothing is said."""
NORMAL = 1.959964
"""The 97.5 % quantile of the normal distribution."""
NAMES = {"table": "tables", "text": "sets of texts", "image": "sets of images"}


@dataclass(frozen=True)
class Task:
    """What is known of a task before training."""

    classes: int
    noise: float = 0.0
    """The share of wrong labels."""
    rows: int | None = None
    """Training rows; None where they are not known."""
    kind: str | None = None
    """``table``, ``text`` or ``image``; None where it does not matter."""
    imbalance: float | None = None
    """Rows of the rarest class for each of the most frequent, where all classes are to count alike; None where all rows are."""


@dataclass(frozen=True)
class LossRecord:
    """How a loss did against cross-entropy."""

    loss: str
    sets: int
    ahead: int
    """Sets on which its mean accuracy was higher."""
    difference: float
    """The mean over sets."""
    low: float
    high: float
    """The 95 % interval of that mean."""


@dataclass(frozen=True)
class SimilarData:
    """What happened on the sets most like a task."""

    task: Task
    noise: float
    """The share of wrong labels at which they were studied, the nearest to that of the task."""
    sets: tuple[str, ...]
    rows: tuple[int, int]
    """Of the smallest and the largest set."""
    classes: tuple[int, int]
    records: tuple[LossRecord, ...]
    """Every loss but cross-entropy, the best mean difference first."""

    @property
    def advised(self) -> str:
        """The loss that was ahead on average, if its interval leaves out 0; otherwise cross-entropy."""
        ahead = [record for record in self.records if record.low > 0]
        return ahead[0].loss if ahead else BASELINE

    @property
    def what(self) -> str:
        """The sets in words, such as ``36 tables with 20 % wrong labels``."""
        kind = NAMES.get(self.task.kind or "", "data sets")
        uneven = "" if self.task.imbalance is None else " of uneven classes"
        labels = f"with {self.noise:.0%} wrong labels" if self.noise else "with labels as they are"
        return f"{len(self.sets)} {kind}{uneven} {labels}"


def similar_data(studied: LossMap, task: Task) -> SimilarData | None:
    """Return how losses did on the sets most like a task.

    Sets are of the task's kind, were judged by accuracy, or by balanced accuracy where the task has an imbalance, and were
    studied at the share of wrong labels that is nearest to the task's. Of these the nearest count, by the logarithms of classes,
    rows and imbalance, each divided by its spread over the sets; how many, the map says, as was measured by leaving sets out, and
    all of them until then.

    Args:
        studied: What happened.
        task: What is known of the task.

    Returns:
        The records; None where the map has fewer than four sets of that kind, or none with so many classes.
    """
    judged_alike = [each for each in studied.sets if (each.imbalance is None) == (task.imbalance is None)]
    of_kind = [each for each in judged_alike if task.kind in (None, each.kind) and each.accuracy]
    if len(of_kind) < FEWEST or not min(s.classes for s in of_kind) <= task.classes <= max(s.classes for s in of_kind):
        return None
    noise = min({level for each in of_kind for level in each.accuracy}, key=lambda level: (abs(level - task.noise), level))
    there = [each for each in of_kind if noise in each.accuracy]
    nearest = _nearest(there, task, int(studied.about.get("neighbours") or len(there)))
    records = [found for loss in studied.losses if loss != BASELINE and (found := _record(nearest, noise, loss))]
    if not records:
        return None
    return SimilarData(
        task,
        noise,
        tuple(each.name for each in nearest),
        (min(each.rows for each in nearest), max(each.rows for each in nearest)),
        (min(each.classes for each in nearest), max(each.classes for each in nearest)),
        tuple(sorted(records, key=lambda record: -record.difference)),
    )


def _nearest(sets: Sequence[StudiedSet], task: Task, count: int) -> list[StudiedSet]:
    """Return the sets that are nearest to a task, the nearest first."""
    known = {"classes": task.classes, "rows": task.rows, "imbalance": task.imbalance}
    wanted = {name: value for name, value in known.items() if value is not None}
    spreads = {name: _spread([math.log(getattr(each, name)) for each in sets]) for name in wanted}

    def distance(each: StudiedSet) -> float:
        return sum((math.log(getattr(each, name) / value) / spreads[name]) ** 2 for name, value in wanted.items())

    return sorted(sets, key=distance)[: max(count, FEWEST)]


def _spread(numbers: Sequence[float]) -> float:
    return (stdev(numbers) if len(numbers) > 1 else 0.0) or 1.0


def _record(sets: Sequence[StudiedSet], noise: float, loss: str) -> LossRecord | None:
    found = [difference for each in sets if (difference := each.difference(noise, loss)) is not None]
    if len(found) < FEWEST:
        return None
    return LossRecord(loss, len(found), sum(value > 0 for value in found), fmean(found), *mean_interval(found))


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % t interval of a mean of four numbers or more.

    The quantile is that of the normal distribution with three terms of its expansion in one over the degrees of freedom, which
    is low by 0.7 % for three of them and by less for more.

    Args:
        values: The numbers.

    Returns:
        The lower and the upper end.

    >>> [round(end, 3) for end in mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])]
    [1.042, 4.958]
    """
    z, degrees = NORMAL, len(values) - 1
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    quantile = z + sum(term / degrees ** (place + 1) for place, term in enumerate(terms))
    half = quantile * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half
