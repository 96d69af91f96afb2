"""What a worker of a Ray cluster does: one task, or one rank of it."""

import pickle
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError

from lossmith.training.devices import device_of_worker
from lossmith.training.engines.engine import Task
from lossmith.training.engines.work import outcome_of, with_threads

__all__ = ["Done", "InStore", "find_master", "work"]

SECONDS_BETWEEN_MESSAGES = 2.0
"""So that a thousand workers do not keep the one busy that listens."""
MOST_AT_HAND = 2
"""Things of the object store that a worker keeps as they are when they are read: the data, and the user's function."""
_at_hand: OrderedDict[str, Any] = OrderedDict()


@dataclass(frozen=True)
class InStore:
    """Something in the object store of the cluster, which each worker reads once."""

    reference: Any

    def get(self) -> Any:
        """Return it."""
        key = self.reference.hex()
        if key not in _at_hand:
            _at_hand[key] = ray.get(self.reference)
        _at_hand.move_to_end(key)
        while len(_at_hand) > MOST_AT_HAND:
            _at_hand.popitem(last=False)
        return _at_hand[key]


class Done(NamedTuple):
    """A task that has been done."""

    packed: bytes
    """What it returned, or raised; packed, as what Ray itself unpacks can only be read, and holds on to the object store."""
    messages: list[Any]
    """What it has told and nobody has heard yet."""

    @property
    def outcome(self) -> Any:
        """What it returned, or the error that it raised."""
        return pickle.loads(self.packed)  # noqa: S301 - of our own worker


class _Messages:
    """Collects what a task tells, and sends it now and then."""

    def __init__(self, queue: Any) -> None:
        self.waiting: list[Any] = []
        self._queue = queue
        self._sent = time.monotonic()

    def __call__(self, message: Any) -> None:
        self.waiting.append(message)
        if time.monotonic() - self._sent > SECONDS_BETWEEN_MESSAGES:
            with suppress(RayError):  # progress that nobody hears is no reason to stop
                self._queue.put_nowait(self.waiting)
            self.waiting, self._sent = [], time.monotonic()


def work(task: Task, queue: Any, threads: int, kind: str) -> Done:
    """Do a task in this worker.

    Args:
        task: What is to be done.
        queue: Where it tells how far it has come.
        threads: How many it computes with.
        kind: On what kind of device.

    Returns:
        What came of it.
    """
    messages = _Messages(queue)
    with with_threads(threads):
        outcome = outcome_of(partial(task, messages, device_of_worker(kind)))
    return Done(pickle.dumps(outcome), messages.waiting)


def find_master() -> tuple[str, int]:
    """Return an address and a port of this machine, at which the processes of a task may meet."""
    from lossmith.training.engines.ranks import free_port

    return ray.util.get_node_ip_address(), free_port()
