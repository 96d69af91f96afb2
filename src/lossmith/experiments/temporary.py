"""Training of all runs, until there are workers."""

from collections.abc import Iterator
from typing import Any

from lossmith.experiments.job import architecture
from lossmith.experiments.training import train_stack


def train_all(
    jobs: Any, data: Any, recipe: Any, *, build: Any = None, workers: Any = None, on_progress: Any = None
) -> Iterator[Any]:  # noqa: ARG001
    """Train stacks of 24."""
    groups: dict[Any, Any] = {}
    for job in jobs:
        groups.setdefault(architecture(job), []).append(job)
    for group in groups.values():
        for i in range(0, len(group), 24):
            yield from train_stack(group[i : i + 24], data, recipe, build=build)
            if on_progress:
                on_progress(len(group[i : i + 24]))
