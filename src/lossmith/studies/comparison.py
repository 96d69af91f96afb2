"""The comparison: from settings to the results of a study, interrupted and resumed as often as it takes.

What is the same whatever trains. :mod:`lossmith.studies.prepared_comparison` and :mod:`lossmith.studies.own_training` have
the rest.
"""

import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from torch import nn

from lossmith import __version__
from lossmith.objectives.objective import Objective
from lossmith.statistics.wording import counted
from lossmith.studies.brought import identity_of
from lossmith.studies.budget.cost import trainings_of
from lossmith.studies.design.plan_words import recipe_text, tuning_text
from lossmith.studies.design.settings import FEWEST_SEEDS, Settings
from lossmith.studies.design.settings_words import command, deviations
from lossmith.studies.progress import ProgressDisplay
from lossmith.studies.protocol.procedure import Procedure, ReplicateTrainer
from lossmith.studies.protocol.side_by_side import side_by_side
from lossmith.studies.storage.store import Store, StoreError
from lossmith.studies.storage.stored_study import stored_settings
from lossmith.studies.study import FILE, REPORT, Study
from lossmith.studies.tracking.tracker import TrackedStudy, check_installed
from lossmith.studies.tracking.tracking import Tracking
from lossmith.theory.one_thread import one_thread
from lossmith.training.engines.engine import Engine
from lossmith.training.engines.local import LocalEngine

__all__ = ["Comparison"]


@dataclass(kw_only=True)
class Comparison(ABC):
    """A study that is about to be trained, or trained further."""

    settings: Settings
    folder: Path
    losses: Mapping[str, nn.Module | Objective] = field(default_factory=dict)
    """Losses that the user brought, by the name they have in the settings."""
    engine: Engine = field(default_factory=LocalEngine)
    """What runs the trainings."""

    def __post_init__(self) -> None:
        check_installed(self.settings.track)

    @property
    @abstractmethod
    def name(self) -> str:
        """Of what losses are compared on."""

    kind_of_brought: ClassVar[str] = "model"

    @property
    @abstractmethod
    def brought(self) -> Callable[..., Any] | None:
        """The model or the training that the user brought, if any."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return by what the study knows its subject again."""

    @abstractmethod
    def about_data(self) -> dict[str, Any]:
        """Return what is known of the data: source, name, rows of each split, classes and notes."""

    @abstractmethod
    def notes(self) -> list[str]:
        """Return what a user should know before training."""

    @abstractmethod
    def trainer(self, seed: int, store: Store) -> ReplicateTrainer:
        """Return what trains a replicate."""

    @abstractmethod
    def plan_lines(self) -> dict[str, str]:
        """Return what is special about the plan, in words."""

    @abstractmethod
    def from_python(self) -> str:
        """Return what only the same program can bring again, in words."""

    @abstractmethod
    def study(self) -> Study:
        """Return the study, with what was brought at hand."""

    @property
    def shrunk(self) -> str:
        """What was made smaller to fit into the time; nothing by default."""
        return ""

    def train(self, display: ProgressDisplay | None = None) -> Study:
        """Train every run that the study lacks, replicate by replicate, and return the study."""
        display = display or ProgressDisplay()
        store = self._store()
        tracking = self._tracking(store, display)
        try:
            missing = [seed for seed in range(self.settings.seeds) if not self._is_finished(seed, store)]
            if missing:
                display.start("training", len(missing) * trainings_of(self.settings), stores=True)
            self.train_replicates(missing, store, display, tracking)
        except BaseException as end:
            tracking.end()
            if isinstance(end, KeyboardInterrupt):
                raise KeyboardInterrupt(f"stopped; {self._kept(store)}") from None
            if isinstance(end, ChildProcessError):
                raise ChildProcessError(f"{end} {self._kept(store)}") from end
            raise
        finally:
            self.engine.close()
        study = self.study()
        tracking.end(study)
        return study

    def _tracking(self, store: Store, display: ProgressDisplay) -> Tracking:
        """Return the trackers of the study, which know it again where it goes on."""
        tracking = Tracking(self.settings.track, display.note)
        known: dict[str, str] = store.meta("tracked") or {}
        told = {"data": self.settings.data or self.name, **self.settings.flat()}
        tracking.begin(
            TrackedStudy(self.folder.name, self.folder, told), known, lambda name, known_as: _remember(store, name, known_as)
        )
        return tracking

    def train_replicates(self, seeds: Sequence[int], store: Store, display: ProgressDisplay, tracking: Tracking) -> None:
        """Do what some replicates lack, as many at a time as the engine has room for.

        Args:
            seeds: The replicates.
            store: The study's file.
            display: Shows how far it is.
            tracking: Is told what was found.
        """
        turn = Lock()

        def work(seed: int) -> None:
            with turn:
                trainer = self.trainer(seed, store)
            Procedure(self.settings, seed, store, display, trainer, turn, tracking).run()

        if seeds:
            # Others compute. On a busy machine, waking threads for the small things done here took ten times as long as training.
            # It is said once for all replicates: what each set and put back, others would find in the middle of their work.
            with one_thread():
                side_by_side(work, seeds, min(self.replicates_at_once(), len(seeds)), self.engine.stop)

    def replicates_at_once(self) -> int:
        """Return how many replicates it takes to give all that the engine has something to do."""
        if self.engine.replicates == 1:
            return 1
        needed = -(-self.engine.slots(self.settings.processes) // self.tasks_of_replicate())
        return min(needed, self.engine.replicates)

    @abstractmethod
    def tasks_of_replicate(self) -> int:
        """Return about how many tasks a replicate has that do not wait for one another."""

    def _is_finished(self, seed: int, store: Store) -> bool:
        choices = store.choices()
        return all(cell in choices for cell in self.settings.cells if cell.seed == seed)

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
        if store.meta("fingerprint") != self.fingerprint():
            raise StoreError(f"{self.folder} holds a study of other data; give another --output.")
        before, now = store.meta("brought") or {}, identity_of(self.losses, self.brought, self.kind_of_brought)
        other = [name for name in before if now.get(name) != before[name]]
        if other:
            raise StoreError(
                f"{self.folder} holds a study with another {', '.join(other)} of the same name; give another --output."
            )

    def _about(self) -> dict[str, Any]:
        return {
            "settings": self.settings.as_json(),
            "data": self.about_data(),
            "fingerprint": self.fingerprint(),
            "shrunk": self.shrunk,
            "versions": _versions(),
            "command": command(self.settings, self.folder),
            "from_python": self.from_python(),
            "brought": identity_of(self.losses, self.brought, self.kind_of_brought),
            "directory": os.getcwd(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def describe(self) -> str:
        """Return the plan in words: what is trained, how long it will take, and what is written."""
        settings, own = self.settings, self.plan_lines()
        lines = {
            "data": own.pop("data", ""),
            "notes": "\n          ".join(self.notes()),
            "recipe": recipe_text(settings),
            "differs": "\n          ".join(deviations(settings)),
            "losses": ", ".join(settings.losses),
            "noise": ", ".join(settings.noise),
            "training": own.pop("training", ""),
            "tuning": tuning_text(settings),
            "repeats": f"{counted(settings.seeds or FEWEST_SEEDS, 'replicate')} of the whole procedure, each with its own split",
            **own,
            "writes": f"{self.folder / FILE}, {self.folder / REPORT}",
        }
        return "\n".join(f"{name:8}  {line}" for name, line in lines.items() if line)

    def _kept(self, store: Store) -> str:
        done = (
            f"{counted(len(store.finished()), 'run')} and {len(store.choices())} of {len(self.settings.cells)} results are stored"
        )
        return f"{done}. Go on with: lossmith resume {self.folder}"


def _remember(store: Store, tracker: str, known_as: str) -> None:
    """Keep by what a tracker knows the study."""
    store.set_meta("tracked", {**(store.meta("tracked") or {}), tracker: known_as})


def _extends(value: Any, stored: Any, name: str) -> bool:
    """Return whether a setting is what it was, or more of it where more can be added."""
    if name in ("cache", "track"):  # make no difference to what is found
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
