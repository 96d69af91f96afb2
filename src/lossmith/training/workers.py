"""Stacks in worker processes."""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import torch

from lossmith.data.prepared import PreparedData
from lossmith.training.checks import check_jobs, check_recipe
from lossmith.training.job import Build, Job
from lossmith.training.loop import train_stack
from lossmith.training.parent_watch import end_with_parent
from lossmith.training.recipe import Recipe, Run, Trained
from lossmith.training.stacks.composition import compose_stacks

__all__ = ["Progress", "train_all"]


class Progress(NamedTuple):
    """A stack has trained for one more epoch."""

    stack: int
    """Which one, from 0."""
    runs: int
    """How many runs it holds."""
    epoch: int
    """The epoch that is over, from 1."""
    epochs: int


OnProgress = Callable[[Progress], object]

SECONDS_TO_DIE = 10.0
"""To wait for the exit code of a worker whose pipe has closed."""


def train_all(
    jobs: Sequence[Job],
    data: PreparedData,
    recipe: Recipe,
    *,
    build: Build | None = None,
    workers: int | None = None,
    threads: int = 1,
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
        workers: How many processes; by default as many as the machine has processors. With 1, all is done in this process.
        threads: How many threads each process computes with.
        finished: Runs to leave out. They still count when runs are put into stacks: an interrupted study arrives at the numbers
            that it would have given anyway.
        on_progress: Called after each epoch of a stack.

    Yields:
        What a run gave, one stack after another.

    Raises:
        ChildProcessError: If a worker process died; one line says in which stack.
        ValueError: If the recipe or a job does not suit the data.
    """
    check_recipe(recipe, data, own_model=build is not None)
    check_jobs(jobs, data)
    done = set(finished)
    stacks = [[jobs[number] for number in stack] for stack in compose_stacks(jobs, data, recipe, build)]
    shop = _Shop([stack for stack in stacks if not all(job.run in done for job in stack)], data, recipe, build, threads)
    results = shop.work(_processors() if workers is None else workers, on_progress or _ignore)
    return _all_but(done, results)


def _all_but(done: Collection[Run], results: Generator[Trained, None, None]) -> Generator[Trained, None, None]:
    with closing(results):
        for trained in results:
            if trained.run not in done:
                yield trained


def _ignore(_: Progress) -> None: ...


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Shop(NamedTuple):
    """All that workers need to know."""

    stacks: list[list[Job]]
    data: PreparedData
    recipe: Recipe
    build: Build | None
    threads: int

    def train(self, number: int, on_progress: OnProgress) -> list[Trained]:
        """Train one stack."""
        stack = self.stacks[number]

        def on_epoch(epoch: int, epochs: int) -> None:
            on_progress(Progress(number, len(stack), epoch, epochs))

        with _threads(self.threads):
            return train_stack(stack, self.data, self.recipe, build=self.build, on_epoch=on_epoch)

    def work(self, workers: int, on_progress: OnProgress) -> Generator[Trained, None, None]:
        """Train all stacks, in worker processes unless there is one worker, one stack, or something that cannot be sent."""
        count = min(workers, len(self.stacks))
        method = self._start_method()
        if count <= 1 or (method == "spawn" and not _can_be_sent(self)):
            for number in range(len(self.stacks)):
                yield from self.train(number, on_progress)
            return
        crew: list[_Worker] = []
        try:
            for _ in range(count):
                crew.append(_Worker.start(self, method, crew))
            yield from _supervise(crew, len(self.stacks), on_progress)
        finally:
            for worker in crew:
                worker.end()

    def _start_method(self) -> str:
        """A fork starts at once and inherits what cannot be sent. It has none of its parent's threads, so it must not use any."""
        return "fork" if sys.platform == "linux" and self.threads == 1 else "spawn"


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
        self.stack = -1

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

    def assign(self, stack: int, stacks: int) -> None:
        self.stack = stack
        try:
            self.connection.send_bytes(pickle.dumps(stack))
        except OSError:
            raise self._death(stacks) from None

    def receive(self, stacks: int) -> Any:
        """Return what the worker says; raise its error, or one that says that it died."""
        try:
            message = pickle.loads(self.connection.recv_bytes())  # noqa: S301 - of our own process
        except (EOFError, OSError):  # the latter where it died in the middle of what it said
            raise self._death(stacks) from None
        if isinstance(message, BaseException):
            raise message
        return message

    def _death(self, stacks: int) -> ChildProcessError:
        self.process.join(SECONDS_TO_DIE)
        return ChildProcessError(
            f"train_all: a worker process died with exit code {self.process.exitcode} in stack {self.stack + 1} of"
            f" {stacks}; -9 mostly means that memory ran out, and fewer workers need less of it."
        )

    def end(self) -> None:
        self.process.kill()  # not terminate, which a stopped process would not notice
        self.process.join()
        self.process.close()
        self.connection.close()


def _supervise(crew: list[_Worker], stacks: int, on_progress: OnProgress) -> Iterator[Trained]:
    waiting = iter(range(stacks))
    for worker, number in zip(crew, waiting, strict=False):
        worker.assign(number, stacks)
    unfinished = stacks
    while unfinished:
        for ready in wait([worker.connection for worker in crew]):
            worker = next(worker for worker in crew if worker.connection is ready)
            message = worker.receive(stacks)
            if isinstance(message, Progress):
                on_progress(message)
                continue
            unfinished -= 1
            for number in islice(waiting, 1):
                worker.assign(number, stacks)
            yield from message


def _work(connection: Connection, shop: _Shop, parent: _Parent) -> None:
    """Train the stacks whose numbers come in, until the parent ends this process or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent, who ends us
    for theirs in parent.connections:
        theirs.close()
    end_with_parent(parent.process, of_main_thread=parent.in_main_thread)

    def say(message: object) -> None:
        with _unless_alone():
            connection.send_bytes(pickle.dumps(message))

    while True:
        with _unless_alone():
            stack = pickle.loads(connection.recv_bytes())  # noqa: S301 - of our own process
        say(_outcome(shop, stack, say))


@contextmanager
def _unless_alone() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):  # the parent is gone
        os._exit(1)  # without what Python does at exit: it would flush streams whose locks a fork may have inherited


def _outcome(shop: _Shop, stack: int, on_progress: OnProgress) -> list[Trained] | BaseException:
    try:
        return shop.train(stack, on_progress)
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
