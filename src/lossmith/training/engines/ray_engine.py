"""Tasks on a Ray cluster: Ray decides where, and tries again what a lost machine was doing."""

import socket
import sys
import sysconfig
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

try:
    import ray
    from ray.exceptions import RayError
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError("engine 'ray' needs Ray: pip install 'lossmith[cluster]'.", name="ray") from missing

from lossmith.training.devices import check_device
from lossmith.training.engines.engine import Say, Task, name_of, processes_of
from lossmith.training.engines.ray_ranks import RankedTask
from lossmith.training.engines.ray_work import Done, InStore, work

__all__ = ["RayEngine"]

MOST_RETRIES = 10
"""How often the task of a worker or a machine that was lost is tried again."""
FEWEST_IN_FLIGHT, SHARE_IN_FLIGHT = 64, 4
"""Tasks that Ray knows of: so many, or so many for each slot. More would be of no use to it, and in the way of an interrupt."""
SECONDS_TO_ANSWER = 10.0
SECONDS_BETWEEN_LOOKS = 1.0
"""At what tasks tell on their way."""


class RayEngine:
    """A Ray cluster, or Ray on this machine where there is none.

    Args:
        address: Of the head of a cluster; empty for the one that Ray knows of (``RAY_ADDRESS``, ``ray job submit``) or else for
            one that is started on this machine.
        workers: Tasks in flight at most; by default what the cluster has room for.
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``; which GPU is for Ray to say.
        cpus: Processors of a task, or of each of its processes.
        gpus: GPUs of the same, where it computes on one.
    """

    replicates = 8

    def __init__(self, address: str = "", workers: int | None = None, device: str = "auto", cpus: int = 1, gpus: float = 1.0):
        check_device(device)
        if ":" in device:
            raise ValueError(f"compare: device must be auto, cpu, cuda or mps with engine 'ray', which chooses, got {device!r}.")
        self._address, self._workers, self._wanted = address, workers, device
        self._cpus, self._gpus = cpus, gpus
        self._started = False
        self._queue: Any = None
        self._stopped = threading.Event()
        self._connecting = threading.Lock()

    def _connect(self) -> None:
        """Join the cluster, or start one, unless that was done before."""
        with self._connecting:
            self._join()

    def _join(self) -> None:
        if not ray.is_initialized():
            try:
                _knock(self._address)
                ray.init(address=self._address or None)
            except Exception as error:  # whatever the reason, one line is enough
                where = f"at {self._address}" if self._address else "here"
                words = " ".join(str(error).split())[:300]
                raise ConnectionError(f"compare: no Ray cluster answers {where}: {words}") from error
            self._started = True
        if self._queue is None:
            from ray.util.queue import Queue
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
            self._queue = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})

    @property
    def _kind(self) -> str:
        """On what kind of device tasks compute."""
        if self._wanted != "auto":
            return self._wanted
        return "cuda" if ray.cluster_resources().get("GPU") else "cpu"

    def _resources(self, *, alone: bool = False) -> dict[str, float]:
        """Return what a task, or each of its processes, takes of its machine."""
        cpus = float(self._cpus)
        if alone:
            cpus = max((node["Resources"].get("CPU", 1.0) for node in ray.nodes() if node["Alive"]), default=1.0)
        gpus = {"num_gpus": self._gpus} if self._kind == "cuda" else {}
        return {"num_cpus": cpus, **gpus}

    def slots(self, processes: int = 1) -> int:
        """Return how many tasks run at a time, as the cluster is now.

        Args:
            processes: Of each task.

        Returns:
            A number of tasks, one at least.
        """
        self._connect()
        there, wanted = ray.cluster_resources(), self._resources()
        room = there.get("CPU", 1.0) / wanted["num_cpus"]
        if "num_gpus" in wanted:
            room = min(room, there.get("GPU", 0.0) / wanted["num_gpus"])
        return min(max(1, int(room / processes)), self._workers or sys.maxsize)

    def share(self, thing: Any) -> InStore:
        """Put something into the object store.

        Args:
            thing: What tasks need.

        Returns:
            A handle that tasks hold in its place. When the last is gone, the store lets go of it.
        """
        self._connect()
        _send_by_value(thing)
        try:
            return InStore(ray.put(thing))
        except TypeError as error:
            words = str(error).strip().partition("\n")[0]
            raise ValueError(f"compare: engine 'ray' needs what can be sent to other machines: {words}") from error

    def run(self, tasks: Sequence[Task], on_message: Say, *, alone: bool = False) -> Generator[Any, None, None]:
        """Work on all tasks, and yield what each finds as soon as it has.

        Args:
            tasks: What there is to do.
            on_message: Called with everything that a task tells.
            alone: Whether a task takes a whole machine.

        Yields:
            What a task returned, in the order in which they finish.

        Raises:
            ChildProcessError: If the worker of a task was lost again and again.
        """
        self._connect()
        flight = _Flight(tasks, self._queue, self._resources(alone=alone), self._kind)
        waiting = iter(range(len(tasks)))
        try:
            while True:
                for number in islice(waiting, self._room() - len(flight)):
                    flight.begin(number)
                if not len(flight):
                    return
                if self._stopped.is_set():
                    raise ChildProcessError("compare: training was stopped.")
                yield from flight.arrivals(on_message)
        finally:
            flight.end()

    def _room(self) -> int:
        return self._workers or max(FEWEST_IN_FLIGHT, SHARE_IN_FLIGHT * self.slots())

    def stop(self) -> None:
        """Have all that is in flight cancelled, by those who wait for it."""
        self._stopped.set()

    def close(self) -> None:
        """Leave the cluster, unless somebody else in this process had joined it before."""
        self._stopped.clear()
        self._queue = None
        if self._started:
            ray.shutdown()
            self._started = False


class _Flight:
    """Tasks that the cluster has been given and has not done."""

    def __init__(self, tasks: Sequence[Task], queue: Any, resources: dict[str, float], kind: str) -> None:
        self._tasks, self._queue, self._resources, self._kind = tasks, queue, resources, kind
        self._threads = int(resources["num_cpus"])
        self._number: dict[Any, int] = {}
        self._ranked: dict[int, RankedTask] = {}
        self._looked = time.monotonic()

    def __len__(self) -> int:
        return len(self._number)

    def begin(self, number: int) -> None:
        """Give a task to the cluster."""
        task = self._tasks[number]
        if processes_of(task) > 1:
            self._ranked[number] = RankedTask(task, self._queue, self._resources, self._kind)
            self._number[self._ranked[number].reference] = number
            return
        remote = ray.remote(max_retries=MOST_RETRIES, name=name_of(task), **self._resources)(work)
        self._number[remote.remote(task, self._queue, self._threads, self._kind)] = number

    def arrivals(self, on_message: Say) -> Iterator[Any]:
        """Wait for tasks, and yield what those that are done returned."""
        ready, _ = ray.wait(list(self._number), timeout=SECONDS_BETWEEN_LOOKS)
        if ready:
            ready, _ = ray.wait(list(self._number), num_returns=len(self._number), timeout=0)
        self._listen(on_message)
        for reference in ready:
            done = self._done(reference)
            for message in done.messages:
                on_message(message)
            outcome = done.outcome
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome

    def _done(self, reference: Any) -> Done:
        number = self._number.pop(reference)
        self._ranked.pop(number, None)
        try:
            done: Done = ray.get(reference)
        except RayError as error:
            words = str(error).strip().partition("\n")[0]
            raise ChildProcessError(
                f"compare: Ray gave up task {number + 1} of {len(self._tasks)} after {MOST_RETRIES + 1} tries: {words}"
            ) from error
        return done

    def _listen(self, on_message: Say) -> None:
        """Hear what tasks tell on their way."""
        if time.monotonic() - self._looked < SECONDS_BETWEEN_LOOKS:
            return
        self._looked = time.monotonic()
        with suppress(RayError):
            for messages in self._queue.get_nowait_batch(self._queue.qsize()):
                for message in messages:
                    on_message(message)

    def end(self) -> None:
        """End what is still being done."""
        for reference, number in self._number.items():
            if number in self._ranked:
                self._ranked[number].end()
            with suppress(RayError):
                ray.cancel(reference, force=True)
        self._number.clear()


def _knock(address: str) -> None:
    """Raise an error if nobody listens at an address; Ray itself would try for a minute."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        with socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_ANSWER):
            pass


def _send_by_value(thing: Any) -> None:
    """Have a function of a file of the user's own sent with its file's content: other machines need not have the file."""
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__.partition(".")[0] in ("lossmith", "__main__"):
        return
    installed = (sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
    if not any(Path(file).is_relative_to(folder) for folder in installed):
        ray.cloudpickle.register_pickle_by_value(module)
