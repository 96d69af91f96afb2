"""Interrupts wait while processes start: one that came in between would end in a message that nobody asked for."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interrupts_held_back", "leave_interrupts_to_the_parent"]

_CAN_MASK = hasattr(signal, "pthread_sigmask")  # Windows cannot, and sends interrupts another way


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let an interrupt wait until the block is left, and in a process that is started in it until that says what it wants.

    A fork runs what others have registered for it, such as the release of the locks of logging, and an interrupt in there is
    printed and forgotten.
    """
    # The mask is what a new process inherits. It does not keep the signal from the other threads of this one, and whichever gets
    # it, Python's handler runs in the main thread: that handler has to wait, too.
    with _masked(), _handler_held_back():
        yield


def leave_interrupts_to_the_parent() -> None:
    """Ignore interrupts in this process, which was started while they were held back."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _CAN_MASK:  # what this process starts would inherit the mask, and could never be interrupted
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def _masked() -> Iterator[None]:
    if not _CAN_MASK:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handler_held_back() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield  # no handler of Python runs in this thread
        return
    held: list[int] = []

    def remember(number: int, _: FrameType | None) -> None:
        held.append(number)

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        for number in held[:1]:
            signal.raise_signal(number)
