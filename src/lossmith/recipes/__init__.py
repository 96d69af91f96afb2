"""How papers trained, by name: network, optimiser, schedule, noise, and the losses with the settings of each."""

from lossmith.recipes.named_recipes import RECIPES, recipe_named
from lossmith.recipes.published_recipe import PublishedLoss, PublishedRecipe

__all__ = ["RECIPES", "PublishedLoss", "PublishedRecipe", "recipe_named"]


def __dir__() -> list[str]:
    return __all__
