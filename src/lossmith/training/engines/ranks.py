"""Tasks that several processes do together: each finds its rank in its environment, as ``torchrun`` would have it."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from lossmith.training.engines.engine import Say, Task, processes_of

__all__ = ["RankTask", "free_port", "rank_tasks"]


@dataclass(frozen=True)
class RankTask:
    """What one of several processes does of a task."""

    task: Task
    rank: int
    address: str
    """Of the machine of the first process."""
    port: int
    local_rank: int = 0
    """Its place among the processes on its machine."""
    local_size: int = 1

    def __call__(self, say: Say, device: torch.device) -> Any:
        """Do the task with the rank in the environment."""
        with _environment(self._variables()):
            return self.task(say, device)

    def _variables(self) -> dict[str, str]:
        return {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(processes_of(self.task)),
            "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_size),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
        }


def rank_tasks(task: Task) -> list[RankTask]:
    """Return what each process of this machine does of a task.

    Args:
        task: One that takes several processes.

    Returns:
        A task for each rank.
    """
    count, port = processes_of(task), free_port()
    return [RankTask(task, rank, "127.0.0.1", port, rank, count) for rank in range(count)]


def free_port() -> int:
    """Return a port of this machine that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
