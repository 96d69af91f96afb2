"""How far a study has come: a live display on a terminal or in a notebook, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

__all__ = [
    "NotebookProgress",
    "PlainProgress",
    "ProgressDisplay",
    "TerminalProgress",
    "duration",
    "in_notebook",
    "progress_display",
    "texts_display",
]

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_CHANGES = 0.5  # each is a message to the browser, and may be saved with the notebook


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
        self.note(f"{what}: {runs:.0f} {unit if runs != 1 else unit.removesuffix('s')}")

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


class NotebookProgress(ProgressDisplay):
    """One output that changes in place: a bar for each part of the work, and the notes above them. It needs IPython alone."""

    def __init__(self) -> None:
        super().__init__()
        self._notes: list[str] = []
        self._finished: list[str] = []
        self._what = ""
        self._last = 0.0
        self._handle: Any = None

    def start(self, what: str, runs: float, *, stores: bool = False, unit: str = "runs") -> None:
        """Begin a bar below the others."""
        if self._what:
            self._finished.append(self._bar())
        super().start(what, runs, stores=stores, unit=unit)
        self._what = what
        self._show(now=True)

    def advance(self, runs: float) -> None:
        """Move the bar."""
        super().advance(runs)
        self._show(now=self.done >= self.total)

    def store(self, runs: int = 1) -> None:
        """Count the runs."""
        super().store(runs)
        self._show()

    def note(self, line: str) -> None:
        """Write a line above the bars."""
        self._notes.append(f"<div>{escape(line)}</div>")
        self._show(now=True)

    def _bar(self) -> str:
        words = ", ".join(filter(None, (self.progress_text(), self.speed_and_rest())))
        bar = f'<progress max="{max(self.total, 1e-9):g}" value="{self.done:g}" style="width: 14em"></progress>'
        return f"<div>{escape(self._what)} {bar} {escape(words)}</div>"

    def _show(self, *, now: bool = False) -> None:
        """Change what is shown, unless that was done a moment ago."""
        if not now and time.monotonic() - self._last < SECONDS_BETWEEN_CHANGES:
            return
        self._last = time.monotonic()
        from IPython.display import HTML, display

        shown = HTML("".join([*self._notes, *self._finished, self._bar() if self._what else ""]))
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)


@contextmanager
def progress_display(stream: TextIO | None = None) -> Iterator[ProgressDisplay]:
    """Show progress below the cell of a notebook, or on the standard error stream, as a live bar if that is a terminal."""
    if stream is None and in_notebook():
        yield NotebookProgress()
        return
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


def in_notebook() -> bool:
    """Return whether a cell of a notebook runs: IPython is there already, and has a kernel that shows what it is given."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def duration(seconds: float) -> str:
    """Write a time to the precision that people think in.

    >>> duration(5.2), duration(90), duration(8000)
    ('5 s', '1.5 min', '2.2 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
