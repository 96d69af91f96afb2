"""Which runs are trained together."""

from collections.abc import Sequence
from itertools import pairwise

from lossmith.data.prepared import PreparedData
from lossmith.training.job import Architecture, Build, Job, architecture
from lossmith.training.recipe import Cell, Recipe
from lossmith.training.stacks.built_model import build_model
from lossmith.training.stacks.stackable import can_be_stacked
from lossmith.training.stacks.stacked_losses import loss_key

__all__ = ["by_seed", "compose_stacks"]

LARGEST = 16
"""Runs in a stack. More do not fit into the cache together, and leave processors without work at the end of a study."""
LARGEST_RACE = 32
"""The same where trials compete: after the race a third of them is left."""
WEIGHTS = 1 << 22
"""Weights in a stack, of all its runs; the optimiser and the gradient have as many again."""
SPARSE_WEIGHTS = 1 << 24
"""The same where a step reads a few of them only: what counts is memory, of which they take four times their own."""


def compose_stacks(
    jobs: Sequence[Job], data: PreparedData, recipe: Recipe, build: Build | None = None, *, by_cell: bool = False
) -> list[list[int]]:
    """Return the numbers of the jobs of each stack.

    The choice depends on the jobs alone and not on the machine, and hence neither do the numbers of a study: the order in which
    floating-point numbers are added may depend on what is stacked. Runs with equal losses come together, as one call.

    Args:
        jobs: The runs, with their objectives.
        data: What they are trained on.
        recipe: How they are trained.
        build: Makes a user's own model in place of the recipe's.
        by_cell: Whether the trials of a cell stay together, as they compete.

    Returns:
        Places in ``jobs``, a list for each stack.
    """
    stacks: list[list[int]] = []
    for numbers in _of_one_kind(jobs, data):
        largest = _largest(jobs[numbers[0]], data, recipe, build, LARGEST_RACE if by_cell else LARGEST)
        units = _cells(jobs, numbers) if by_cell else [[number] for number in numbers]
        most = max(1, largest // max(map(len, units)))
        stacks += [[number for unit in part for number in unit] for part in _evenly(units, most)]
    return stacks


def _of_one_kind(jobs: Sequence[Job], data: PreparedData) -> list[list[int]]:
    """Return the jobs that may share a stack, those with equal losses together."""
    kinds: dict[Architecture, dict[str, list[int]]] = {}
    for number, job in enumerate(jobs):
        kinds.setdefault(architecture(job), {}).setdefault(loss_key(job), []).append(number)
    alike = ([number for group in groups.values() for number in group] for groups in kinds.values())
    return [part for numbers in alike for part in by_seed(jobs, numbers, data).values()]


def by_seed(jobs: Sequence[Job], numbers: Sequence[int], data: PreparedData) -> dict[int, list[int]]:
    """Return jobs by their seed where rows are sparse, as those of a stack then share their batches; else all together.

    Args:
        jobs: The runs.
        numbers: Places in ``jobs``.
        data: What they are trained on.

    Returns:
        Places in ``jobs``, in their order.
    """
    parts: dict[int, list[int]] = {}
    for number in numbers:
        parts.setdefault(jobs[number].seed if data.is_sparse else 0, []).append(number)
    return parts


def _cells(jobs: Sequence[Job], numbers: list[int]) -> list[list[int]]:
    cells: dict[Cell, list[int]] = {}
    for number in numbers:
        cells.setdefault(jobs[number].run.cell, []).append(number)
    return list(cells.values())


def _largest(job: Job, data: PreparedData, recipe: Recipe, build: Build | None, most: int) -> int:
    """Return how many runs like this one a stack may hold."""
    built = build_model(job, data, recipe, build)
    if not can_be_stacked(built, data):
        return 1
    weights = sum(parameter.numel() for parameter in built.model.parameters())
    return max(1, min(most, (SPARSE_WEIGHTS if data.is_sparse else WEIGHTS) // max(1, weights)))


def _evenly(units: list[list[int]], largest: int) -> list[list[list[int]]]:
    """Cut into parts that differ by one at most.

    >>> _evenly([[0], [1], [2], [3], [4]], largest=3)
    [[[0], [1], [2]], [[3], [4]]]
    """
    parts = -(-len(units) // largest)
    cuts = [-(-len(units) * part // parts) for part in range(parts + 1)]
    return [units[start:end] for start, end in pairwise(cuts)]
