"""Settings in words: the command that does a study again, and where it differs from a paper."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from lossmith.recipes import recipe_named
from lossmith.studies.design.given_settings import settings_from
from lossmith.studies.design.settings import Settings
from lossmith.studies.design.usual_training import AUTO

__all__ = ["command", "deviations"]

OPEN: tuple[object, ...] = (0, "", AUTO, (), {})
"""What stands for a setting that is found when the data is known."""


def command(settings: Settings, output: Path) -> str:
    """Return the command that does a study again.

    Args:
        settings: Those of the study.
        output: Its folder.

    Returns:
        A line for a shell.

    >>> command(settings_from({"recipe": "staats-fashion", "epochs": 10}), Path("mine"))
    'lossmith compare fashion-mnist --recipe staats-fashion --epochs 10 --output mine'
    """
    default = (_as_published(settings) if settings.published else Settings(data=settings.data)).flat()
    if settings.is_own:  # the function says so by itself
        default |= {"model": settings.recipe.model, "references": settings.references}
    words = ["lossmith", "compare", settings.data, *(["--recipe", settings.published] if settings.published else [])]
    for name, value in settings.flat().items():
        if value == default.get(name) or value in ((), {}):  # what is open cannot be written
            continue
        option = name.replace("_", "-")
        words += [f"--{option}"] if value is True else [f"--no-{option}"] if value is False else [f"--{option}", _written(value)]
    return shlex.join([*words, "--output", os.fspath(output)])


def deviations(settings: Settings) -> list[str]:
    """Return where a study differs from the paper whose recipe it follows.

    Args:
        settings: Those of the study.

    Returns:
        What the recipe says of itself, and every setting that is another; nothing where the study follows no recipe.

    >>> deviations(settings_from({"recipe": "staats-fashion", "epochs": 10}))[-1]
    'epochs: 10 instead of 100'
    """
    if not settings.published:
        return []
    said = {name: value for name, value in _as_published(settings).flat().items() if value is False or value not in OPEN}
    changed = {name: value for name, value in settings.flat().items() if name in said and said[name] != value}
    return [
        *recipe_named(settings.published).differs,
        *(f"{name}: {_written(value) or 'none'} instead of {_written(said[name])}" for name, value in changed.items()),
        *([f"train_rows: {settings.train_rows} instead of all"] if settings.train_rows else []),
    ]


def _as_published(settings: Settings) -> Settings:
    """Return what the recipe of the paper says for the same data."""
    return settings_from({"data": settings.data, "recipe": settings.published})


def _written(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={number}" for name, numbers in value.items() for number in numbers)
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
