"""What a study asks of whatever runs its tasks.

A study makes tasks and reads what they find; it does not know in which process, and on which machine, they are done.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

import torch

__all__ = ["Engine", "Say", "Shared", "Task", "name_of", "processes_of"]

Say = Callable[[Any], object]
"""How a task tells the process that waits for it how far it has come."""
Task = Callable[[Say, torch.device], Any]
"""A piece of work that an engine does somewhere.

One that takes several processes at once says so by an attribute ``processes``. Each of them calls it, with ``RANK`` and
``WORLD_SIZE`` in its environment. What the first returns counts, unless another returns something, too: how it failed. One that
says by an attribute ``name`` what it is goes by that name in the tools of the engine, such as Ray's dashboard.
"""

Thing_co = TypeVar("Thing_co", covariant=True)


class Shared(Protocol[Thing_co]):
    """Something that many tasks need, and that goes to each worker once."""

    def get(self) -> Thing_co:
        """Return it, wherever the task is done."""
        ...


class Engine(Protocol):
    """Runs tasks, as many at a time as there is room for."""

    @property
    def replicates(self) -> int:
        """How many replicates of a study it pays to have in training at a time."""
        ...

    def slots(self, processes: int = 1) -> int:
        """Return how many tasks of so many processes run at a time."""
        ...

    def share(self, thing: Any) -> Shared[Any]:
        """Return a handle for tasks to hold in place of something large that all of them need."""
        ...

    def run(self, tasks: Sequence[Task], on_message: Say, *, alone: bool = False) -> Generator[Any, None, None]:
        """Work on all tasks, and yield what each finds as soon as it has; closing the iterator ends all work.

        Args:
            tasks: What there is to do.
            on_message: Called with everything that a task tells.
            alone: Whether a task takes a whole machine, with all its processors.

        Yields:
            What a task returned, in the order in which they finish.

        Raises:
            ChildProcessError: If a worker died and its task cannot be tried again.
        """
        ...

    def stop(self) -> None:
        """Make all that runs end with an error, in whatever thread it is waited for."""
        ...

    def close(self) -> None:
        """Let go of what the engine holds. It may be used again."""
        ...


def processes_of(task: Task) -> int:
    """Return how many processes a task takes at once."""
    return getattr(task, "processes", 1)


def name_of(task: Task) -> str:
    """Return what a task is, for people who look at what runs."""
    return str(getattr(task, "name", type(task).__name__))
