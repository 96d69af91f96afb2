"""Runs that train alone, one after another, and wait on disk for their race: of a large network there is room for one only.

What is written after every epoch is also where a training that was killed goes on.
"""

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from lossmith.data.prepared import PreparedData
from lossmith.data.sparse_rows import Inputs
from lossmith.training.devices import CPU
from lossmith.training.job import Job
from lossmith.training.loop import OnEpoch, Training
from lossmith.training.merit import Merit
from lossmith.training.race import Race
from lossmith.training.recipe import Recipe, Trained
from lossmith.training.records import Record

__all__ = ["forget_waiting", "train_one_by_one"]


def train_one_by_one(
    jobs: Sequence[Job],
    data: PreparedData,
    recipe: Recipe,
    waiting: Path,
    *,
    race: Race | None = None,
    on_epoch: OnEpoch | None = None,
    device: torch.device = CPU,
) -> list[Trained]:
    """Train runs with one of them in memory at a time, and return what each gave, in their order.

    Args:
        jobs: The runs, with their objectives and labels.
        data: What they are trained on.
        recipe: How they are trained.
        waiting: The folder where runs wait, each in a file of its own; what is there already is not trained again.
        race: Which trials of a cell go on to the end; all of them without.
        on_epoch: Called after each epoch.
        device: What they are trained on.

    Returns:
        What each run gave.
    """
    runs = [_Lone(job, data, recipe, waiting, on_epoch, data.inputs.to(device)) for job in jobs]
    first = recipe.epochs if race is None else min(race.epoch, recipe.epochs)
    standing = [1.0] * len(runs)
    if race is not None and first < recipe.epochs:
        merits = [run.merit(race, first) for run in runs]
        standing = race.stands_for([job.run for job in jobs], merits)
    return [run.finished(number) for run, number in zip(runs, standing, strict=True)]


def forget_waiting(waiting: Path) -> None:
    """Remove the runs that wait, after their results have been stored.

    Args:
        waiting: Their folder.
    """
    shutil.rmtree(waiting, ignore_errors=True)


@dataclass
class _Lone:
    """One run, whose network is in memory only while it is trained."""

    job: Job
    data: PreparedData
    recipe: Recipe
    waiting: Path
    on_epoch: OnEpoch | None
    inputs: Inputs
    """Those of the data, on the device where everything is computed."""

    @property
    def _file(self) -> Path:
        key = repr((self.job.run, self.job.seed, self.recipe, len(self.data.train)))
        return self.waiting / f"{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}.pt"

    def merit(self, race: Race, epoch: int) -> Merit:
        """Train up to an epoch, and return what validation rows say of the run then."""
        known = self._waiting()
        if known is None or known["merit"] is None:
            training = self._trained(known, epoch)
            known = _state(training, epoch) | {"merit": tuple(training.merits(race.judge)[0])}
            self._write(known)
        return Merit(*known["merit"])

    def finished(self, stands_for: float) -> Trained:
        """Train to the end, unless the run stands for no trial, and return what it gave."""
        known = self._waiting()
        if known is not None and not stands_for:
            training = self._restored(known)
        else:
            training = self._trained(known, self.recipe.epochs)
        training.stop([stands_for])
        (result,) = training.results()
        return result

    def _trained(self, known: dict[str, Any] | None, last: int) -> Training:
        """Return the run as it is after an epoch; it is written to disk after every one."""
        training = self._restored(known)
        for epoch in range(1 if known is None else known["epoch"] + 1, last + 1):
            training.run_epochs(epoch, epoch)
            self._write(_state(training, epoch) | {"merit": None if known is None else known["merit"]})
        return training

    def _restored(self, known: dict[str, Any] | None) -> Training:
        training = Training([self.job], self.data, self.recipe, None, self.on_epoch, inputs=self.inputs)
        if known is not None:
            _restore(training, known)
        return training

    def _waiting(self) -> dict[str, Any] | None:
        try:
            known: dict[str, Any] = torch.load(self._file, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, ValueError, UnpicklingError):  # not there, or cut short
            return None
        if "merit" not in known:  # of an earlier version
            score = known.pop("score", None)
            known["merit"] = None if score is None else tuple(Merit(score))
        return known

    def _write(self, state: dict[str, Any]) -> None:
        self.waiting.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(".part")
        torch.save(state, part)
        os.replace(part, self._file)


def _state(training: Training, epoch: int) -> dict[str, Any]:
    """Return all that a training has learnt, drawn and written down, in tensors, numbers and text."""
    generators = [*training.batches.generators, *training.model.generators]
    active = bool(training.active)
    return {
        "epoch": epoch,
        "active": active,
        "chosen": training.chosen,
        "record": asdict(training.records[0]),
        "weights": training.model.weights if active else None,
        "average": training.average,
        "optimizer": training.optimizer.state,
        "steps": training.optimizer.steps,
        "generators": [own.get_state() for own in generators],
    }


def _restore(training: Training, state: dict[str, Any]) -> None:
    for _ in range(state["epoch"]):
        training.losses.step()
    training.records[0] = Record(**state["record"])
    training.chosen.copy_(state["chosen"])
    if not state["active"]:
        training.stop([0.0])
        training.records[0] = Record(**state["record"])
        return
    training.model.weights.copy_(state["weights"])
    training.average = None if state["average"] is None else state["average"].to(training.device)
    training.optimizer.steps = state["steps"]
    for name, tensor in training.optimizer.state.items():
        tensor.copy_(state["optimizer"][name])
    for own, drawn in zip((*training.batches.generators, *training.model.generators), state["generators"], strict=True):
        own.set_state(drawn)
