"""Settings from what the user gives: names and values, on the command line, in a file, or in Python."""

import inspect
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from lossmith.data import load_data
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote
from lossmith.recipes import recipe_named
from lossmith.studies.design.setting_checks import checked
from lossmith.studies.design.settings import OWN, Settings
from lossmith.studies.design.usual_training import UNFINISHED
from lossmith.training.recipe import Recipe

__all__ = ["LOADING", "names_a_function", "settings_from"]

LOADING = tuple(
    name for name in inspect.signature(load_data).parameters if name not in ("source", "name", "replicate", "on_texts", "device")
)
"""The settings that say how the data is read: what the function that reads it takes."""


def names_a_function(data: object) -> bool:
    """Return whether text names a function in a Python file: ``train.py:fn``.

    >>> names_a_function("train.py:fn"), names_a_function("table.csv")
    (True, False)
    """
    return isinstance(data, str) and data.partition(":")[0].endswith(".py") and ":" in data


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Make settings from names and values, of which the recipe's and the data's stand beside the others.

    ``recipe`` is the name of a paper's recipe, which sets what is not given.

    Args:
        values: Settings by name, as they stand in a TOML file.

    Returns:
        The settings, each checked.

    Raises:
        TypeError: If a setting is of another type.
        ValueError: If a name is unknown, or a setting out of range.

    >>> settings_from({"losses": ["ce", "gce"], "epochs": 10, "target": "rating"}).recipe.epochs
    10
    """
    of_recipe = {known.name for known in fields(Recipe)}
    own = {known.name for known in fields(Settings)} - {"recipe", "loading"}
    values = _with_recipe(values)
    for name in values:
        if name not in own | of_recipe | set(LOADING):
            raise ValueError(f"compare: unknown setting {quote(name)}{nearest(name, sorted(own | of_recipe | set(LOADING)))}")
    given = {name: checked(name, value) for name, value in values.items()}
    if given.get("imbalance", "none") != "none":
        given.setdefault("metric", "balanced_accuracy")
    if names_a_function(given.get("data")):
        given["model"] = OWN
    recipe = replace(UNFINISHED, **{name: value for name, value in given.items() if name in of_recipe})
    loading = {name: value for name, value in given.items() if name in LOADING}
    return Settings(**{name: value for name, value in given.items() if name in own}, loading=loading, recipe=recipe)


def _with_recipe(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by name with all that the recipe among them sets, wherever they do not say otherwise themselves."""
    given = {name: value for name, value in values.items() if name != "recipe"}
    if "recipe" not in values:
        return given
    recipe = recipe_named(values["recipe"])
    losses = checked("losses", given["losses"]) if "losses" in given else None
    found = recipe.settings_with(given, losses)
    if "data" not in found:
        raise ValueError(f"compare: recipe {recipe.name} needs data of your own, got none.")
    return {**found, "published": recipe.name}
