"""Recipes of papers by name."""

from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote
from lossmith.recipes import amid, battash, berrada, kornblith, staats
from lossmith.recipes.published_recipe import PublishedRecipe

__all__ = ["RECIPES", "recipe_named"]

RECIPES: dict[str, PublishedRecipe] = {
    recipe.name: recipe for paper in (amid, staats, battash, kornblith, berrada) for recipe in paper.RECIPES
}
"""Every recipe by name."""


def recipe_named(name: object) -> PublishedRecipe:
    """Return a recipe of the catalogue.

    Args:
        name: Its name.

    Returns:
        The recipe.

    Raises:
        ValueError: If there is none of that name.

    >>> recipe_named("staats-fashon")
    Traceback (most recent call last):
    ValueError: compare: recipe must be one of amid-mnist, ..., got 'staats-fashon'; did you mean 'staats-fashion'?
    """
    if not isinstance(name, str) or name not in RECIPES:
        hint = nearest(name, RECIPES) if isinstance(name, str) else "."
        raise ValueError(f"compare: recipe must be one of {', '.join(RECIPES)}, got {quote(name)}{hint}")
    return RECIPES[name]
