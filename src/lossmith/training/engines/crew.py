"""Worker processes for anything that takes long: tasks go out, what they say and find comes back."""

import multiprocessing
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import torch

from lossmith.training.devices import CPU, allows_fork
from lossmith.training.engines.engine import Say, Task, processes_of
from lossmith.training.engines.interrupts import interrupts_held_back, leave_interrupts_to_the_parent
from lossmith.training.engines.parent_watch import end_with_parent
from lossmith.training.engines.ranks import rank_tasks
from lossmith.training.engines.work import can_be_sent, outcome_of, with_threads

__all__ = ["in_processes", "processors"]

SECONDS_TO_DIE = 10.0
"""To wait for the exit code of a worker whose pipe has closed."""


class _Said(NamedTuple):
    """What a task tells on its way, as opposed to what it finds."""

    message: Any


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_processes(
    tasks: Sequence[Task],
    on_message: Say,
    *,
    workers: int | None = None,
    threads: int = 1,
    devices: Sequence[torch.device] = (CPU,),
) -> Generator[Any, None, None]:
    """Work on all tasks, and yield what each finds as soon as it has.

    They are done in this process where there is one worker, one task, or something that cannot be sent. Closing the iterator,
    or an interrupt, ends the workers; so does the end of this process, whatever ends it.

    Args:
        tasks: What there is to do; each is called with a function by which it tells how far it has come, and with its device.
        on_message: Called with everything that a task tells.
        workers: How many processes; by default as many as the machine has processors.
        threads: How many threads each process computes with.
        devices: What the workers compute on, each worker on one of them, in turn.

    Yields:
        What a task returned, in the order in which they finish.

    Raises:
        ChildProcessError: If a worker process died; one line says in which task.
    """
    count = min(processors() if workers is None else workers, len(tasks))
    shop = _Shop(tasks, threads, tuple(devices))
    if count <= 1 or (shop.method == "spawn" and not can_be_sent(shop)):
        for number in range(len(tasks)):
            yield shop.work(0, number, on_message)
        return
    crew: list[_Worker] = []
    try:
        with interrupts_held_back():
            for _ in range(count):
                crew.append(_Worker.start(shop, crew))
        yield from _supervise(crew, len(tasks), on_message)
    finally:
        for worker in crew:
            worker.end()


class _Shop(NamedTuple):
    """All that workers need to know."""

    tasks: Sequence[Task]
    threads: int
    devices: Sequence[torch.device]

    @property
    def method(self) -> str:
        """How its processes start: a fork starts at once and inherits what cannot be sent.

        It has none of its parent's threads, so it must not use any.
        """
        forks = sys.platform == "linux" and self.threads == 1 and allows_fork(self.devices[0])
        return "fork" if forks else "spawn"

    def work(self, worker: int, number: int, say: Say) -> Any:
        """Return what a task finds, done by one worker or by several processes of its own."""
        task = self.tasks[number]
        count = processes_of(task)
        devices = [self.devices[(worker * count + rank) % len(self.devices)] for rank in range(count)]
        if count > 1:
            return _in_ranks(task, say, self.threads, devices)
        with with_threads(self.threads):
            return task(say, devices[0])


class _Parent(NamedTuple):
    """The process that starts a worker, as the worker sees it."""

    process: int
    in_main_thread: bool
    """Whether its main thread starts the worker."""
    connections: list[Connection]
    """Its ends of pipes that the worker inherits."""


class _Worker:
    """A worker process, as its parent sees it."""

    def __init__(self, process: Any, connection: Connection) -> None:
        self.process = process
        self.connection = connection
        self.doing = "no task"

    @classmethod
    def start(cls, shop: _Shop, crew: Sequence["_Worker"]) -> "_Worker":
        context: Any = multiprocessing.get_context(shop.method)
        ours, theirs = context.Pipe()
        # A fork inherits our ends of all pipes. As long as it held them, no pipe would tell that this process has ended.
        inherited = [ours, *(worker.connection for worker in crew)] if shop.method == "fork" else []
        parent = _Parent(os.getpid(), threading.current_thread() is threading.main_thread(), inherited)
        alone = all(processes_of(task) == 1 for task in shop.tasks)  # a daemon must not have processes of its own
        process = context.Process(target=_work, args=(theirs, shop, len(crew), parent), daemon=alone)
        with warnings.catch_warnings():
            # Python warns of forks while other threads run: they may hold locks. The worker takes none but its own.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()
        return cls(process, ours)

    def assign(self, task: int, doing: str) -> None:
        self.doing = doing
        try:
            self.connection.send_bytes(pickle.dumps(task))
        except OSError:
            raise self._death() from None

    def receive(self) -> Any:
        """Return what the worker says; raise its error, or one that says that it died."""
        try:
            message = pickle.loads(self.connection.recv_bytes())  # noqa: S301 - of our own process
        except (EOFError, OSError):  # the latter where it died in the middle of what it said
            raise self._death() from None
        if isinstance(message, BaseException):
            raise message
        return message

    def _death(self) -> ChildProcessError:
        self.process.join(SECONDS_TO_DIE)
        return ChildProcessError(
            f"compare: a worker process died with exit code {self.process.exitcode} in {self.doing}; -9 mostly means that"
            " memory ran out, and fewer workers need less of it."
        )

    def end(self) -> None:
        self.process.kill()  # not terminate, which a stopped process would not notice
        self.process.join()
        self.process.close()
        self.connection.close()


def _supervise(crew: list[_Worker], tasks: int, on_message: Say) -> Iterator[Any]:
    waiting = iter(range(tasks))

    def assign_next(worker: _Worker) -> None:
        for number in islice(waiting, 1):
            worker.assign(number, f"task {number + 1} of {tasks}")

    for worker in crew:
        assign_next(worker)
    unfinished = tasks
    while unfinished:
        for worker in _ready(crew):
            message = worker.receive()
            if isinstance(message, _Said):
                on_message(message.message)
                continue
            unfinished -= 1
            assign_next(worker)
            yield message


def _ready(crew: Sequence[_Worker]) -> list[_Worker]:
    """Wait until workers have something to say, and return them."""
    connections = wait([worker.connection for worker in crew])
    return [worker for worker in crew if worker.connection in connections]


def _in_ranks(task: Task, say: Say, threads: int, devices: Sequence[torch.device]) -> Any:
    """Have a task done by fresh processes together, and return what the first finds, or how another fails."""
    shop = _Shop(rank_tasks(task), threads, devices)
    if shop.method == "spawn" and not can_be_sent(shop):
        raise ValueError("compare: processes needs a training function that another process can import, got one that it cannot.")
    crew: list[_Worker] = []
    try:
        with interrupts_held_back():
            for _ in shop.tasks:
                crew.append(_Worker.start(shop, crew))
        for rank, worker in enumerate(crew):
            worker.assign(rank, f"rank {rank} of {len(crew)}")
        return _found_by_ranks(crew, say)
    finally:
        for worker in crew:
            worker.end()


def _found_by_ranks(crew: Sequence[_Worker], say: Say) -> Any:
    first, working = crew[0], list(crew)
    while True:
        for worker in _ready(working):
            message = worker.receive()
            if isinstance(message, _Said):
                say(message.message)
            elif worker is first or message is not None:
                return message
            else:
                working.remove(worker)


def _work(connection: Connection, shop: _Shop, worker: int, parent: _Parent) -> None:
    """Work on the tasks whose numbers come in, until the parent ends this process or is gone."""
    leave_interrupts_to_the_parent()  # who ends us
    for theirs in parent.connections:
        theirs.close()
    end_with_parent(parent.process, of_main_thread=parent.in_main_thread)

    def send(message: object) -> None:
        with _unless_alone():
            connection.send_bytes(pickle.dumps(message))

    while True:
        with _unless_alone():
            task = pickle.loads(connection.recv_bytes())  # noqa: S301 - of our own process
        send(outcome_of(lambda task=task: shop.work(worker, task, lambda message: send(_Said(message)))))  # type: ignore[misc]


@contextmanager
def _unless_alone() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):  # the parent is gone
        os._exit(1)  # without what Python does at exit: it would flush streams whose locks a fork may have inherited
