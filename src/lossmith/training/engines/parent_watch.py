"""No process lives longer than the one that started it."""

import ctypes
import os
import signal
import sys
import threading
import time

__all__ = ["end_with_parent"]

SECONDS_BETWEEN_LOOKS = 1.0
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>


def end_with_parent(parent: int, *, of_main_thread: bool) -> None:
    """Have this process killed as soon as its parent is gone, whatever either is doing then.

    Linux kills it, even while it is stopped or computes without returning to Python. On every system, a thread also looks for
    the parent once a second, whenever Python or torch lets other threads run.

    Args:
        parent: The parent's process id, as the parent itself knows it.
        of_main_thread: Whether the parent's main thread started this process. Linux takes the end of the thread that started a
            process for the end of its parent, and any other thread may end before its process does.
    """
    if sys.platform == "linux" and of_main_thread:
        _ask_linux()
    _end_without(parent)  # it may have ended before Linux was asked
    threading.Thread(target=_watch, args=(parent,), name="parent watch", daemon=True).start()


def _ask_linux() -> None:
    """Ask for a kill at the parent's end; where a sandbox refuses, the thread is left to do it."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)


def _watch(parent: int) -> None:
    while True:
        time.sleep(SECONDS_BETWEEN_LOOKS)
        _end_without(parent)


def _end_without(parent: int) -> None:
    if os.getppid() != parent:
        os._exit(1)  # without what Python does at exit: it would flush streams whose locks a fork may have inherited
