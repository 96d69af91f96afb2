"""Trackers beside a study: they are told of everything in time, and none of them can stop it."""

import tempfile
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any, Protocol

from lossmith.studies.tracking.tracker import TrackedRun, TrackedStudy, Tracker, finite, named_tracker, tracked_run
from lossmith.training.recipe import Cell, Trained

__all__ = ["Tracking"]

_PATIENCE = 60.0
"""Seconds that the end of a study waits for a tracker that has not sent everything yet."""
_Note = Callable[[str], None]
_Event = Callable[[], object]


class Tracking:
    """All trackers of a study; none by default.

    Args:
        names: Of trackers.
        note: Tells the user what goes wrong, once for each of them.
    """

    def __init__(self, names: Sequence[str] = (), note: _Note | None = None) -> None:
        self._all = [_Guarded(name, note or (lambda _: None)) for name in names]

    def begin(self, study: TrackedStudy, known: Mapping[str, str], remember: Callable[[str, str], None]) -> None:
        """Open the study in every tracker.

        Args:
            study: What is known when it begins.
            known: By what it is known to a tracker, by the tracker's name, where it goes on.
            remember: Called with the name of a tracker, and by what the study is known to it.
        """
        for each in self._all:
            each.begin(study, known.get(each.name, ""), remember)

    def runs(self, measured: Sequence[tuple[Trained, Mapping[str, float]]]) -> None:
        """Tell of trainings that went to their end; those that better trials left behind are not sent."""
        for run in (tracked_run(trained, measures) for trained, measures in measured if self._all and not trained.stopped):
            for each in self._all:
                each.send(partial(_send_run, run))

    def results(self, seed: int, chosen: Mapping[Cell, Mapping[str, Any]], names: Collection[str]) -> None:
        """Tell what counts of a replicate.

        Args:
            seed: The replicate.
            chosen: The run that counts of each cell, with its measures.
            names: Of the measures.
        """
        found = {f"{cell.noise}/{cell.loss}/{name}": run[name] for cell, run in chosen.items() for name in names if name in run}
        for each in self._all:
            each.send(lambda tracker: tracker.results(seed, finite(found)))

    def end(self, study: "_FinishedStudy | None" = None) -> None:
        """Send the report of a study that is finished, close it, and wait a while for what has not been sent.

        Args:
            study: The study; None where it was stopped.
        """
        with tempfile.TemporaryDirectory(prefix="lossmith-") as folder:
            page = Path(folder) / "report.html"
            for each in self._all:
                if study is not None:
                    each.send(partial(_send_report, study, page))
                each.end(finished=study is not None)


class _FinishedStudy(Protocol):
    """A study, as far as a tracker is told of its end."""

    def recommend(self) -> object: ...
    def report(self, file: Path) -> object: ...


def _send_run(run: TrackedRun, tracker: Tracker) -> None:
    tracker.run(run)


def _send_report(study: _FinishedStudy, page: Path, tracker: Tracker) -> None:
    """Send the report, which is written once for all trackers."""
    if not page.exists():
        study.report(page)
    tracker.report(page, str(study.recommend()))


class _Guarded:
    """A tracker in a thread of its own, which is left alone from its first failure on."""

    def __init__(self, name: str, note: _Note) -> None:
        self.name = name
        self._note = note
        self._failed = False
        self._events: Queue[_Event | None] = Queue()
        self._tracker: Tracker | None = None
        self._guard(self._import)
        self._thread = threading.Thread(target=self._work, name=f"lossmith-{name}", daemon=True)
        self._thread.start()

    def _import(self) -> None:
        """Import the client here, not in the thread: workers are forked from this process, and must not find it half imported."""
        self._tracker = named_tracker(self.name)

    def begin(self, study: TrackedStudy, known_as: str, remember: Callable[[str, str], None]) -> None:
        again = TrackedStudy(study.name, study.folder, study.settings, known_as)
        self.send(lambda tracker: remember(self.name, tracker.begin(again)))

    def send(self, event: Callable[[Tracker], object]) -> None:
        self._events.put(lambda: event(self._tracker) if self._tracker is not None else None)

    def end(self, *, finished: bool) -> None:
        self.send(lambda tracker: tracker.end(finished=finished))
        self._events.put(None)
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            self._fail(f"did not take everything within {_PATIENCE:g} seconds")

    def _work(self) -> None:
        while (event := self._events.get()) is not None:
            if not self._failed:
                self._guard(event)

    def _guard(self, event: _Event) -> None:
        try:
            event()
        except Exception as error:  # noqa: BLE001 - whatever a client does, the study goes on
            first = str(error).strip().partition("\n")[0].rstrip(".")
            self._fail(f"failed, {type(error).__name__}: {first}" if first else f"failed, {type(error).__name__}")

    def _fail(self, how: str) -> None:
        if not self._failed:
            self._failed = True
            self._note(f"track: {self.name} {how}; the study goes on without it.")
