"""The losses of many runs at once: runs with equal losses are one call."""

import copy
from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from lossmith.experiments.batches import Batch
from lossmith.experiments.job import Job
from lossmith.losses import ClassificationLoss
from lossmith.objectives import Objective

__all__ = ["StackedLosses", "loss_key", "predict_proba"]


def loss_key(job: Job) -> str:
    """Return a text that is the same for jobs whose losses are equal throughout training."""
    if isinstance(job.objective, Objective):
        return f"{job.objective.loss!r} {job.objective.schedules!r} {job.objective.two_passes}"
    return f"{job.objective!r} {id(job)}"


class StackedLosses:
    """The losses of jobs that are sorted by :func:`loss_key`."""

    def __init__(self, jobs: Sequence[Job], epochs: int) -> None:
        groups = [list(group) for _, group in groupby(jobs, loss_key)]
        self._groups = [_Group(group[0].objective, epochs) for group in groups]
        self._of_run = [number for number, group in enumerate(groups) for _ in group]

    def passes(self) -> int:
        """Return how often each batch is passed."""
        return len(self._groups[0].passes())

    def __call__(self, logits: Tensor, batch: Batch, turn: int) -> Tensor:
        """Return the loss of each run, ``(runs,)``, in one of the passes."""
        sizes = [len(list(runs)) for _, runs in groupby(self._of_run)]
        losses = [self._groups[number].passes()[turn] for number, _ in groupby(self._of_run)]
        parts = zip(losses, torch.split(logits, sizes), torch.split(batch.target, sizes), strict=True)
        return torch.cat([run_losses(loss, own_logits, target) for loss, own_logits, target in parts])

    def step(self) -> None:
        """Go on to the next epoch."""
        for group in self._groups:
            group.step()

    def keep(self, runs: Tensor) -> None:
        """Go on with some of the runs."""
        self._of_run = [self._of_run[run] for run in runs.tolist()]


class _Group:
    """A copy of one loss, and its schedules."""

    def __init__(self, objective: Objective | nn.Module, epochs: int) -> None:
        self._objective = objective
        self._loss = copy.deepcopy(objective.loss if isinstance(objective, Objective) else objective)
        self._scheduler = None
        if isinstance(objective, Objective):
            assert isinstance(self._loss, ClassificationLoss)
            self._scheduler = objective.scheduler(self._loss, total=epochs)

    def passes(self) -> tuple[nn.Module, ...]:
        if isinstance(self._objective, Objective):
            assert isinstance(self._loss, ClassificationLoss)
            return self._objective.passes(self._loss)
        return (self._loss,)

    def step(self) -> None:
        if self._scheduler is not None:
            self._scheduler.step()


def run_losses(loss: nn.Module, logits: Tensor, target: Tensor) -> Tensor:
    """Return what the loss reduces the examples of each run to, ``(runs,)``."""
    if not isinstance(loss, ClassificationLoss) or loss.ignore_index >= 0 or len(logits) == 1:
        return torch.stack([loss(*run) for run in zip(logits, target, strict=True)])
    reduction, loss.reduction = loss.reduction, "none"
    try:
        losses: Tensor = loss(logits.flatten(0, 1), target.flatten(0, 1)).view(len(logits), -1)
    finally:
        loss.reduction = reduction
    if reduction == "sum":
        return losses.sum(1)
    if loss.weight is None or target.is_floating_point():
        return losses.mean(1)
    return losses.sum(1) / loss.weight[target].sum(1)


def predict_proba(objective: Objective | nn.Module, logits: Tensor) -> Tensor:
    """Return the probabilities that belong to a loss; those of the softmax where it does not say, or its parts disagree."""
    loss = objective.loss if isinstance(objective, Objective) else objective
    try:
        return loss.predict_proba(logits)  # type: ignore[no-any-return, operator]
    except (AttributeError, ValueError):
        return logits.softmax(1)
