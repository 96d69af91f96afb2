"""Stacks in worker processes."""

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from lossmith.data.prepared import PreparedData
from lossmith.expressions.lists import listed
from lossmith.training.checks import check_jobs, check_recipe
from lossmith.training.devices import CPU
from lossmith.training.engines.engine import Engine, Shared
from lossmith.training.engines.local import Here, LocalEngine
from lossmith.training.job import Build, Job
from lossmith.training.loop import OnEpoch, train_stack
from lossmith.training.one_by_one import train_one_by_one
from lossmith.training.peak_memory import PeakMemory
from lossmith.training.race import Race
from lossmith.training.recipe import Recipe, Run, Trained
from lossmith.training.stacks.composition import compose_stacks

__all__ = ["OnProgress", "Progress", "StackTask", "stack_tasks", "train_all"]


class Progress(NamedTuple):
    """A stack has trained for one more epoch."""

    stack: int
    """Which one, from 0."""
    runs: int
    """How many of its runs have trained for it."""
    epoch: int
    """The epoch that is over, from 1."""
    epochs: int


OnProgress = Callable[[Progress], object]


def train_all(
    jobs: Sequence[Job],
    data: PreparedData,
    recipe: Recipe,
    *,
    build: Build | None = None,
    race: Race | None = None,
    workers: int | None = None,
    threads: int = 1,
    engine: Engine | None = None,
    alone: bool = False,
    finished: Collection[Run] = (),
    on_progress: OnProgress | None = None,
) -> Generator[Trained, None, None]:
    """Train all runs, and yield what each gave as soon as its stack is done.

    Runs that share an architecture are trained in stacks, each by one process. The numbers do not depend on how many there are.
    Closing the iterator, or an interrupt, ends the workers; so does the end of this process, whatever ends it.

    Args:
        jobs: The runs, with their objectives and labels.
        data: What they are trained on.
        recipe: How they are trained.
        build: Makes a user's own model in place of the recipe's.
        race: Which trials of a cell go on to the end; all of them without. A cell is then trained by one process.
        workers: How many processes; by default as many as the machine has processors. With 1, all is done in this process.
        threads: How many threads each process computes with.
        engine: What runs the stacks, in place of so many processes with so many threads on this machine.
        alone: Whether a stack takes a whole machine, with all its processors.
        finished: Runs to leave out. They still count when runs are put into stacks: an interrupted study arrives at the numbers
            that it would have given anyway.
        on_progress: Called after each epoch of a stack.

    Yields:
        What a run gave, one stack after another.

    Raises:
        ChildProcessError: If a worker process died; one line says in which stack.
        ValueError: If the recipe or a job does not suit the data.
    """
    engine = engine or LocalEngine(workers, cpus=threads)
    tasks = stack_tasks(jobs, data, recipe, build=build, race=race, finished=finished, shared=engine.share(data))
    return _all_but(set(finished), engine.run(tasks, on_progress or _ignore, alone=alone))


def _all_but(done: Collection[Run], stacks: Generator[list[Trained], None, None]) -> Generator[Trained, None, None]:
    with closing(stacks):
        for stack in stacks:
            yield from (trained for trained in stack if trained.run not in done)


def _ignore(_: Progress) -> None: ...


@dataclass(frozen=True)
class StackTask:
    """One stack for a worker process."""

    number: int
    jobs: list[Job]
    data: Shared[PreparedData]
    recipe: Recipe
    build: Build | None
    race: Race | None
    waiting: Path | None = None
    """Where runs wait that train one by one; None where they train together."""

    def __call__(self, say: OnProgress, device: torch.device = CPU) -> list[Trained]:
        """Train the stack, and tell of every epoch."""

        def on_epoch(runs: int, epoch: int) -> None:
            say(Progress(self.number, runs, epoch, self.recipe.epochs))

        with PeakMemory() as memory:
            found = self._trained(on_epoch, device)
        for trained in found:
            trained.memory = memory.bytes / len(found)
        return found

    @property
    def name(self) -> str:
        """What it trains, in words."""
        losses, noises = (dict.fromkeys(getattr(job.run, name) for job in self.jobs) for name in ("loss", "noise"))
        return f"{listed(losses)}, {listed(noises)}, replicate {self.jobs[0].run.seed}, runs: {len(self.jobs)}"

    def _trained(self, on_epoch: OnEpoch, device: torch.device) -> list[Trained]:
        data = self.data.get()
        if self.waiting is not None:
            return train_one_by_one(self.jobs, data, self.recipe, self.waiting, race=self.race, on_epoch=on_epoch, device=device)
        return train_stack(self.jobs, data, self.recipe, build=self.build, race=self.race, on_epoch=on_epoch, device=device)


def stack_tasks(
    jobs: Sequence[Job],
    data: PreparedData,
    recipe: Recipe,
    *,
    build: Build | None = None,
    race: Race | None = None,
    finished: Collection[Run] = (),
    waiting: Path | None = None,
    shared: Shared[PreparedData] | None = None,
) -> list[StackTask]:
    """Return the stacks that the jobs make up, as tasks of an engine.

    Args:
        jobs: The runs, with their objectives and labels.
        data: What they are trained on.
        recipe: How they are trained.
        build: Makes a user's own model in place of the recipe's.
        race: Which trials of a cell go on to the end; all of them without.
        finished: Runs to leave out, where that leaves a whole stack out.
        waiting: Where runs wait, if they are to train one by one.
        shared: The data as an engine hands it to its workers.

    Returns:
        A task for each stack that is left.

    Raises:
        ValueError: If the recipe or a job does not suit the data.
    """
    check_recipe(recipe, data, own_model=build is not None)
    check_jobs(jobs, data)
    done = set(finished)
    numbers = compose_stacks(jobs, data, recipe, build, by_cell=race is not None)
    stacks = [[jobs[number] for number in stack] for stack in numbers]
    left = [stack for stack in stacks if not all(job.run in done for job in stack)]
    handle = shared or Here(data)
    return [StackTask(number, stack, handle, recipe, build, race, waiting) for number, stack in enumerate(left)]
