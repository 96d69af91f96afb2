"""Tasks of several processes on a Ray cluster: each process has a place of its own, on one machine or on several."""

from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from lossmith.training.engines.engine import Task, name_of, processes_of
from lossmith.training.engines.ranks import RankTask
from lossmith.training.engines.ray_work import Done, find_master, work

__all__ = ["RankedTask"]

MOST_TRIES = 11


class RankedTask:
    """A task that is done by several workers together. If one is lost, all of them begin again."""

    def __init__(self, task: Task, queue: Any, resources: dict[str, float], kind: str) -> None:
        # What waits for the ranks takes nothing, and is tried again with them where its own machine is lost.
        waiting = ray.remote(num_cpus=0, max_retries=MOST_TRIES, name=name_of(task))(_in_ranks)
        self.reference = waiting.remote(task, queue, resources, kind)

    def end(self) -> None:
        """Let Ray end the ranks: they are the children of what waits for them."""


def _in_ranks(task: Task, queue: Any, resources: dict[str, float], kind: str) -> Done:
    for attempt in range(MOST_TRIES):
        group = placement_group([_bundle(resources)] * processes_of(task), strategy="PACK")
        try:
            ray.get(group.ready())
            return _found_by_ranks(_start(task, queue, resources, kind, group))
        except RayError:
            if attempt == MOST_TRIES - 1:
                raise
        finally:
            with suppress(RayError):
                remove_placement_group(group)
    raise AssertionError("every way ends above")


def _bundle(resources: dict[str, float]) -> dict[str, float]:
    return {name.removeprefix("num_").removesuffix("s").upper(): amount for name, amount in resources.items()}


def _start(task: Task, queue: Any, resources: dict[str, float], kind: str, group: Any) -> list[Any]:
    """Start all ranks, and return what they promise."""

    def placed(function: Any, rank: int) -> Any:
        place = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)
        name = f"{name_of(task)}, rank {rank}"
        return ray.remote(max_retries=0, max_calls=1, name=name, scheduling_strategy=place, **resources)(function)

    address, port = ray.get(placed(find_master, 0).remote())
    threads = int(resources["num_cpus"])
    ranks = [RankTask(task, rank, address, port) for rank in range(processes_of(task))]
    return [placed(work, rank.rank).remote(rank, queue, threads, kind) for rank in ranks]


def _found_by_ranks(references: list[Any]) -> Done:
    """Return what the first rank finds, or how another fails, and end the others."""
    working = list(references)
    try:
        while True:
            (ready, *_), working = ray.wait(working)
            done: Done = ray.get(ready)
            if ready == references[0] or done.outcome is not None:
                return done
    finally:
        for reference in working:
            with suppress(RayError):
                ray.cancel(reference, force=True)
