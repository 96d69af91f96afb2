"""The command line in a process of its own, which may be killed, run out of time or take all memory."""

import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

import torch

import lossmith.report.result_tables

# What commands import when they run; a fork of this process then has it already.
import lossmith.report.study_page
import lossmith.studies.compare
import lossmith.studies.study_analysis.analysis_text  # noqa: F401
from attack.kind import Failure
from lossmith.command_line import main

__all__ = ["Command", "Ended", "check_answer", "run"]

MOST_SECONDS = 120.0
MOST_MEMORY = 2.5e9
"""Bytes, of a process that begins with torch, pandas and scikit-learn."""


class Ended(NamedTuple):
    """What a process left."""

    code: int
    """Negative: the signal that ended it."""
    out: str
    err: str
    memory: float
    """Bytes at most."""


class Command:
    """``lossmith ...`` in a fork, which needs no time to import, and in a session of its own, so that no process gets lost."""

    def __init__(self, words: Sequence[object], folder: Path) -> None:
        self.words = [str(word) for word in words]
        self._out, self._err = folder / "out.txt", folder / "err.txt"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks while other threads run: the child has none of them
            self.pid = os.fork()
        if not self.pid:
            self._be_the_child(folder)

    def _be_the_child(self, folder: Path) -> None:
        code = 99
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number, file in ((1, self._out), (2, self._err)):
                os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
            tempfile.tempdir = str(folder)
            code = _exit_code(self.words)
            sys.stdout.flush()
        finally:
            os._exit(code)

    def signal(self, number: int) -> None:
        """Send a signal, if there is still somebody to get it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def children(self) -> list[int]:
        """Return the worker processes."""
        file = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    def wait(self, seconds: float = MOST_SECONDS) -> Ended:
        """Wait for the end, and raise Failure if it does not come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                return Ended(os.waitstatus_to_exitcode(status), _text(self._out), _text(self._err), usage.ru_maxrss * 1024.0)
            time.sleep(0.005)
        self.end_all()
        raise Failure(f"no end after {seconds:.0f} s of: lossmith {' '.join(self.words)}")

    def end_all(self) -> None:
        """Kill every process of the session, and take leave of the first."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def anybody_left(self) -> bool:
        """Return whether a process of the session still lives; what is dead may wait a while for somebody to ask for its code."""
        return any(session == self.pid and state not in "ZX" for state, session in map(_state_and_session, _processes()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.anybody_left():
            self.end_all()


def _processes() -> list[Path]:
    return [folder for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def _state_and_session(process: Path) -> tuple[str, int]:
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()  # after the name, which may hold anything
    except OSError:
        return "X", 0  # it ended just now
    return fields[0], int(fields[3])


def _exit_code(words: list[str]) -> int:
    torch.set_num_threads(1)  # a fork has none of the threads that its parent may have computed with
    try:
        return main(words)
    except SystemExit as stop:
        return int(stop.code or 0)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def run(words: Sequence[object], folder: Path, seconds: float = MOST_SECONDS) -> Ended:
    """Run a command and check its answer."""
    with Command(words, folder) as command:
        ended = command.wait(seconds)
    check_answer(ended, command.words)
    return ended


def check_answer(ended: Ended, words: Sequence[str]) -> None:
    """Raise Failure unless all went well, or the input was refused in one line."""
    where = f"of: lossmith {' '.join(words)}"
    if ended.code not in (0, 2):
        raise Failure(f"exit code {ended.code}, {ended.err.strip()[-400:]!r} {where}")
    lines = ended.err.splitlines()
    # What a command says before it meets the fault, such as progress, is no part of the error.
    if ended.code == 2 and [line.startswith("lossmith") for line in lines] != [False] * (len(lines) - 1) + [True]:
        raise Failure(f"not one line, {ended.err[-400:]!r} {where}")
    if "Traceback" in ended.err or "Warning" in ended.err:
        raise Failure(f"a traceback or warning, {ended.err[-400:]!r} {where}")
    if ended.memory > MOST_MEMORY:
        raise Failure(f"{ended.memory / 1e9:.1f} GB of memory {where}")
