"""What must be right before training starts, so that no study fails in its third hour."""

from collections.abc import Iterable, Sequence

from torch import Tensor

from lossmith.data.prepared import PreparedData
from lossmith.expressions.limits import Limits
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote
from lossmith.losses import ClassificationLoss
from lossmith.objectives.objective import Objective
from lossmith.training.augmentation.augmentation import augmentations_of
from lossmith.training.job import Job, architecture
from lossmith.training.learning_rate_schedules import make_learning_rate_schedule
from lossmith.training.models.named_models import MODELS
from lossmith.training.recipe import Recipe
from lossmith.training.stacks.arithmetic import PRECISIONS
from lossmith.training.stacks.optimizers import OPTIMIZERS

__all__ = ["RECIPE_LIMITS", "check_jobs", "check_recipe", "check_stack"]

SELECTIONS = ("last", "best")
KEPT = ("features", "weights")
ENCODER = "encoder"

RECIPE_LIMITS = {
    "epochs": Limits(1, 1e6, whole=True),
    "batch_size": Limits(1, 1e9, whole=True),
    "momentum": Limits(0.0, 1.0, high_open=True),
    "clipping": Limits(0.0),
    "mixup": Limits(0.0),
    "averaging": Limits(0.0, 1.0, high_open=True),
    "patience": Limits(0, 1e6, whole=True),
}
"""The ranges of a recipe's numbers."""


def check_recipe(recipe: Recipe, data: PreparedData, *, own_model: bool = False) -> None:
    """Raise an error for a recipe that cannot be followed with this data.

    Args:
        recipe: How runs are to be trained.
        data: What they are to be trained on.
        own_model: Whether the user's own model is trained instead of that of the recipe.

    Raises:
        TypeError: If a number is not one.
        ValueError: If a name is unknown, a number is out of its range, or the data lacks what the recipe needs.
    """
    if not own_model:
        _check_name("model", recipe.model, MODELS)
    if data.encoder is not None and (own_model or recipe.model != ENCODER):
        got = "a model of one's own" if own_model else recipe.model
        raise ValueError(f"Recipe: model must be {ENCODER} where an encoder is trained (fine_tune), got {got}.")
    _check_name("optimizer", recipe.optimizer, OPTIMIZERS)
    _check_name("select", recipe.select, SELECTIONS)
    _check_name("precision", recipe.precision, PRECISIONS)
    for name, limits in RECIPE_LIMITS.items():
        limits.check(name, getattr(recipe, name), owner="Recipe")
    make_learning_rate_schedule(recipe.schedule, owner="Recipe").check_epochs(recipe.epochs)
    for kept in recipe.keep:
        _check_name("keep", kept, KEPT)
    if augmentations_of(recipe.augment) and data.kind != "image":
        raise ValueError(f"Recipe: augment changes images, and the inputs of {data.name} are none; got {quote(recipe.augment)}.")
    if recipe.mixup and not data.inputs.is_floating_point():
        raise ValueError(f"Recipe: mixup mixes numbers, and the inputs of {data.name} are words.")
    if not len(data.validation) and (recipe.select == "best" or recipe.patience):
        raise ValueError(f"Recipe: select='best' and patience need a validation split, and {data.name} has none.")


def _check_name(name: str, value: str, known: Iterable[str]) -> None:
    known = list(known)
    if value not in known:
        raise ValueError(f"Recipe: {name} must be one of {', '.join(known)}, got {quote(value)}{nearest(value, known)}")


def check_jobs(jobs: Sequence[Job], data: PreparedData) -> None:
    """Raise an error for a job that cannot be trained on this data.

    Args:
        jobs: The runs, with their objectives and labels.
        data: What they are to be trained on.

    Raises:
        ValueError: If labels are not class indices of the data, a learning rate is not above 0, or a loss is not reduced.
    """
    for job in jobs:
        Limits(0.0, low_open=True).check("learning_rate", job.run.learning_rate, owner=job.run.loss)
        Limits(0.0).check("weight_decay", job.run.weight_decay, owner=job.run.loss)
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
    """Raise an error for jobs that no stack can hold together.

    Args:
        jobs: The runs of the stack.

    Raises:
        ValueError: If they do not share an architecture.
    """
    kinds = {architecture(job) for job in jobs}
    if len(kinds) > 1:
        raise ValueError(f"train_stack: runs must share an architecture, got {len(kinds)}: {', '.join(map(str, kinds))}.")
