"""What the engine trains: a run with its objective and its labels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from lossmith.objectives.objective import Objective
from lossmith.training.recipe import Run

__all__ = ["Build", "Job"]

Build = Callable[[tuple[int, ...], int], nn.Module]
"""A user's own model: from the shape of an input and the number of classes to a module that returns logits, or to
a :class:`~lossmith.training.Backbone`, which returns features and leaves the final layer to the objective."""


@dataclass(frozen=True, eq=False)
class Job:
    """One run with all that its training needs besides the data and the recipe."""

    run: Run
    objective: Objective | nn.Module
    """What is trained; or a user's own loss, any module that turns logits and targets into a number."""
    train_labels: Tensor
    """The labels of the training rows, in their order, as the run sees them."""
    validation_labels: Tensor
    """The same for the validation rows."""
    draws: int | None = None
    """The seed of initial weights, batches and dropout, where that is not the run's own."""

    @property
    def seed(self) -> int:
        """The seed that everything drawn in training is drawn by."""
        return self.run.seed if self.draws is None else self.draws


class Architecture(NamedTuple):
    """What runs must share to be trained as one."""

    head: str
    passes: int


def architecture(job: Job) -> Architecture:
    """Return what a job must have in common with others of its stack.

    Args:
        job: A run with its objective.

    Returns:
        The final layer and the number of passes.
    """
    if not isinstance(job.objective, Objective):
        return Architecture(repr(nn.Linear), 1)
    return Architecture(repr(job.objective.head), 2 if job.objective.two_passes else 1)
