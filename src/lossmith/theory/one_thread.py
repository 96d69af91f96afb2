"""Computations that are quicker alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["keep_freed_memory", "one_thread"]

# Just below 32 MB, the largest block that glibc learns from.
INSTRUCTIVE_BYTES = (32 << 20) - (1 << 16)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread, and as many as before afterwards.

    Thousands of operations one after another on rows of some ten thousand logits spend more time on waking threads than on
    numbers: ten times as much with two processors that others use, too.

    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def keep_freed_memory() -> None:
    """Let memory that is freed serve the next row of logits, up to 64 MB of it, instead of going back to the system.

    glibc keeps twice as much as the largest block that was freed so far; other allocators make nothing of it. A third of the
    time for a million classes would go into asking the system for the same memory over and over.
    """
    torch.empty(INSTRUCTIVE_BYTES, dtype=torch.uint8)
