"""TensorBoard: event files in the folder of the study, those of each training in a folder of their own."""

import itertools
import re
from collections.abc import Mapping
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

from lossmith.studies.tracking.tracker import TrackedRun, TrackedStudy, Tracker, finite

__all__ = ["make"]

_FOLDER = "tensorboard"


def make() -> Tracker:
    """Return a tracker for ``tensorboard --logdir STUDY/tensorboard``."""
    return _TensorBoard()


class _TensorBoard:
    def begin(self, study: TrackedStudy) -> str:
        self._folder = study.folder / _FOLDER
        self._study = SummaryWriter(str(self._folder))
        lines = [f"    {name}: {value}" for name, value in study.settings.items()]
        self._study.add_text("settings", "\n".join(lines))
        return _FOLDER

    def run(self, run: TrackedRun) -> None:
        folder = _free(self._folder / _file_name(run.group), f"seed-{run.parameters['seed']}")
        with SummaryWriter(str(folder)) as writer:
            for part in hparams(dict(run.parameters), dict.fromkeys(run.measures, 0.0)):  # type: ignore[no-untyped-call]
                writer.file_writer.add_summary(part)
            for name, value in run.measures.items():
                writer.add_scalar(name, value)
            for name, curve in run.curves.items():
                for epoch, value in finite({str(epoch): value for epoch, value in enumerate(curve, 1)}).items():
                    writer.add_scalar(f"curve/{name}", value, int(epoch))

    def results(self, seed: int, measures: Mapping[str, float]) -> None:
        for name, value in measures.items():
            self._study.add_scalar(name, value, seed)
        self._study.flush()

    def report(self, page: Path, answer: str) -> None:
        indented = "\n".join(f"    {line}" for line in answer.splitlines())  # as it is printed
        self._study.add_text("answer", indented)

    def end(self, *, finished: bool) -> None:
        self._study.close()


def _free(folder: Path, name: str) -> Path:
    """Return a folder that no other trial has."""
    return next(place for number in itertools.count(1) if not (place := folder / f"{name}-trial-{number}").exists())


def _file_name(name: str) -> str:
    return re.sub(r"[^\w./=,+*() -]+", "-", name)
