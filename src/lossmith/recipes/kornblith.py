"""Kornblith, Lee, Chen and Norouzi, "What's in a loss function for image classification?"."""

from lossmith.objectives.published import PRESETS
from lossmith.recipes.published_recipe import PublishedLoss, PublishedRecipe

__all__ = ["RECIPES"]

PAPER = "Kornblith et al., What's in a loss function for image classification?, appendix A.1 and table A.2"
COMMON = {
    "noise": ("0",),
    "seeds": 25,
    "epochs": 200,
    "optimizer": "sgd",
    "momentum": 0.9,
    "schedule": "cosine",
    "augment": "crop,flip",
    "validation_share": 0.0,  # the settings are known
    "references": False,  # which would have no rows to be tuned on
}
UNSAID = (
    "the epochs are not published; 200",
    "how images of CIFAR were augmented is not published; crop and flip",
    "the start of the weights is not published; Kaiming normal",
)


def _losses(data: str, place: int) -> tuple[PublishedLoss, ...]:
    """Return the nine objectives with what table A.2 gives for a data set."""
    found = {name: of_data[place] for name, of_data in PRESETS.items()}
    return tuple(
        PublishedLoss(f"{name}@{data}", _rounded(each.learning_rate), _rounded(each.weight_decay)) for name, each in found.items()
    )


def _rounded(number: float) -> float:
    """The table has powers of ten; four digits of them can be read."""
    return float(f"{number:.4g}")


CIFAR_10 = PublishedRecipe(
    name="kornblith-cifar",
    summary="All-CNN-C with batch normalisation on CIFAR-10, nine objectives",
    reference=PAPER,
    data="cifar-10",
    losses=_losses("cifar-10", 0),
    settings=COMMON | {"model": "all-cnn-c", "batch_size": 128, "decay_vectors": False},
    differs=UNSAID,
)

CIFAR_100 = PublishedRecipe(
    name="kornblith-cifar-100",
    summary="Wide ResNet 16-8 on CIFAR-100, nine objectives",
    reference=PAPER,
    losses=_losses("cifar-100", 1),
    settings=COMMON | {"model": "wrn-16-8", "batch_size": 256},
    differs=UNSAID[:2],
)

RECIPES = (CIFAR_10, CIFAR_100)
