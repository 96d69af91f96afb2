"""The comparison: from settings and data to the results of a study, interrupted and resumed as often as it takes."""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import nn

from lossmith import __version__
from lossmith.data import PreparedData
from lossmith.expressions.limits import is_whole
from lossmith.expressions.quotes import quote
from lossmith.objectives.named_objectives import make_objective
from lossmith.objectives.objective import Objective
from lossmith.recipes import recipe_named
from lossmith.statistics.wording import counted, spoken
from lossmith.studies.brought import identity_of
from lossmith.studies.cost import measured_cost, trainings_of
from lossmith.studies.procedure import Procedure
from lossmith.studies.progress import ProgressDisplay, duration
from lossmith.studies.rehearsal import warnings_about
from lossmith.studies.replicates import Replicates, overlap_of
from lossmith.studies.settings import Settings
from lossmith.studies.settings_words import command, deviations
from lossmith.studies.storage.store import Store, StoreError
from lossmith.studies.storage.stored_study import stored_settings
from lossmith.studies.study import FILE, REPORT, Study
from lossmith.studies.time_plan import TimePlan, plan_in_time
from lossmith.theory.fitting import fitted_to_classes
from lossmith.training.job import Build
from lossmith.training.recipe import Recipe

__all__ = ["Comparison"]


@dataclass
class Comparison:
    """A study that is about to be trained, or trained further."""

    settings: Settings
    data: PreparedData
    folder: Path
    losses: Mapping[str, nn.Module | Objective] = field(default_factory=dict)
    """Losses that the user brought, by the name they have in the settings."""
    build: Build | None = None
    """The user's own model."""
    workers: int | None = None
    source: Any = None
    """What the data of further replicates is read from; by default what the settings name."""
    reading: Settings | None = None
    """The settings with paths as they are found from here, where a study is gone on with elsewhere; by default as they are."""
    plan: TimePlan | None = None
    """What the study was found to cost."""

    def __post_init__(self) -> None:
        if self.workers is not None and (not is_whole(self.workers) or self.workers < 1):
            raise ValueError(f"compare: workers must be a whole number >= 1, got {quote(self.workers)}.")
        if self.source is None:
            self.source = self.settings.data

    def train(self, display: ProgressDisplay | None = None) -> Study:
        """Train every run that the study lacks, replicate by replicate, and return the study."""
        display = display or ProgressDisplay()
        store = self._store()
        replicates = Replicates(self.reading or self.settings, self.source, self.data)
        try:
            missing = [seed for seed in range(self.settings.seeds) if not self._is_finished(seed, store)]
            if missing:
                display.start("training", len(missing) * trainings_of(self.settings), stores=True)
            for seed in missing:
                self._train(seed, replicates, store, display)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"stopped; {self._kept(store)}") from None
        except ChildProcessError as death:
            raise ChildProcessError(f"{death} {self._kept(store)}") from death
        return Study(self.folder, self.source, self.build)

    def _is_finished(self, seed: int, store: Store) -> bool:
        choices = store.choices()
        return all(cell in choices for cell in self.settings.cells if cell.seed == seed)

    def _train(self, seed: int, replicates: Replicates, store: Store, display: ProgressDisplay) -> None:
        data = replicates.data(seed)
        if seed == 1 and store.meta("overlap") is None:
            found = overlap_of(self.data, data)
            store.set_meta("overlap", [found.ratio, found.rows])
        Procedure(self.settings, data, seed, store, display, self.losses, self.build, self.workers).run()

    def _store(self) -> Store:
        """Open the study's file, or make it, unless another process just did."""
        file = self.folder / FILE
        with suppress(StoreError):
            return Store.create(file, self._about())
        self.check_folder()
        store = Store(file)
        if self.settings != stored_settings(store):
            # What the first plan made smaller is as small in what is added to it.
            for name, value in {**self._about(), "shrunk": store.meta("shrunk") or ""}.items():
                store.set_meta(name, value)
        return store

    def make_plan(self, asked: Recipe) -> None:
        """Measure what the study costs, and fill in what the user left open so that it fits into the time there is."""
        cost = measured_cost(self.settings, self.data, self.objectives(), build=self.build, workers=self.workers)
        self.plan = plan_in_time(self.settings, cost, asked=asked)
        self.settings = self.plan.settings

    def check_folder(self) -> None:
        """Raise an error if the folder holds another study, which is left as it is.

        The same study may have been smaller: seeds, losses and noises can be added.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError(f"{self.folder} must be a folder, got a file.")
        if not (self.folder / FILE).exists():
            return
        store = Store(self.folder / FILE)
        stored = stored_settings(store)
        changed = [name for name, value in self.settings.flat().items() if not _extends(value, stored.flat().get(name), name)]
        if changed:
            raise StoreError(f"{self.folder} holds a study with other {', '.join(changed)}; give another --output.")
        if store.meta("fingerprint") != self.data.fingerprint():
            raise StoreError(f"{self.folder} holds a study of other data; give another --output.")
        before, now = store.meta("brought") or {}, identity_of(self.losses, self.build)
        other = [name for name in before if now.get(name) != before[name]]
        if other:
            raise StoreError(
                f"{self.folder} holds a study with another {', '.join(other)} of the same name; give another --output."
            )

    def _about(self) -> dict[str, Any]:
        data = self.data
        rows = {name: len(getattr(data, name)) for name in ("train", "validation", "test")}
        return {
            "settings": self.settings.as_json(),
            "data": {"source": self.settings.data, "name": data.name, "rows": rows, "classes": data.classes, "notes": data.notes},
            "fingerprint": data.fingerprint(),
            "shrunk": self.plan.shrunk if self.plan else "",
            "versions": _versions(),
            "command": command(self.settings, self.folder),
            "from_python": self._brought_from_python(),
            "brought": identity_of(self.losses, self.build),
            "directory": os.getcwd(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def _brought_from_python(self) -> str:
        """Return what only the same program can bring again, in words."""
        brought = {"a model of its own": self.build, "losses of its own": self.losses, "data of its own": not self.settings.data}
        return " and ".join(what for what, there in brought.items() if there)

    def describe(self) -> str:
        """Return the plan in words: what is trained, how long it will take, and what is written."""
        settings, data, recipe = self.settings, self.data, self.settings.recipe
        parts = ", ".join(f"{len(getattr(data, part))} {part}" for part in ("train", "validation", "test"))
        lines = {
            "data": f"{data.name}: {parts} rows of shape {data.input_shape}, {data.num_classes} classes",
            "notes": "\n          ".join(self.notes()),
            "recipe": _recipe_text(settings),
            "differs": "\n          ".join(deviations(settings)),
            "losses": ", ".join(settings.losses),
            "noise": ", ".join(settings.noise),
            "training": f"{recipe.model}, {recipe.epochs} epochs of batches of {recipe.batch_size}, {recipe.optimizer}",
            "tuning": self._tuning_text(),
            "repeats": f"{counted(settings.seeds, 'replicate')} of the whole procedure, each with its own split",
            "time": self._time_text(),
            "shrunk": self.plan.shrunk if self.plan else "",
            "writes": f"{self.folder / FILE}, {self.folder / REPORT}",
        }
        return "\n".join(f"{name:8}  {line}" for name, line in lines.items() if line)

    def _time_text(self) -> str:
        if not self.plan:
            return ""
        return ", ".join(filter(None, (f"about {duration(self.plan.seconds)}", self.plan.too_long)))

    def _tuning_text(self) -> str:
        settings = self.settings
        if not settings.searched:
            return _given_settings_text(settings)
        decays = max(len(settings.decays_of(loss)) for loss in settings.losses)  # 0 where they are drawn
        drawn = not settings.gives_rates and decays == 0
        what = "learning rate and weight decay" if drawn or decays > 1 else "learning rate"
        also = " and parameters of the loss" if "parameters" in settings.tune else ""
        where = "on clean labels" if settings.tune_on == "clean" else "at each noise on rows as noisy"
        return f"{settings.trials_of_a_cell} trials of {what}{also} for each loss, chosen {where} by {spoken(settings.metric)}"

    def objectives(self) -> dict[str, nn.Module | Objective]:
        """Return what is trained, by the name it has in the settings."""
        return {
            loss: self.losses[loss] if loss in self.losses else make_objective(fitted_to_classes(loss, self.data.num_classes))
            for loss in self.settings.losses
        }

    def notes(self) -> list[str]:
        """Return what a user should know before training: about the data, and about what will hardly work."""
        return [*self.data.notes, *warnings_about(self.settings, self.data)]

    def _kept(self, store: Store) -> str:
        done = (
            f"{counted(len(store.finished()), 'run')} and {len(store.choices())} of {len(self.settings.cells)} results are stored"
        )
        return f"{done}. Go on with: lossmith resume {self.folder}"


def _given_settings_text(settings: Settings) -> str:
    """Return the learning rate and weight decay of each loss, where there is only one."""
    if not settings.gives_rates:
        return ""
    of_losses = {loss: (settings.rates_of(loss)[0], *(settings.decays_of(loss) or (0.0,))) for loss in settings.losses}
    texts = {loss: f"learning rate {rate:g}, weight decay {decay:g}" for loss, (rate, decay) in of_losses.items()}
    if len(set(texts.values())) == 1:
        return f"none: {texts[settings.losses[0]]}"
    return "none:\n          " + "\n          ".join(f"{loss}: {text}" for loss, text in texts.items())


def _recipe_text(settings: Settings) -> str:
    if not settings.published:
        return ""
    recipe = recipe_named(settings.published)
    return f"{recipe.name}: {recipe.summary}\n          {recipe.reference}"


def _extends(value: Any, stored: Any, name: str) -> bool:
    """Return whether a setting is what it was, or more of it where more can be added."""
    if name == "cache":  # makes no difference to what is found
        return True
    if name == "seeds":
        return bool(value >= stored)
    if name in ("loss_rates", "loss_decays"):
        return bool({**(stored or {}), **value} == value)
    if name in ("losses", "noise"):
        return tuple(value[: len(stored)]) == tuple(stored)
    return bool(value == stored)


def _versions() -> dict[str, str]:
    """Return the versions of everything that computes."""
    libraries = {name: version(name) for name in ("torch", "numpy", "scikit-learn", "pandas")}
    return {"lossmith": __version__, **libraries, "python": platform.python_version(), "machine": platform.machine()}
