"""Computations that are quicker alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["one_thread"]


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
