"""AdamW for the first layer of sparse rows: only what a batch reads is computed, and the result is that of all steps.

A batch has a few thousand of tens of thousands of columns. A column that it does not have has no gradient, yet AdamW moves it:
weight decay shrinks it, and its momentum carries it on, ever more slowly. Both can be told afterwards. After a step ``s`` with
weights ``w``, mean ``m`` and mean square ``v``, steps ``s + 1`` to ``t`` without a gradient give

    w P - G m / sqrt(v)    with    P = prod (1 - rate_j decay)
                                   G = sum rate_j c_j r^(j - s) prod_{i > j} (1 - rate_i decay)

where ``r = beta_1 / sqrt(beta_2)`` and ``c_j`` corrects the bias of the first steps. ``P`` and ``G`` depend on ``s`` and the run
only, so they are a short table, and a column catches up when a batch asks for it again.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from lossmith.data.sparse_rows import Inputs, SparseRows
from lossmith.training.devices import is_accelerator
from lossmith.training.recipe import Recipe
from lossmith.training.stacks.optimizers import StackedAdamW

__all__ = ["LazyAdamW", "can_be_lazy"]

_COLUMNS_AT_ONCE = 2048


def can_be_lazy(recipe: Recipe, inputs: Inputs) -> bool:
    """Return whether the first layer may move only where a batch reads it: that pays where a processor makes the steps itself.

    Args:
        recipe: How runs are trained.
        inputs: Where they are.

    Returns:
        True for sparse rows and AdamW, unless all of the weights or of the gradient are needed in every step.
    """
    sparse = isinstance(inputs, SparseRows) and not is_accelerator(inputs.device)
    return sparse and recipe.optimizer == "adamw" and not (recipe.averaging or recipe.clipping)


class LazyAdamW:
    """Trains tables ``(runs, columns, width)``, which are changed in place, with a weight decay for each run.

    Runs take turns, so that what a batch reads of one of them stays in the cache.
    """

    def __init__(self, tables: Tensor, decay: Tensor) -> None:
        self.tables = tables
        self.decay = decay.double()
        self._mean, self._square = torch.zeros_like(tables), torch.zeros_like(tables)
        self._steps = 0
        self._begin()

    def _begin(self) -> None:
        """Count from here, where every column is up to date."""
        self._since = torch.zeros(self.tables.shape[1], dtype=torch.long)
        """The step of each column's last update, from the beginning."""
        self._kept = torch.ones(1, len(self.tables), dtype=torch.double)
        """``P``, ``(steps, runs)``."""
        self._carried = torch.zeros(1, len(self.tables), dtype=torch.double)
        """``G``"""

    def read(self, columns: Tensor) -> Tensor:
        """Return the weights of some columns as they are after all steps so far, ``(runs, columns, width)``.

        Args:
            columns: Their numbers, each once.

        Returns:
            A leaf, of whose gradient :meth:`step` makes the next step.
        """
        self._columns = columns
        self._weights = torch.stack([self._caught_up(run, columns) for run in range(len(self.tables))])
        return self._weights.requires_grad_()

    def _caught_up(self, run: int, columns: Tensor) -> Tensor:
        """Return the weights of one run; mean and mean square stay as they are."""
        mean, square = self._mean[run].index_select(0, columns), self._square[run].index_select(0, columns)
        scale = square.sqrt_().add_(StackedAdamW.epsilon * math.sqrt(self._correction(1)))
        since = self._since[columns]
        kept, carried = (part[since, run].unsqueeze(1).to(mean.dtype) for part in (self._kept, self._carried))
        return self.tables[run].index_select(0, columns).mul_(kept).sub_(mean.div_(scale).mul_(carried))

    def _correction(self, which: int) -> float:
        """Return what the mean, or the mean square, lacks after the steps so far, because it began at 0."""
        return float(1 - StackedAdamW.betas[which] ** max(self._steps, 1))

    def _faded(self, columns: Tensor, steps: int) -> list[Tensor]:
        """Return what is left of the mean and the mean square of some columns at a step."""
        missed = (steps - self._since[columns]).to(self.tables.dtype).unsqueeze(1)
        return [beta**missed for beta in StackedAdamW.betas]

    def step(self, gradient: Tensor, rates: Tensor) -> None:
        """Make one step with the gradient of what was read last.

        Args:
            gradient: ``(runs, columns, width)``.
            rates: The learning rates ``(runs, 1)``.
        """
        self._steps += 1
        columns, faded = self._columns, self._faded(self._columns, len(self._kept))
        for run, rate in enumerate(rates.flatten().tolist()):
            weights, own = self._weights[run].detach(), gradient[run]
            mean, square = self._moments(run, columns, faded, own)
            scale = square.sqrt().add_(StackedAdamW.epsilon * math.sqrt(self._correction(1)))
            weights.mul_(1 - rate * self.decay[run].item())
            weights.addcdiv_(mean, scale, value=-rate * math.sqrt(self._correction(1)) / self._correction(0))
            self._write(run, columns, weights, mean, square)
        self._count_step(rates.flatten().double())

    def _moments(self, run: int, columns: Tensor, faded: Sequence[Tensor], gradient: Tensor) -> tuple[Tensor, Tensor]:
        first, second = StackedAdamW.betas
        mean = self._mean[run].index_select(0, columns).mul_(faded[0]).add_(gradient, alpha=1 - first)
        square = self._square[run].index_select(0, columns).mul_(faded[1])
        return mean, square.addcmul_(gradient, gradient, value=1 - second)

    def _write(self, run: int, columns: Tensor, weights: Tensor, mean: Tensor, square: Tensor) -> None:
        self.tables[run].index_copy_(0, columns, weights)
        self._mean[run].index_copy_(0, columns, mean)
        self._square[run].index_copy_(0, columns, square)

    def _count_step(self, rates: Tensor) -> None:
        """Tell what this step did to columns that had no part in it, by the step of their last update."""
        first, second = StackedAdamW.betas
        steps, shrunk = len(self._kept), 1 - rates * self.decay
        ago = torch.arange(steps, 0, -1, dtype=torch.double).unsqueeze(1)
        moved = (first / math.sqrt(second)) ** ago * (rates * math.sqrt(self._correction(1)) / self._correction(0))
        self._kept = torch.cat([self._kept * shrunk, torch.ones_like(self._kept[:1])])
        self._carried = torch.cat([self._carried * shrunk + moved, torch.zeros_like(self._kept[:1])])
        self._since[self._columns] = steps

    def catch_up(self) -> None:
        """Make all steps of all columns."""
        for columns in torch.split(torch.arange(self.tables.shape[1]), _COLUMNS_AT_ONCE):
            faded = self._faded(columns, len(self._kept) - 1)
            for run in range(len(self.tables)):
                moments = (part[run, columns].mul_(fade) for part, fade in zip((self._mean, self._square), faded, strict=True))
                self._write(run, columns, self._caught_up(run, columns), *moments)
        self._begin()

    def keep(self, runs: Tensor, tables: Tensor) -> None:
        """Go on with some of the runs, whose tables are now ``tables``; :meth:`catch_up` comes before.

        Args:
            runs: Their places among those there are.
            tables: Their tables, ``(runs, columns, width)``.
        """
        self.tables, self.decay = tables, self.decay[runs]
        self._mean, self._square = self._mean[runs], self._square[runs]
        self._begin()
