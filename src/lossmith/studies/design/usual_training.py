"""How a model is trained where the user leaves it open: one table for optimiser, schedule, epochs and what is tuned within."""

import math
from dataclasses import replace
from typing import NamedTuple

from lossmith.torch_compat import has_native_bfloat16
from lossmith.training.recipe import Recipe

__all__ = [
    "AUTO",
    "UNFINISHED",
    "completed_recipe",
    "decay_range",
    "rate_range",
    "suitable_augmentation",
    "suitable_batch_size",
    "suitable_epochs",
    "suitable_precision",
    "untuned_decay",
]

AUTO = "auto"
"""Stands for what suits the data, or the model."""
UNFINISHED = Recipe(model=AUTO, epochs=0, batch_size=0, optimizer=AUTO, schedule=AUTO, augment=AUTO, precision=AUTO)
"""The recipe in which all that depends on the data is open."""

Interval = tuple[float, float]
"""The smallest and the largest number that is tried."""

RATES: dict[str, Interval] = {"sgd": (0.003, 0.5), "adadelta": (0.1, 3.0)}
ADAPTIVE_RATES: Interval = (1e-4, 2e-2)
"""The range of learning rates of each optimizer, and of all others: wide, as the best rate depends on loss, data and noise."""
DECAYS: dict[str, Interval] = {"adamw": (1e-3, 1.0)}
USUAL_DECAYS: Interval = (1e-5, 1e-2)
"""The same of weight decays."""

BFLOAT16 = ("small-cnn", "mlp1024")
"""Models that gain by bfloat16 and were measured to lose nothing by it (``python -m evidence.precision``)."""
PHOTOGRAPHS: dict[str, str] = {"cifar-10": "crop,flip", "cifar-10n": "crop,flip"}
"""Known data that is the same seen from the other side and a little moved; of other data that is for the user to know."""

_ROWS_OF_40_EPOCHS, _MOST_EPOCHS = 650, 200


class Habit(NamedTuple):
    """How a model is usually trained."""

    optimizer: str = "sgd"
    schedule: str = "cosine"
    epochs: float = 1.0
    """A factor of the epochs that suit the number of rows."""
    fewest_epochs: int = 8
    batch_size: int = 0
    """0 where it depends on the number of rows."""
    clipping: float = 0.0
    rates: Interval | None = None
    """Learning rates that are tried with this optimizer, where they are others than for most models."""
    decays: Interval | None = None
    """The same of weight decays."""
    untuned_decay: float = 0.0
    """The weight decay where none is searched for; 0 for the middle of the range."""


USUAL = Habit()
HABITS: dict[str, Habit] = {
    # Decays up to 60: with many wrong labels cross-entropy needs them, and a range that ends at 1 makes other losses look better.
    "tabular": Habit("adamw", epochs=1.5, rates=(3e-4, 2e-2), decays=(0.03, 60.0), untuned_decay=0.03),
    # Large decays keep it from learning wrong labels by heart: n-grams tell any text from all others. Below 1 they are like none.
    "bag": Habit("adamw", epochs=0.6, rates=(5e-4, 2e-2), decays=(1.0, 20.0)),
    # Its best decay is near 1 for clean labels, and twenty times as large where labels are wrong and classes few.
    "hidden": Habit("adamw", rates=(3e-4, 1e-2), decays=(0.3, 40.0)),
    # Few epochs from weights that know a language already, small steps that begin smaller still: Devlin et al. 2019.
    "encoder": Habit("adamw", "warmup-cosine", 0.2, 3, batch_size=32, clipping=1.0, rates=(1e-5, 3e-4), decays=(1e-3, 0.1)),
}
"""By the name of a model; all others, and a user's own, are trained as usual."""


def completed_recipe(recipe: Recipe, model: str, train_rows: int, augment: str = "none") -> Recipe:
    """Return a recipe with everything filled in that was left open.

    Args:
        recipe: What the user gave.
        model: The one that suits the data.
        train_rows: How many rows are trained on.
        augment: How images of the data may be changed.

    Returns:
        A recipe that can be followed.
    """
    model = model if recipe.model == AUTO else recipe.model
    habit = HABITS.get(model, USUAL)
    return replace(
        recipe,
        model=model,
        optimizer=habit.optimizer if recipe.optimizer == AUTO else recipe.optimizer,
        schedule=habit.schedule if recipe.schedule == AUTO else recipe.schedule,
        epochs=recipe.epochs or suitable_epochs(train_rows, model),
        batch_size=recipe.batch_size or habit.batch_size or suitable_batch_size(train_rows),
        clipping=recipe.clipping or habit.clipping,
        augment=augment if recipe.augment == AUTO else recipe.augment,
        precision=suitable_precision(model) if recipe.precision == AUTO else recipe.precision,
    )


def suitable_epochs(train_rows: int, model: str = "") -> int:
    """Return how long to train, unless told: few rows need more epochs, many rows fewer.

    >>> suitable_epochs(100), suitable_epochs(1168), suitable_epochs(50_000)
    (101, 29, 8)
    """
    habit = HABITS.get(model, USUAL)
    epochs = int(40 * habit.epochs * (_ROWS_OF_40_EPOCHS / max(train_rows, 1)) ** 0.5)
    return min(max(epochs, habit.fewest_epochs), _MOST_EPOCHS)


def suitable_batch_size(train_rows: int) -> int:
    """Return how many rows a batch has, unless told.

    >>> suitable_batch_size(100), suitable_batch_size(1168), suitable_batch_size(50_000)
    (32, 64, 128)
    """
    return 32 if train_rows < 1000 else 64 if train_rows < 20_000 else 128


def suitable_augmentation(name: str) -> str:
    """Return how images are changed in training, unless told: known photographs are, and nothing else.

    Digits and letters are others in the mirror, and what may be cut off an image only its owner knows.

    >>> suitable_augmentation("cifar-10n:worst"), suitable_augmentation("mnist")
    ('crop,flip', 'none')
    """
    return PHOTOGRAPHS.get(name.partition(":")[0], "none")


def suitable_precision(model: str) -> str:
    """Return in which precision a model computes, unless told: bfloat16 where it was tried and seen to do no harm.

    That is so for a few networks, on a processor that has instructions for it. All others, and a model of the user's own, stay
    in single precision.

    >>> suitable_precision("mlp"), suitable_precision("lstm")
    ('float32', 'float32')
    """
    return "bfloat16" if model in BFLOAT16 and has_native_bfloat16() else "float32"


def rate_range(recipe: Recipe) -> Interval:
    """Return the learning rates that are tried: those of the model with its own optimizer, else those of the optimizer.

    >>> rate_range(Recipe(model="mlp", optimizer="adam"))
    (0.0001, 0.02)
    """
    return _own(recipe).rates or RATES.get(recipe.optimizer, ADAPTIVE_RATES)


def decay_range(recipe: Recipe) -> Interval:
    """Return the weight decays that are tried, likewise.

    >>> decay_range(Recipe(model="mlp", optimizer="adamw"))
    (0.001, 1.0)
    """
    return _own(recipe).decays or DECAYS.get(recipe.optimizer, USUAL_DECAYS)


def untuned_decay(recipe: Recipe) -> float:
    """Return the weight decay of a training for which none is searched.

    >>> untuned_decay(Recipe(model="tabular", optimizer="adamw")), round(untuned_decay(Recipe(model="mlp", optimizer="adamw")), 4)
    (0.03, 0.0316)
    """
    return _own(recipe).untuned_decay or math.sqrt(math.prod(decay_range(recipe)))


def _own(recipe: Recipe) -> Habit:
    habit = HABITS.get(recipe.model, USUAL)
    return habit if habit.optimizer == recipe.optimizer else USUAL
