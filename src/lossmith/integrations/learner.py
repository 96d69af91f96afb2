"""A network that is trained on rows in memory, with weights for them, and goes on when more rows come."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lossmith.data.sparse_rows import Inputs, SparseRows
from lossmith.objectives import Objective
from lossmith.studies.design.usual_training import UNFINISHED, completed_recipe, rate_range, untuned_decay
from lossmith.training.learning_rate_schedules import Moment, make_learning_rate_schedule
from lossmith.training.models.named_models import make_backbone
from lossmith.training.seeds import generator, seeded

__all__ = ["Learner"]

ONE_BATCH = 256
"""So many rows are trained all at once, without chance and in double precision: a row of weight 2 is then two rows."""
STEPS_OF_ONE_BATCH = 200
_PREDICTED_AT_ONCE = 4096


class Learner:
    """A network with its loss and its optimizer.

    Args:
        objective: What is trained.
        model: A network of the catalogue, or ``auto``.
        inputs: Some rows, for their kind and width.
        num_classes: How many classes there are.
        seed: Of initial weights, batches and dropout.
        learning_rate: The largest step size, or None for the middle of what a study would try.
        weight_decay: Likewise.
    """

    def __init__(
        self,
        objective: Objective,
        model: str,
        inputs: Inputs,
        num_classes: int,
        *,
        seed: int,
        learning_rate: float | None,
        weight_decay: float | None,
    ) -> None:
        is_sparse = isinstance(inputs, SparseRows)
        self.model = ("bag" if is_sparse else "tabular") if model == "auto" else model
        self.objective, self.seed, self.epochs = objective, seed, 0
        recipe = replace(completed_recipe(UNFINISHED, self.model, 1), optimizer="adamw")
        self.rate = math.sqrt(math.prod(rate_range(recipe))) if learning_rate is None else learning_rate
        decay = untuned_decay(recipe) if weight_decay is None else weight_decay
        with seeded(seed, "weights"):
            backbone = make_backbone(self.model, (inputs.shape[1],), sparse=is_sparse)
            self.network, self.loss, groups = objective.build(backbone, num_classes, weight_decay=decay)
        self.optimizer = torch.optim.AdamW(groups)

    def fit(self, inputs: Inputs, labels: Tensor, weights: Tensor, epochs: int | None, batch_size: int | None) -> None:
        """Train from the beginning to the end, with a schedule of the learning rate.

        Args:
            inputs: The rows.
            labels: Their class indices.
            weights: A factor for each of them.
            epochs: How many times all of them are trained on, or None for what suits their number.
            batch_size: Likewise.
        """
        recipe = completed_recipe(UNFINISHED, self.model, len(labels))
        if batch_size is None and len(labels) <= ONE_BATCH:
            recipe = replace(recipe, epochs=STEPS_OF_ONE_BATCH, batch_size=ONE_BATCH)
            self.network.double()
        total, batches = epochs or recipe.epochs, Batches(inputs, labels, weights, batch_size or recipe.batch_size)
        schedule, scheduler = make_learning_rate_schedule(recipe.schedule), self.objective.scheduler(self.loss, total)
        for epoch in range(total):
            moments = [Moment(epoch, number, len(batches), total) for number in range(len(batches))]
            self._run_epoch(batches, [self.rate * schedule.factor(moment) for moment in moments])
            if scheduler is not None:
                scheduler.step()

    def go_on(self, inputs: Inputs, labels: Tensor, weights: Tensor, batch_size: int | None) -> None:
        """Train on some rows once, with a constant learning rate.

        Args:
            inputs: The rows.
            labels: Their class indices.
            weights: A factor for each of them.
            batch_size: How many rows make a batch, or None for what suits their number.
        """
        suitable = completed_recipe(UNFINISHED, self.model, len(labels)).batch_size
        batches = Batches(inputs, labels, weights, batch_size or suitable)
        self._run_epoch(batches, [self.rate] * len(batches))

    def logits(self, inputs: Inputs) -> Tensor:
        """Return the logits of rows.

        Args:
            inputs: The rows.

        Returns:
            A row of logits for each.
        """
        self.network.eval()
        with torch.no_grad():
            return torch.cat([self._outputs(part) for part in inputs.split(_PREDICTED_AT_ONCE)])

    def _outputs(self, inputs: Inputs) -> Tensor:
        logits: Tensor = self.network(inputs.to(next(self.network.parameters()).dtype))
        return logits

    def _run_epoch(self, batches: "Batches", rates: Sequence[float]) -> None:
        self.network.train(len(batches) > 1)
        # What a row counts on average: by that a batch is divided, however heavy its own rows are.
        share = self.loss.denominator(batches.labels, sample_weight=batches.weights) / len(batches.labels)
        with seeded(self.seed, f"dropout {self.epochs}"):
            for rate, rows in zip(rates, batches.in_order_of(self.seed, self.epochs), strict=True):
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
                self._step(batches, rows, share * len(rows))
        self.epochs += 1

    def _step(self, batches: "Batches", rows: Tensor, denominator: Tensor) -> None:
        for loss in self.objective.passes(self.loss):
            self.optimizer.zero_grad()
            logits, weights = self._outputs(batches.inputs[rows]), batches.weights[rows]
            loss(logits, batches.labels[rows], sample_weight=weights, denominator=denominator).backward()
            self.optimizer.step()


class Batches:
    """Rows in batches of a size, in an order that the seed and the epoch decide."""

    def __init__(self, inputs: Inputs, labels: Tensor, weights: Tensor, size: int) -> None:
        self.inputs, self.labels, self.weights, self.size = inputs, labels, weights, size

    def __len__(self) -> int:
        return math.ceil(len(self.labels) / self.size)

    def in_order_of(self, seed: int, epoch: int) -> tuple[Tensor, ...]:
        """Return the places of the rows of each batch.

        Args:
            seed: The seed of the training.
            epoch: How many epochs were before.

        Returns:
            Row numbers, batch by batch.
        """
        order = torch.randperm(len(self.labels), generator=generator(seed, f"batches {epoch}"))
        return torch.split(order, self.size)
