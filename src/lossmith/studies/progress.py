"""How far a study has come: a live display on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

__all__ = ["PlainProgress", "ProgressDisplay", "TerminalProgress", "duration", "progress_display", "texts_display"]

SECONDS_BETWEEN_LINES = 10.0


class ProgressDisplay:
    """Counts epochs, as a stack of runs finishes all at once, and stored runs, as only those outlive a stop; shows nothing."""

    def __init__(self) -> None:
        self.done = 0.0
        self.total = 0.0
        self.unit = "runs"
        self.stored: int | None = None
        """How many runs are safe; None where nothing is stored run by run."""
        self._begin = time.monotonic()

    def start(self, what: str, runs: float, *, stores: bool = False, unit: str = "runs") -> None:
        """Begin a part of the work.

        Args:
            what: What is done, in words.
            runs: Of how many runs.
            stores: Whether runs are stored as they finish, which :meth:`store` then says of each.
            unit: What is counted, where it is not runs.
        """
        self.done, self.total, self.unit = 0.0, runs, unit
        self.stored = 0 if stores else None
        self._begin = time.monotonic()

    def advance(self, runs: float) -> None:
        """Say that so many runs more are done; an epoch of a run is a fraction of it."""
        self.done = min(self.done + runs, self.total)

    def store(self, runs: int = 1) -> None:
        """Say that so many runs more are stored."""
        self.stored = (self.stored or 0) + runs

    def note(self, line: str) -> None:
        """Tell the user something."""

    def progress_text(self) -> str:
        """Return how much is done, and how much of it is safe."""
        if self.stored is None:
            return f"{self.done:.0f} of {self.total:.0f} {self.unit}"
        return f"{self.done:.0f} of {self.total:.0f} trainings, {self.stored} stored with trials that were stopped"

    def speed_and_rest(self) -> str:
        """Return the speed, and the time that is left at this speed."""
        elapsed = time.monotonic() - self._begin
        if not self.done or not elapsed:
            return ""
        rate = self.done / elapsed
        return f"{rate:.2g} {self.unit}/s, {duration((self.total - self.done) / rate)} left"


class PlainProgress(ProgressDisplay):
    """A line every now and then, for files and pipes."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._what = ""
        self._last = 0.0

    def start(self, what: str, runs: float, *, stores: bool = False, unit: str = "runs") -> None:
        """Begin a part of the work."""
        super().start(what, runs, stores=stores, unit=unit)
        self._what, self._last = what, time.monotonic()
        self.note(f"{what}: {runs:.0f} {unit}")

    def advance(self, runs: float) -> None:
        """Write a line if the last one is some time ago."""
        super().advance(runs)
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            self.note(f"{self._what}: {self.progress_text()}, {self.speed_and_rest()}")

    def note(self, line: str) -> None:
        """Write a line."""
        print(line, file=self._stream, flush=True)


class TerminalProgress(ProgressDisplay):
    """A bar with runs trained and stored, speed and time left."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[progress]}"),
            TextColumn("{task.fields[rest]}"),
            TimeElapsedColumn(),
        )
        self.bar = Progress(*columns, console=console)
        self._task: TaskID | None = None

    def start(self, what: str, runs: float, *, stores: bool = False, unit: str = "runs") -> None:
        """Add a bar."""
        super().start(what, runs, stores=stores, unit=unit)
        self._task = self.bar.add_task(what, total=runs, progress=self.progress_text(), rest="")

    def advance(self, runs: float) -> None:
        """Move the bar."""
        super().advance(runs)
        self._show()

    def store(self, runs: int = 1) -> None:
        """Count the runs."""
        super().store(runs)
        self._show()

    def _show(self) -> None:
        if self._task is not None:
            self.bar.update(self._task, completed=self.done, progress=self.progress_text(), rest=self.speed_and_rest())

    def note(self, line: str) -> None:
        """Write a line above the bars."""
        self.bar.console.print(line, highlight=False, markup=False)


@contextmanager
def progress_display(stream: TextIO | None = None) -> Iterator[ProgressDisplay]:
    """Show progress on the standard error stream, as a live bar if that is a terminal."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield PlainProgress(stream)
        return
    display = TerminalProgress(Console(file=stream))
    with display.bar:
        yield display


@contextmanager
def texts_display(stream: TextIO | None = None) -> Iterator[Callable[[int, int], None]]:
    """Give a function that shows how many texts have been encoded, and of how many, from its first call on."""
    with ExitStack() as shown:
        display: ProgressDisplay | None = None

        def on_texts(done: int, total: int) -> None:
            nonlocal display
            if display is None:
                display = shown.enter_context(progress_display(stream))
                display.start("encoding texts", total, unit="texts")
            display.advance(done - display.done)

        yield on_texts


def duration(seconds: float) -> str:
    """Write a time to the precision that people think in.

    >>> duration(5.2), duration(90), duration(8000)
    ('5 s', '1.5 min', '2.2 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
