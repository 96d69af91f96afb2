"""Worker processes for anything that takes long: tasks go out, what they say and find comes back."""

import multiprocessing
import os
import pickle
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import torch

from lossmith.training.interrupts import interrupts_held_back, leave_interrupts_to_the_parent
from lossmith.training.parent_watch import end_with_parent

__all__ = ["Task", "in_processes", "processors"]

Say = Callable[[Any], object]
"""How a task tells the process that waits for it how far it has come."""
Task = Callable[[Say], Any]

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
    tasks: Sequence[Task], on_message: Callable[[Any], object], *, workers: int | None = None, threads: int = 1
) -> Generator[Any, None, None]:
    """Work on all tasks, and yield what each finds as soon as it has.

    They are done in this process where there is one worker, one task, or something that cannot be sent. Closing the iterator,
    or an interrupt, ends the workers; so does the end of this process, whatever ends it.

    Args:
        tasks: What there is to do; each is called with a function by which it tells how far it has come.
        on_message: Called with everything that a task tells.
        workers: How many processes; by default as many as the machine has processors.
        threads: How many threads each process computes with.

    Yields:
        What a task returned, in the order in which they finish.

    Raises:
        ChildProcessError: If a worker process died; one line says in which task.
    """
    count = min(processors() if workers is None else workers, len(tasks))
    # A fork starts at once and inherits what cannot be sent. It has none of its parent's threads, so it must not use any.
    method = "fork" if sys.platform == "linux" and threads == 1 else "spawn"
    shop = _Shop(tasks, threads)
    if count <= 1 or (method == "spawn" and not _can_be_sent(shop)):
        for number in range(len(tasks)):
            yield shop.work(number, on_message)
        return
    crew: list[_Worker] = []
    try:
        with interrupts_held_back():
            for _ in range(count):
                crew.append(_Worker.start(shop, method, crew))
        yield from _supervise(crew, len(tasks), on_message)
    finally:
        for worker in crew:
            worker.end()


class _Shop(NamedTuple):
    """All that workers need to know."""

    tasks: Sequence[Task]
    threads: int

    def work(self, number: int, say: Say) -> Any:
        with _threads(self.threads):
            return self.tasks[number](say)


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
        self.task = -1

    @classmethod
    def start(cls, shop: _Shop, method: str, crew: Sequence["_Worker"]) -> "_Worker":
        context: Any = multiprocessing.get_context(method)
        ours, theirs = context.Pipe()
        # A fork inherits our ends of all pipes. As long as it held them, no pipe would tell that this process has ended.
        inherited = [ours, *(worker.connection for worker in crew)] if method == "fork" else []
        parent = _Parent(os.getpid(), threading.current_thread() is threading.main_thread(), inherited)
        process = context.Process(target=_work, args=(theirs, shop, parent), daemon=True)
        with warnings.catch_warnings():
            # Python warns of forks while other threads run: they may hold locks. The worker takes none but its own.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()
        return cls(process, ours)

    def assign(self, task: int, tasks: int) -> None:
        self.task = task
        try:
            self.connection.send_bytes(pickle.dumps(task))
        except OSError:
            raise self._death(tasks) from None

    def receive(self, tasks: int) -> Any:
        """Return what the worker says; raise its error, or one that says that it died."""
        try:
            message = pickle.loads(self.connection.recv_bytes())  # noqa: S301 - of our own process
        except (EOFError, OSError):  # the latter where it died in the middle of what it said
            raise self._death(tasks) from None
        if isinstance(message, BaseException):
            raise message
        return message

    def _death(self, tasks: int) -> ChildProcessError:
        self.process.join(SECONDS_TO_DIE)
        return ChildProcessError(
            f"compare: a worker process died with exit code {self.process.exitcode} in task {self.task + 1} of"
            f" {tasks}; -9 mostly means that memory ran out, and fewer workers need less of it."
        )

    def end(self) -> None:
        self.process.kill()  # not terminate, which a stopped process would not notice
        self.process.join()
        self.process.close()
        self.connection.close()


def _supervise(crew: list[_Worker], tasks: int, on_message: Callable[[Any], object]) -> Iterator[Any]:
    waiting = iter(range(tasks))
    for worker, number in zip(crew, waiting, strict=False):
        worker.assign(number, tasks)
    unfinished = tasks
    while unfinished:
        for ready in wait([worker.connection for worker in crew]):
            worker = next(worker for worker in crew if worker.connection is ready)
            message = worker.receive(tasks)
            if isinstance(message, _Said):
                on_message(message.message)
                continue
            unfinished -= 1
            for number in islice(waiting, 1):
                worker.assign(number, tasks)
            yield message


def _work(connection: Connection, shop: _Shop, parent: _Parent) -> None:
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
        send(_outcome(shop, task, lambda message: send(_Said(message))))


@contextmanager
def _unless_alone() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):  # the parent is gone
        os._exit(1)  # without what Python does at exit: it would flush streams whose locks a fork may have inherited


def _outcome(shop: _Shop, task: int, say: Say) -> Any:
    try:
        return shop.work(task, say)
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent raises it
        error.add_note("In a worker process:\n" + traceback.format_exc())
        return error if _can_be_sent(error) else RuntimeError(traceback.format_exc())


def _can_be_sent(thing: object) -> bool:
    try:
        pickle.dumps(thing)
    except (pickle.PicklingError, AttributeError, TypeError):  # what pickle raises, depending on what it meets
        return False
    return True


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
