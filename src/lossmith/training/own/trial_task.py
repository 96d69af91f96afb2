"""One trial of a training function, for a worker process."""

import hashlib
import json
import math
import os
import random
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lossmith.objectives.objective import Objective
from lossmith.training.devices import CPU
from lossmith.training.engines.engine import Shared
from lossmith.training.own.outcome import OwnTrained, failed, outcome_of
from lossmith.training.own.trial import Curves, Trial, TrialStopped
from lossmith.training.peak_memory import PeakMemory
from lossmith.training.recipe import Run, Trained
from lossmith.training.seeds import derived_seed, seeded
from lossmith.training.workers import OnProgress, Progress

__all__ = ["TrainFunction", "TrialTask", "folder_of", "last_accuracy"]

TrainFunction = Callable[[Trial], Any]
"""The user's own training: from a trial to a dictionary of predictions or measures."""


def folder_of(trials: Path, run: Run) -> Path:
    """Return the folder of a trial: the same whenever the study is gone on with.

    Args:
        trials: The folder of all trials of a study.
        run: The trial.

    Returns:
        A folder below it, which need not be there.
    """
    return trials / hashlib.sha256(repr(tuple(run)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class TrialTask:
    """A trial that is to be trained: to the end, or until it is judged whether it goes on."""

    number: int
    run: Run
    function: Shared[TrainFunction]
    objective: Objective | nn.Module
    settings: Mapping[str, Any]
    folder: Path
    epochs: int = 0
    """How many a whole training has; 0 where nobody knows."""
    stop_after: int | None = None
    processes: int = 1
    """How many call the function together; what the first of them returns counts."""

    def __call__(self, say: OnProgress, device: torch.device = CPU) -> list[Trained] | None:
        """Train, and return what came of it, be it a reason why nothing did; nothing where another process has the answer."""
        if self.stop_after is not None and (judged := self._judged_before()) is not None:
            return [judged]
        told = _Told(self.number, self.epochs, say if self._counts else _ignore)
        given = (self.run, self.objective, self.settings, self.folder)
        trial = Trial(*given, device=device, stop_after=self.stop_after, on_report=told.epoch)
        start = time.perf_counter()
        with PeakMemory() as memory, _draws(self.run.seed):
            found = self._train(trial, start)
        found.memory = float(memory.bytes)
        if not self._counts:
            return [found] if found.failure else None
        if found.stopped:
            self._remember(found)
        else:
            told.end()
        return [found]

    def _train(self, trial: Trial, start: float) -> OwnTrained:
        try:
            returned = self.function.get()(trial)
            seconds = time.perf_counter() - start
            return outcome_of(trial, returned, seconds) if self._counts else _paused(self.run, trial.curves, seconds)
        except TrialStopped:
            return _paused(self.run, trial.curves, time.perf_counter() - start)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, the other trials go on
            return failed(self.run, _in_one_line(error), trial.curves, time.perf_counter() - start)

    @property
    def name(self) -> str:
        """Which trial it is, in words."""
        return f"{self.run.loss}, {self.run.noise}, replicate {self.run.seed}"

    @property
    def _counts(self) -> bool:
        """Whether this is the process whose answer counts."""
        return self.processes == 1 or os.environ.get("RANK") == "0"

    @property
    def was_judged(self) -> bool:
        """Whether the trial came to its judgement before, and that is remembered."""
        return self._memory_of_stop.is_file()

    @property
    def _memory_of_stop(self) -> Path:
        return self.folder.with_suffix(".json")

    def _remember(self, found: OwnTrained) -> None:
        """Write down how far the trial came, so that a study that is gone on with need not train it again to judge it."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._memory_of_stop.with_suffix(".unfinished")
        unfinished.write_text(json.dumps({"curves": found.curves, "seconds": found.seconds}))
        unfinished.replace(self._memory_of_stop)

    def _judged_before(self) -> OwnTrained | None:
        try:
            stored = json.loads(self._memory_of_stop.read_text())
            curves: Curves = {str(name): list(map(float, curve)) for name, curve in stored["curves"].items()}
            return _paused(self.run, curves, float(stored["seconds"]))
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return None


def _paused(run: Run, curves: Curves, seconds: float) -> OwnTrained:
    """Return what is known of a trial that has not come to its end, and has not failed."""
    found = failed(run, "", curves, seconds)
    found.diverged, found.stopped = False, True
    return found


def _ignore(_: Progress) -> None: ...


class _Told:
    """Tells the study how far a trial has come, in shares of a whole training."""

    def __init__(self, number: int, epochs: int, say: OnProgress) -> None:
        self._number, self._epochs, self._say, self._last = number, epochs, say, 0

    def epoch(self, epoch: int) -> None:
        if self._epochs and epoch > self._last:
            self._say(Progress(self._number, epoch - self._last, epoch, self._epochs))
            self._last = epoch

    def end(self) -> None:
        whole = self._epochs or 1
        if self._last < whole:
            self._say(Progress(self._number, whole - self._last, whole, whole))


@contextmanager
def _draws(seed: int) -> Iterator[None]:
    """Seed whatever a training may draw from, by the replicate, and leave the generators as they were."""
    own = derived_seed(seed, "training of the user's own")
    before, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - what users' code draws from
    random.seed(own)
    np.random.seed(own % 2**32)  # noqa: NPY002
    try:
        with seeded(seed, "training of the user's own"):
            yield
    finally:
        random.setstate(before)
        np.random.set_state(of_numpy)  # noqa: NPY002


def _in_one_line(error: BaseException) -> str:
    """Return what went wrong, and where in the user's own code."""
    words = str(error).strip() or "no reason given"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "lossmith/training" not in frame.filename]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {words}{place}"


def last_accuracy(curves: Curves) -> float:
    """Return the validation accuracy that was reported last; NaN where none was."""
    known = [value for value in curves["validation_accuracy"] if math.isfinite(value)]
    return known[-1] if known else math.nan
