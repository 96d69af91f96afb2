"""Stacks in worker processes."""

import multiprocessing
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import torch

from lossmith.data.prepared import PreparedData
from lossmith.experiments.checks import check_jobs, check_recipe
from lossmith.experiments.composition import compose_stacks
from lossmith.experiments.job import Build, Job
from lossmith.experiments.plan import Recipe, Run, Trained
from lossmith.experiments.training import train_stack

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

    Runs that share an architecture are trained in stacks, each stack by one of ``workers`` processes, as many as the machine
    has processors unless said otherwise; with 1 in this process. The numbers do not depend on it. Runs that are ``finished``
    are left out, though they count for which runs are stacked: an interrupted study goes on to the numbers that it would have
    given. Closing the iterator, or an interrupt, ends the workers.
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
                crew.append(_Worker.start(self, method))  # noqa: PERF401 - those that started must end, if one cannot
            yield from _supervise(crew, len(self.stacks), on_progress)
        finally:
            for worker in crew:
                worker.end()

    def _start_method(self) -> str:
        """A fork starts at once and inherits what cannot be sent. It has none of its parent's threads, so it must not use any."""
        return "fork" if sys.platform == "linux" and self.threads == 1 else "spawn"


class _Worker:
    """A worker process, as its parent sees it."""

    def __init__(self, process: Any, connection: Connection) -> None:
        self.process = process
        self.connection = connection
        self.stack = -1

    @classmethod
    def start(cls, shop: _Shop, method: str) -> "_Worker":
        context: Any = multiprocessing.get_context(method)
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, shop, os.getpid()), daemon=True)
        with warnings.catch_warnings():
            # Python warns of forks while other threads run: they may hold locks. The worker takes none but its own.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()
        return cls(process, ours)

    def assign(self, stack: int) -> None:
        self.stack = stack
        self.connection.send_bytes(pickle.dumps(stack))

    def receive(self, shop_size: int) -> Any:
        """Return what the worker says; raise its error, or one that says that it died."""
        try:
            message = pickle.loads(self.connection.recv_bytes())  # noqa: S301 - of our own process
        except (EOFError, ConnectionResetError):
            self.process.join()
            raise RuntimeError(
                f"train_all: a worker process died with exit code {self.process.exitcode} in stack {self.stack + 1} of"
                f" {shop_size}; -9 mostly means that memory ran out, and fewer workers need less of it."
            ) from None
        if isinstance(message, BaseException):
            raise message
        return message

    def end(self) -> None:
        self.process.terminate()
        self.process.join()
        self.process.close()
        self.connection.close()


def _supervise(crew: list[_Worker], stacks: int, on_progress: OnProgress) -> Iterator[Trained]:
    waiting = iter(range(stacks))
    for worker, number in zip(crew, waiting, strict=False):
        worker.assign(number)
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
                worker.assign(number)
            yield from message


def _work(connection: Connection, shop: _Shop, parent: int) -> None:
    """Train the stacks whose numbers come in, until the parent ends this process or is no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent, who ends us

    def on_progress(progress: Progress) -> None:
        _end_without(parent)
        connection.send_bytes(pickle.dumps(progress))

    while True:
        # A pipe does not tell that the parent was killed: this process may have inherited both of its ends.
        while not connection.poll(1.0):
            _end_without(parent)
        stack = pickle.loads(connection.recv_bytes())  # noqa: S301 - of our own process
        connection.send_bytes(pickle.dumps(_outcome(shop, stack, on_progress)))


def _end_without(parent: int) -> None:
    if os.getppid() != parent:
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
