"""Tasks in processes of this machine."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch

from lossmith.training.devices import CPU, devices_for, is_accelerator
from lossmith.training.engines.crew import in_processes, processors
from lossmith.training.engines.engine import Say, Task, processes_of

__all__ = ["Here", "LocalEngine"]

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Here(Generic[Thing]):
    """Something that is in this process, and that forks inherit."""

    thing: Thing

    def get(self) -> Thing:
        """Return it."""
        return self.thing


@dataclass(frozen=True)
class LocalEngine:
    """A crew of worker processes, one for each processor or GPU unless told otherwise."""

    workers: int | None = None
    device: torch.device = CPU
    cpus: int = 1
    """Processors, and threads, of a task or of each of its processes."""
    gpus: float = 1.0
    """GPUs of the same, where it computes on one: half of one lets two tasks share it."""
    replicates: int = 1

    def slots(self, processes: int = 1) -> int:
        """Return how many tasks run at a time.

        Args:
            processes: Of each task.

        Returns:
            A number of worker processes.
        """
        if self.workers is not None:
            return self.workers
        room = processors() / self.cpus
        if is_accelerator(self.device):
            room = min(room, len(devices_for(self.device)) / self.gpus)
        return max(1, int(room / processes))

    def share(self, thing: Thing) -> Here[Thing]:
        """Return a handle.

        Args:
            thing: What tasks need.

        Returns:
            Something that holds it.
        """
        return Here(thing)

    def run(self, tasks: Sequence[Task], on_message: Say, *, alone: bool = False) -> Generator[Any, None, None]:
        """Work on all tasks, and yield what each finds as soon as it has.

        Args:
            tasks: What there is to do.
            on_message: Called with everything that a task tells.
            alone: Whether a task takes the whole machine.

        Returns:
            An iterator, which ends the workers when it is closed.
        """
        workers = 1 if alone else self.slots(max(map(processes_of, tasks), default=1))
        threads = processors() if alone else self.cpus
        return in_processes(tasks, on_message, workers=workers, threads=threads, devices=devices_for(self.device))

    def stop(self) -> None:
        """Do nothing: there is one thread that waits, and it ends the workers itself."""

    def close(self) -> None:
        """Do nothing: no process outlives the tasks."""
