"""What must be right before training starts, so that no study fails in its third hour."""

from collections.abc import Iterable, Sequence

from torch import Tensor

from lossmith.data.prepared import PreparedData
from lossmith.experiments.job import Job, architecture
from lossmith.experiments.learning_rates import LEARNING_RATE_SCHEDULES
from lossmith.experiments.models import MODELS
from lossmith.experiments.optimizers import OPTIMIZERS
from lossmith.experiments.plan import Recipe
from lossmith.losses import ClassificationLoss
from lossmith.losses.limits import Limits
from lossmith.nearest import nearest
from lossmith.objectives import Objective

__all__ = ["check_jobs", "check_recipe", "check_stack"]

SELECTIONS = ("last", "best")
KEPT = ("features", "weights")

_NUMBERS = {
    "epochs": Limits(1, whole=True),
    "batch_size": Limits(1, whole=True),
    "momentum": Limits(0.0, 1.0, high_open=True),
    "weight_decay": Limits(0.0),
    "mixup": Limits(0.0),
    "averaging": Limits(0.0, 1.0, high_open=True),
    "patience": Limits(0, whole=True),
}


def check_recipe(recipe: Recipe, data: PreparedData, *, own_model: bool = False) -> None:
    """Raise an error for a recipe that cannot be followed with this data.

    ``own_model`` says that the user's own model is trained, and not that of the recipe.
    """
    if not own_model:
        _check_name("model", recipe.model, MODELS)
    _check_name("optimizer", recipe.optimizer, OPTIMIZERS)
    _check_name("schedule", recipe.schedule, LEARNING_RATE_SCHEDULES)
    _check_name("select", recipe.select, SELECTIONS)
    for name, limits in _NUMBERS.items():
        limits.check(name, getattr(recipe, name), owner="Recipe")
    for kept in recipe.keep:
        _check_name("keep", kept, KEPT)
    if recipe.mixup and not data.inputs.is_floating_point():
        raise ValueError(f"Recipe: mixup mixes numbers, and the inputs of {data.name} are words.")
    if own_model and "features" in recipe.keep:
        raise ValueError("Recipe: keep='features' needs a model by name; others do not say what their final layer sees.")
    if not len(data.validation) and (recipe.select == "best" or recipe.patience):
        raise ValueError(f"Recipe: select='best' and patience need a validation split, and {data.name} has none.")


def _check_name(name: str, value: str, known: Iterable[str]) -> None:
    known = list(known)
    if value not in known:
        raise ValueError(f"Recipe: {name} must be one of {', '.join(known)}, got {value!r}{nearest(value, known)}")


def check_jobs(jobs: Sequence[Job], data: PreparedData) -> None:
    """Raise an error for a job that cannot be trained on this data."""
    for job in jobs:
        Limits(0.0, low_open=True).check("learning_rate", job.run.learning_rate, owner=job.run.loss)
        _check_labels(job.run.loss, "train_labels", job.train_labels, len(data.train), data.num_classes)
        _check_labels(job.run.loss, "validation_labels", job.validation_labels, len(data.validation), data.num_classes)
        loss = job.objective.loss if isinstance(job.objective, Objective) else job.objective
        if isinstance(loss, ClassificationLoss) and loss.reduction == "none":
            raise ValueError(f"{job.run.loss}: reduction must be 'mean' or 'sum' to train with, got 'none'.")


def _check_labels(owner: str, name: str, labels: Tensor, rows: int, num_classes: int) -> None:
    if labels.shape != (rows,) or labels.is_floating_point():
        raise ValueError(f"{owner}: {name} must be {rows} class indices, got {labels.dtype} of shape {tuple(labels.shape)}.")
    if rows and not 0 <= int(labels.min()) <= int(labels.max()) < num_classes:
        raise ValueError(f"{owner}: {name} must be in [0, {num_classes}), got {int(labels.min())} to {int(labels.max())}.")


def check_stack(jobs: Sequence[Job]) -> None:
    """Raise an error for jobs that no stack can hold together."""
    kinds = {architecture(job) for job in jobs}
    if len(kinds) > 1:
        raise ValueError(f"train_stack: runs must share an architecture, got {len(kinds)}: {', '.join(map(str, kinds))}.")
