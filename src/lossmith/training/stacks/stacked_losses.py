"""The losses of many runs at once: runs with equal losses are one call."""

import copy
from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from lossmith.losses import ClassificationLoss
from lossmith.objectives.objective import Objective
from lossmith.training.batches import Batch
from lossmith.training.devices import CPU
from lossmith.training.job import Job

__all__ = ["StackedLosses", "loss_key", "predict_proba"]


def loss_key(job: Job) -> str:
    """Return a text that is the same for jobs whose losses are equal throughout training.

    Args:
        job: A run with its objective.

    Returns:
        The key.
    """
    if isinstance(job.objective, Objective):
        return f"{job.objective.loss!r} {job.objective.schedules!r} {job.objective.two_passes}"
    return repr(job.run)  # a user's loss may remember its calls, so every run has one of its own


class StackedLosses:
    """The losses of jobs that are sorted by :func:`loss_key`."""

    def __init__(self, jobs: Sequence[Job], epochs: int, device: torch.device = CPU) -> None:
        groups = [list(group) for _, group in groupby(jobs, loss_key)]
        self._groups = [_Group(group[0].objective, epochs, device) for group in groups]
        self._of_run = [number for number, group in enumerate(groups) for _ in group]
        self._count()

    def _count(self) -> None:
        counts = [(number, len(list(runs))) for number, runs in groupby(self._of_run)]
        self._active = [self._groups[number] for number, _ in counts]
        self._sizes = [size for _, size in counts]

    @property
    def passes(self) -> int:
        """How often each batch is passed."""
        return len(self._groups[0].passes)

    def __call__(self, logits: Tensor, batch: Batch, turn: int) -> Tensor:
        """Return the loss of each run, ``(runs,)``, in one of the passes."""
        if len(self._active) == 1:
            return self._active[0](logits, batch.target, turn)
        parts = zip(self._active, torch.split(logits, self._sizes), torch.split(batch.target, self._sizes), strict=True)
        return torch.cat([group(own_logits, target, turn) for group, own_logits, target in parts])

    def step(self) -> None:
        """Go on to the next epoch."""
        for group in self._groups:
            group.step()

    def keep(self, runs: Tensor) -> None:
        """Go on with some of the runs.

        Args:
            runs: Their places among those there are.
        """
        self._of_run = [self._of_run[run] for run in runs.tolist()]
        self._count()


class _Group:
    """One loss, for all runs that have it: a copy, with its schedules."""

    def __init__(self, objective: Objective | nn.Module, epochs: int, device: torch.device) -> None:
        self._objective = objective
        self._loss = copy.deepcopy(objective.loss if isinstance(objective, Objective) else objective).to(device)
        self._scheduler = None
        self._reduction: str | None = None
        """How the examples of a run are reduced; None where the loss must do it, run by run."""
        if isinstance(self._loss, ClassificationLoss) and self._loss.ignore_index < 0:
            self._reduction, self._loss.reduction = self._loss.reduction, "none"
        if isinstance(objective, Objective) and isinstance(self._loss, ClassificationLoss):
            self._scheduler = objective.scheduler(self._loss, total=epochs)
        self.passes = self._passes()

    def _passes(self) -> tuple[nn.Module, ...]:
        if isinstance(self._objective, Objective) and isinstance(self._loss, ClassificationLoss):
            return self._objective.passes(self._loss)
        return (self._loss,)

    def step(self) -> None:
        if self._scheduler is not None:
            self._scheduler.step()
            self.passes = self._passes()  # they may hold numbers that the schedule has just changed

    def __call__(self, logits: Tensor, target: Tensor, turn: int) -> Tensor:
        """Return what the loss reduces the examples of each run to, ``(runs,)``."""
        loss = self.passes[turn]
        if self._reduction is None:
            return torch.stack([loss(*run) for run in zip(logits, target, strict=True)])
        losses: Tensor = loss(logits.flatten(0, 1), target.flatten(0, 1)).view(target.shape[:2])
        if self._reduction == "sum":
            return losses.sum(1)
        weight = loss.weight
        if weight is None or target.is_floating_point():
            return losses.mean(1)
        assert isinstance(weight, Tensor)
        return losses.sum(1) / weight[target].sum(1)


def predict_proba(objective: Objective | nn.Module, logits: Tensor) -> Tensor:
    """Return the probabilities that belong to a loss; those of the softmax where it does not say, or its parts disagree.

    Args:
        objective: An objective, or a user's own loss.
        logits: The logits.

    Returns:
        Probabilities of the same shape.
    """
    loss = objective.loss if isinstance(objective, Objective) else objective
    try:
        return loss.predict_proba(logits)  # type: ignore[no-any-return, operator]
    except (AttributeError, ValueError):
        return logits.softmax(1)
