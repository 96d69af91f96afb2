"""One task in the process that does it."""

import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

__all__ = ["can_be_sent", "outcome_of", "with_threads"]


def outcome_of(work: Callable[[], Any]) -> Any:
    """Return what a piece of work returns, or the error that it raises, with its trace as a note.

    Args:
        work: What is done.

    Returns:
        Something that can be sent to another process.
    """
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - whatever it is, the process that waits raises it
        error.add_note("In a worker process:\n" + traceback.format_exc())
        return error if can_be_sent(error) else RuntimeError(traceback.format_exc())


def can_be_sent(thing: object) -> bool:
    """Return whether another process can be given something.

    Args:
        thing: Anything.

    Returns:
        True if it can be pickled.
    """
    try:
        pickle.dumps(thing)
    except (pickle.PicklingError, AttributeError, TypeError):  # what pickle raises, depending on what it meets
        return False
    return True


@contextmanager
def with_threads(count: int) -> Iterator[None]:
    """Compute with so many threads for a while.

    Args:
        count: How many torch may use.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
