"""Training of many runs as one model."""

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from lossmith.data.prepared import PreparedData
from lossmith.data.sparse_rows import Inputs
from lossmith.training.augmentation.augmentation import NONE, Augmentation
from lossmith.training.batches import Batch, Batches, Mixup
from lossmith.training.checks import check_stack
from lossmith.training.devices import CPU, is_accelerator, precise
from lossmith.training.job import Build, Job
from lossmith.training.learning_rate_schedules import Moment, make_learning_rate_schedule
from lossmith.training.merit import NO_MERIT, Merit
from lossmith.training.race import Judge, Race
from lossmith.training.recipe import Recipe, Trained
from lossmith.training.records import Record, answers_of, epoch_shares, looked_at
from lossmith.training.seeds import seeded
from lossmith.training.stacks.built_model import build_model
from lossmith.training.stacks.composition import by_seed
from lossmith.training.stacks.lazy_adamw import can_be_lazy
from lossmith.training.stacks.optimizers import OPTIMIZERS
from lossmith.training.stacks.stackable import can_be_stacked
from lossmith.training.stacks.stacked_losses import StackedLosses, loss_key, predict_proba
from lossmith.training.stacks.stacked_model import StackedModel

__all__ = ["OnEpoch", "Training", "train_stack"]

OnEpoch = Callable[[int, int], object]
"""Called with the number of runs that have trained for one epoch more, and with the epoch that is over, from 1."""


def train_stack(
    jobs: Sequence[Job],
    data: PreparedData,
    recipe: Recipe,
    *,
    build: Build | None = None,
    race: Race | None = None,
    on_epoch: OnEpoch | None = None,
    device: torch.device = CPU,
) -> list[Trained]:
    """Train runs of one architecture as one model where that can be done, and return what each gave, in their order.

    Each gives the numbers that it would give alone, to rounding.

    Args:
        jobs: The runs, with their objectives and labels.
        data: What they are trained on.
        recipe: How they are trained.
        build: Makes a user's own model in place of the recipe's.
        race: Which trials of a cell go on to the end; all of them without.
        on_epoch: Called after each epoch.
        device: What they are trained on.

    Returns:
        What each run gave.

    Raises:
        ValueError: If the runs do not share an architecture.
    """
    check_stack(jobs)
    together = len(jobs) < 2 or can_be_stacked(build_model(jobs[0], data, recipe, build), data)
    order = sorted(range(len(jobs)), key=lambda number: loss_key(jobs[number]))
    parts = list(by_seed(jobs, order, data).values()) if together else [[number] for number in order]
    inputs = data.inputs.to(device)
    trainings = [Training([jobs[number] for number in part], data, recipe, build, on_epoch, inputs=inputs) for part in parts]
    first = recipe.epochs if race is None else min(race.epoch, recipe.epochs)
    for training in trainings:
        training.run_epochs(1, first)
    if race is not None and first < recipe.epochs:
        _stop_trials(trainings, race)
    results: dict[int, Trained] = {}
    for part, training in zip(parts, trainings, strict=True):
        training.run_epochs(first + 1, recipe.epochs)
        results.update(zip(part, training.results(), strict=True))
    return [results[number] for number in range(len(jobs))]


def _stop_trials(trainings: Sequence["Training"], race: Race) -> None:
    runs = [job.run for training in trainings for job in training.jobs]
    merits = [merit for training in trainings for merit in training.merits(race.judge)]
    standing = iter(race.stands_for(runs, merits))
    for training in trainings:
        training.stop([next(standing) for _ in training.jobs])


class Training:
    """A stack in training: see :func:`train_stack`. Whatever has a row for each run has one only for the runs that are active."""

    def __init__(
        self,
        jobs: Sequence[Job],
        data: PreparedData,
        recipe: Recipe,
        build: Build | None,
        on_epoch: OnEpoch | None,
        *,
        inputs: Inputs,
    ) -> None:
        self.jobs, self.data, self.recipe, self.on_epoch = jobs, data, recipe, on_epoch
        self.inputs = inputs
        """Those of the data, on the device where everything is computed."""
        self.device = inputs.device
        seeds = [job.seed for job in jobs]
        built = [build_model(job, data, recipe, build) for job in jobs]
        self.model = StackedModel(built, seeds, recipe.precision, lazily=can_be_lazy(recipe, inputs), device=self.device)
        options = {"momentum": recipe.momentum, "nesterov": recipe.nesterov} if recipe.optimizer == "sgd" else {}
        self.optimizer = OPTIMIZERS[recipe.optimizer](self.model.parameters, self.model.decay, **options)
        self.losses = StackedLosses(jobs, recipe.epochs, self.device)
        self.answers = answers_of(jobs, data).to(self.device)
        labels = torch.stack([job.train_labels for job in jobs]).to(self.device)
        self.batches = Batches(inputs, data.train.to(self.device), labels, seeds, recipe.batch_size)
        self.augmentation = Augmentation(recipe.augment, seeds, data, self.device) if recipe.augment != NONE else None
        self.mixup = Mixup(recipe.mixup, seeds, data.num_classes) if recipe.mixup else None
        self.schedule = make_learning_rate_schedule(recipe.schedule)
        self.rates = torch.tensor([[job.run.learning_rate] for job in jobs]).to(self.device)
        self.average: Tensor | None = None
        self.records = [Record() for _ in jobs]
        self.chosen = self.model.weights.clone()
        """The weights whose predictions count, of all runs."""
        self.active = list(range(len(jobs)))
        self.rows = looked_at(data).to(self.device)

    def run_epochs(self, first: int, last: int) -> None:
        """Train from one epoch to another, both included, as long as any run is active."""
        for epoch in range(first, last + 1):
            if not self.active:
                return
            runs = len(self.active)
            self._run_epoch(epoch)
            if self.on_epoch is not None:
                self.on_epoch(runs, epoch)

    def _run_epoch(self, epoch: int) -> None:
        """Train for one epoch, and write down what came of it."""
        start = time.perf_counter()
        with seeded(self.jobs[0].seed, f"epoch {epoch}"):  # for modules with randomness of their own, which train alone
            losses = self.train_epoch(epoch)
        self.model.catch_up()
        self.losses.step()
        self._write_down(epoch, losses, time.perf_counter() - start)
        self._drop_finished(epoch)

    def train_epoch(self, epoch: int) -> Tensor:
        """Make the steps of one epoch.

        Args:
            epoch: Its number, from 1.

        Returns:
            The mean loss of each run, ``(runs,)``.
        """
        total, rows = torch.zeros(len(self.active), dtype=precise(self.device), device=self.device), 0
        self.model.template.train()
        for number, batch in enumerate(map(self._changed, self.batches.epoch())):
            rates = self.rates * self.schedule.factor(Moment(epoch - 1, number, len(self.batches), self.recipe.epochs))
            size = batch.target.shape[1]
            total += size * self._step(batch, rates)
            rows += size
        return total / rows

    def _changed(self, batch: Batch) -> Batch:
        for change in (self.augmentation, self.mixup):
            batch = batch if change is None else change(batch)
        return batch

    def _step(self, batch: Batch, rates: Tensor) -> Tensor:
        """Return the losses of one batch, after learning from it."""
        total = torch.zeros(len(self.active), device=self.device)
        for turn in range(self.losses.passes):
            losses = self._finite_losses(self.model.logits(batch.inputs), batch, turn)
            self.optimizer.step(self._clipped(self.model.gradient(losses)), rates)
            self.model.move_table(rates)
            total += losses.detach()
        if self.recipe.averaging:
            self._update_average()
        return total

    def _clipped(self, gradient: Tensor) -> Tensor:
        """Shorten the gradients of runs that are longer than the recipe allows."""
        if not self.recipe.clipping:
            return gradient
        norms = gradient.norm(dim=1, keepdim=True)
        return gradient.mul_((self.recipe.clipping / norms.clamp_min(1e-30)).clamp_max_(1.0))

    def _finite_losses(self, logits: Tensor, batch: Batch, turn: int) -> Tensor:
        """Keep logits that are not finite from losses that refuse them: what such a run loses is NaN.

        To look at logits on an accelerator would mean to wait for it in every step.
        """
        if not is_accelerator(self.device) and math.isfinite(logits.detach().sum().item()):
            return self.losses(logits, batch, turn)
        finite = logits.detach().isfinite().flatten(1).all(1)
        losses = self.losses(torch.where(finite.view(-1, 1, 1), logits, 0.0), batch, turn)
        return torch.where(finite, losses, torch.nan)

    def _update_average(self) -> None:
        if self.average is None:
            self.average = self.model.weights.clone()
        else:
            self.average.lerp_(self.model.weights, 1 - self.recipe.averaging)

    def _write_down(self, epoch: int, losses: Tensor, seconds: float) -> None:
        start = time.perf_counter()
        weights = self.model.weights if self.average is None else self.average
        predicted = self.model.classes(self.inputs, self.rows, weights)
        finite = (losses.isfinite() & (predicted >= 0).all(1)).tolist()
        shares = {name: values.tolist() for name, values in epoch_shares(predicted, self.answers).items()}
        curves = {"train_loss": losses.tolist(), **shares}
        share = (seconds + time.perf_counter() - start) / len(self.active)
        for row, run in enumerate(self.active):
            record = self.records[run]
            record.seconds += share
            if not finite[row]:
                record.diverged = True
                continue
            for name, values in curves.items():
                record.curves[name].append(values[row])
            self._choose(record, epoch, run, weights[row])

    def _choose(self, record: Record, epoch: int, run: int, weights: Tensor) -> None:
        accuracy = record.curves["validation_accuracy"][-1]
        better = accuracy > record.best
        if better:
            record.best, record.best_epoch = accuracy, epoch
        if better or self.recipe.select == "last":
            record.epoch = epoch
            self.chosen[run] = weights

    def _drop_finished(self, epoch: int) -> None:
        """Go on without runs that diverged or got no better for too long."""
        patience = self.recipe.patience or self.recipe.epochs
        records = [self.records[run] for run in self.active]
        self._go_on_with([row for row, own in enumerate(records) if not own.diverged and epoch - own.best_epoch < patience])

    def merits(self, judge: Judge) -> list[Merit]:
        """Return what validation rows say of each run."""
        found = [NO_MERIT] * len(self.jobs)
        labels = self.answers.validation.cpu().numpy()
        for row, (run, probabilities) in enumerate(zip(self.active, self._validation(self.active), strict=True)):
            found[run] = judge(probabilities, labels[row]).beside(*self.records[run].accuracies())
        return found

    def stop(self, stands_for: Sequence[float]) -> None:
        """Go on without the runs that stand for no trial."""
        for record, number in zip(self.records, stands_for, strict=True):
            record.stands_for = number
            record.stopped = not number
        self._go_on_with([row for row, run in enumerate(self.active) if stands_for[run]])

    def _validation(self, runs: Sequence[int]) -> list[np.ndarray]:
        """Return the probabilities that some runs give to the validation rows."""
        logits = self.model.predict(self.inputs, self.data.validation.to(self.device), self.chosen[list(runs)])
        return [predict_proba(self.jobs[run].objective, own).numpy() for run, own in zip(runs, logits.cpu(), strict=True)]

    def _go_on_with(self, going: list[int]) -> None:
        if len(going) == len(self.active):
            return
        self.active = [self.active[row] for row in going]
        rows = torch.tensor(going, dtype=torch.long)
        self.model.keep(rows)
        self.optimizer.keep(rows, self.model.parameters)
        self.batches.keep(rows)
        self.losses.keep(rows)
        self.answers = self.answers.keep(rows)
        self.rates = self.rates[rows]
        self.average = None if self.average is None else self.average[rows]
        for change in (self.augmentation, self.mixup):
            if change is not None:
                change.keep(rows)

    def results(self) -> list[Trained]:
        """Return what each run gave."""
        inputs, rows = self.inputs, self.data.test.to(self.device)
        logits = self.model.predict(inputs, rows, self.chosen).cpu()
        features = self.model.features(inputs, rows, self.chosen).cpu() if "features" in self.recipe.keep else None
        validation = self._validation(range(len(self.jobs)))
        return [
            Trained(
                run=job.run,
                curves=record.padded(self.recipe.epochs),
                epoch=record.epoch,
                test_logits=logits[number].numpy(),
                test_probabilities=predict_proba(job.objective, logits[number]).numpy(),
                seconds=record.seconds,
                validation_probabilities=validation[number],
                diverged=record.diverged,
                stopped=record.stopped,
                stands_for=record.stands_for,
                test_features=None if features is None else features[number].numpy(),
                weights=self.model.state_dict(self.chosen[number].cpu()) if "weights" in self.recipe.keep else {},
            )
            for number, (job, record) in enumerate(zip(self.jobs, self.records, strict=True))
        ]
