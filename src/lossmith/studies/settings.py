"""What a study is to do, as it is written on the command line, in a file, or in Python."""

import inspect
import os
import shlex
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from lossmith.data import load_data, make_noise
from lossmith.expressions.limits import is_whole
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote, shortened
from lossmith.objectives.named_objectives import make_objective
from lossmith.objectives.schedules import Schedule
from lossmith.studies.setting_checks import checked, split_list
from lossmith.training.recipe import Recipe

__all__ = ["Settings", "read_settings", "settings_from", "split_list"]

LOSSES = ("ce", "focal", "label-smoothing", "ce-el", "sce", "gce", "bi-tempered", "nce-mae", "mae")
"""The losses that are compared unless others are named; and the last one with a logit bias for the number of classes."""
RATES = {"sgd": (0.003, 0.01, 0.03, 0.1, 0.3), "adadelta": (0.1, 0.3, 1.0, 3.0)}
ADAPTIVE_RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
_LONGEST_FILE = 2**20  # bytes; a study is written in a few hundred
MOST_RUNS = 1_000_000
"""The trainings of one study."""
AUTO = "auto"
"""Stands for the model that suits the data."""
LOADING = tuple(name for name in inspect.signature(load_data).parameters if name not in ("source", "name"))
"""The settings that say how the data is read: what the function that reads it takes."""


@dataclass(frozen=True)
class Settings:
    """A study: data, losses, label noise, seeds, and how each run is trained."""

    data: str = "digits"
    losses: tuple[str, ...] = ()
    """The first is the baseline. None stands for a sensible set."""
    noise: tuple[str, ...] = ("0", "0.2", "0.4")
    seeds: int = 5
    rates: tuple[float, ...] = ()
    """The learning rates that are tried for each loss; one is taken as it is. By default a grid for the optimizer."""
    search_seeds: int = 2
    """Runs of each learning rate that the choice is made by."""
    search_noise: str = "first"
    """Where learning rates are chosen: on the ``first`` noise, for all, as Staats, Thamm and Rosenow do on clean labels; or on
    ``each`` for itself."""
    clean_validation: bool = False
    """Whether the validation split keeps its labels where the training split's are corrupted."""
    loading: Mapping[str, Any] = field(default_factory=dict)
    recipe: Recipe = field(default_factory=lambda: Recipe(model=AUTO))

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "losses", tuple(self.losses))
        set_(self, "noise", tuple(dict.fromkeys(repr(make_noise(noise)) for noise in self.noise)))
        set_(self, "rates", tuple(float(rate) for rate in self.rates) or RATES.get(self.recipe.optimizer, ADAPTIVE_RATES))
        self._check()

    def _check(self) -> None:
        if not self.noise:
            raise ValueError("compare: noise must name at least one, got none.")
        (often, times), *_ = Counter(self.losses).most_common(1) or [("", 0)]
        if times > 1:
            raise ValueError(f"compare: losses must differ, got {quote(often)} twice.")
        for name in ("seeds", "search_seeds"):
            if not is_whole(getattr(self, name)) or getattr(self, name) < 1:
                raise ValueError(f"compare: {name} must be a whole number >= 1, got {quote(getattr(self, name))}.")
        if self.search_noise not in ("first", "each"):
            raise ValueError(f"compare: search_noise must be 'first' or 'each', got {quote(self.search_noise)}.")
        if not all(rate > 0 for rate in self.rates):
            raise ValueError(f"compare: rates must be > 0, got {min(self.rates)!r}.")
        if self.planned() > MOST_RUNS:
            raise ValueError(
                f"compare: a study must have {MOST_RUNS:,} runs at most, got {quote(self.planned())}; take fewer seeds."
            )

    def completed(self, model: str, num_classes: int) -> "Settings":
        """Return the settings with what depends on the data filled in: the model and the losses, where none are named."""
        recipe = replace(self.recipe, model=model) if self.recipe.model == AUTO else self.recipe
        losses = self.losses or (*LOSSES, f"logit-bias({LOSSES[-1]}, num_classes={num_classes})")
        return replace(self, recipe=recipe, losses=losses)

    @property
    def searched(self) -> bool:
        """Return whether there is a learning rate to choose."""
        return len(self.rates) > 1

    @property
    def searched_noise(self) -> tuple[str, ...]:
        """The noises on which learning rates are chosen."""
        return self.noise if self.search_noise == "each" else self.noise[:1]

    def planned(self) -> int:
        """Return the number of runs: those of the search, and those that count and were not among them."""
        search = len(self.searched_noise) * len(self.rates) * self.search_seeds
        both = len(self.searched_noise) * min(self.seeds, self.search_seeds)
        return len(self.losses) * (search + len(self.noise) * self.seeds - both)

    def as_json(self) -> dict[str, Any]:
        """Return the settings in plain numbers, text, lists and dictionaries."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Settings":
        """Return the settings that :meth:`as_json` gave."""
        recipe = Recipe(**{**stored["recipe"], "keep": tuple(stored["recipe"]["keep"])})
        return cls(**{**stored, "recipe": recipe})

    def check_objectives(self, own: Mapping[str, Any]) -> None:
        """Raise an error for a loss that nobody knows, neither the catalogue nor the user, or whose schedules do not fit."""
        known: dict[str, str] = {}
        for loss in self.losses:
            if loss not in own:
                objective = make_objective(loss)
                for schedule in objective.schedules.values():
                    assert isinstance(schedule, Schedule)
                    schedule.check_total(self.recipe.epochs)
                same = known.setdefault(repr(replace(objective, name="same")), loss)
                if same != loss:
                    raise ValueError(f"compare: losses must differ, got {quote(same)} and {quote(loss)}, which are the same.")

    def command(self, output: Path) -> str:
        """Return the command that does this study again."""
        default = Settings(data=self.data)
        changed = {name: value for name, value in self.flat().items() if value != default.flat().get(name)}
        words = ["lossmith", "compare", self.data]
        for name, value in changed.items():
            option = f"--{name.replace('_', '-')}"
            words += [option] if value is True else [option, _written(value)]
        return shlex.join([*words, "--output", os.fspath(output)])

    def flat(self) -> dict[str, Any]:
        """Return every setting but the data by the name it has in a file and on the command line."""
        own = {name: value for name, value in vars(self).items() if name not in ("data", "loading", "recipe")}
        return {**own, **self.loading, **vars(self.recipe)}


def _written(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Make settings from names and values, of which the recipe's and the data's stand beside the others.

    >>> settings_from({"losses": ["ce", "gce"], "epochs": 10, "target": "rating"}).recipe.epochs
    10
    """
    of_recipe = {known.name for known in fields(Recipe)}
    own = {known.name for known in fields(Settings)} - {"recipe", "loading"}
    for name in values:
        if name not in own | of_recipe | set(LOADING):
            raise ValueError(f"compare: unknown setting {quote(name)}{nearest(name, sorted(own | of_recipe | set(LOADING)))}")
    given = {name: checked(name, value) for name, value in values.items()}
    recipe = Recipe(**{"model": AUTO, **{name: value for name, value in given.items() if name in of_recipe}})
    loading = {name: value for name, value in given.items() if name in LOADING}
    return Settings(**{name: value for name, value in given.items() if name in own}, loading=loading, recipe=recipe)


def read_settings(file: Path) -> dict[str, Any]:
    """Read a study that is written down in TOML. Paths in it are relative to the file.

    Args:
        file: The file.

    Returns:
        The settings by name, as :func:`settings_from` takes them.

    Raises:
        ValueError: If the file is no TOML.
    """
    values = _toml(file)
    for name in ("data", "test", "validation"):
        written = values.get(name)
        if isinstance(written, str) and "\0" not in written and (file.parent / written).exists():
            values[name] = os.fspath(file.parent / written)
    return values


def _toml(file: Path) -> dict[str, Any]:
    if file.is_fifo():  # which would never end
        raise ValueError(f"{file}: must be a file, got a pipe.")
    if file.is_file() and file.stat().st_size > _LONGEST_FILE:
        raise ValueError(f"{file}: a study must be written in {_LONGEST_FILE:,} bytes at most, got {file.stat().st_size:,}.")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{file}: must be UTF-8 text, got something else.") from None
    except ValueError as error:
        raise ValueError(f"{file}: {shortened(str(error))}") from error
    except RecursionError:
        raise ValueError(f"{file}: too many brackets within one another.") from None
