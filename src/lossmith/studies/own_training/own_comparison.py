"""Losses compared by a function of the user's own, which trains whatever it likes wherever it likes."""

import hashlib
import importlib.util
import inspect
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote
from lossmith.losses.contract.needs_data import lacking_in
from lossmith.objectives.named_objectives import make_objective
from lossmith.objectives.objective import Objective
from lossmith.studies.budget.cost import trainings_of
from lossmith.studies.comparison import Comparison
from lossmith.studies.design.settings import FEWEST_SEEDS, MOST_SEEDS
from lossmith.studies.own_training.own_replicate import OwnReplicate
from lossmith.studies.progress import ProgressDisplay, duration
from lossmith.studies.storage.store import Store
from lossmith.studies.study import Study
from lossmith.theory.fitting import fitted_to_classes
from lossmith.training.engines.engine import Shared
from lossmith.training.own.trial_task import TrainFunction

__all__ = ["OwnComparison", "function_from"]

TRIALS = "trials"
_SOME_CLASSES = 100  # whose parameters differ from those of ten classes, for losses that depend on the number


@dataclass(kw_only=True)
class OwnComparison(Comparison):
    """A study in which every trial is a call of the user's function."""

    kind_of_brought: ClassVar[str] = "train"
    function: TrainFunction

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.settings.class_weight != "none":
            how = self.settings.class_weight
            raise ValueError(f"compare: class_weight needs data that compare reads; weigh the classes in train, got {how!r}.")
        for loss in self.settings.losses:
            self._check_classes(loss)

    def _check_classes(self, loss: str) -> None:
        made = self.losses[loss] if loss in self.losses else make_objective(loss)
        trained = made.loss if isinstance(made, Objective) else made
        lacking = lacking_in(trained)
        if lacking:
            given = ", ".join(f"{name}=..." for name in lacking)
            raise ValueError(f"compare: {loss} depends on the training rows, which are those of train; give it {given}")
        if loss in self.losses or self.settings.num_classes:
            return
        if fitted_to_classes(loss, _SOME_CLASSES) != loss and "logit-bias" in loss:
            raise ValueError(f"compare: {loss} depends on the number of classes; give num_classes, or the parameter itself.")

    @cached_property
    def _shared(self) -> Shared[TrainFunction]:
        """The function as workers get it, with all that its file holds."""
        return self.engine.share(self.function)

    @property
    def name(self) -> str:
        """Of the function."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def brought(self) -> Callable[..., Any] | None:
        """The function, unless it is found again by its file."""
        return None if self.settings.data else self.function

    def fingerprint(self) -> str:
        """Return a digest of the function's name: its code may change in what matters to nobody but the user."""
        return hashlib.sha256(f"{self.settings.data} {self.name}".encode()).hexdigest()[:16]

    def about_data(self) -> dict[str, Any]:
        """Return what is known before the first trial: next to nothing."""
        rows = dict.fromkeys(("train", "validation", "test"), 0)
        return {"source": self.settings.data, "name": self.name, "rows": rows, "classes": [], "notes": []}

    def notes(self) -> list[str]:
        """Return nothing: the data is the function's."""
        return []

    def trainer(self, seed: int, store: Store) -> OwnReplicate:
        """Return what trains a replicate.

        Args:
            seed: The replicate.
            store: The study's file.

        Returns:
            The trainer.
        """
        return OwnReplicate(self.settings, seed, self._shared, self.folder / TRIALS, store, self.losses, self.engine)

    def tasks_of_replicate(self) -> int:
        """Return how many trials start together."""
        return len(self.settings.losses) * len(self.settings.tuned_noise) * self.settings.trials_of_a_cell

    def train(self, display: ProgressDisplay | None = None) -> Study:
        """Train every trial that the study lacks; with ``minutes``, as many replicates as fit, five at least."""
        if self.settings.minutes and not self.settings.seeds:
            self._plan_seeds(display or ProgressDisplay())
        if not self.settings.seeds:
            self.settings = replace(self.settings, seeds=FEWEST_SEEDS)
        return super().train(display)

    def _plan_seeds(self, display: ProgressDisplay) -> None:
        """Train the first replicate, and plan the others by its time."""
        self.settings, minutes = replace(self.settings, seeds=1), self.settings.minutes
        store, start = self._store(), time.monotonic()
        tracking = self._tracking(store, display)
        display.start("first replicate", trainings_of(self.settings), stores=True)
        try:
            self.train_replicates([0], store, display, tracking)
        finally:
            tracking.end()
        seconds = max(time.monotonic() - start, 1e-3)
        seeds = min(max(int(self.replicates_at_once() * 60 * minutes / seconds), FEWEST_SEEDS), MOST_SEEDS)
        display.note(f"{self.name}: a replicate takes about {duration(seconds)}; {seeds} are trained.")
        self.settings = replace(self.settings, seeds=seeds)

    def plan_lines(self) -> dict[str, str]:
        """Return what trains."""
        epochs = self.settings.recipe.epochs
        return {"training": f"{self.settings.data or self.name}, {epochs} epochs" if epochs else self.settings.data or self.name}

    def from_python(self) -> str:
        """Return what only the same program can bring again, in words."""
        brought = {"a training of its own": not self.settings.data, "losses of its own": self.losses}
        return " and ".join(what for what, there in brought.items() if there)

    def study(self) -> Study:
        """Return the study."""
        return Study(self.folder)


def function_from(text: str) -> TrainFunction:
    """Return the function that text names, such as ``train.py:fn``.

    Args:
        text: A Python file, a colon, and the name of a function in it.

    Returns:
        The function.

    Raises:
        ValueError: If there is no such file or function, or the file cannot be imported.
    """
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"compare: {quote(file)} must be a Python file, got none of that name.")
    known = path.stem in sys.modules
    spec = importlib.util.spec_from_file_location(f"lossmith_{path.stem}" if known else path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # so that what it defines can be sent to worker processes
    sys.path.insert(0, os.fspath(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"compare: {quote(file)} cannot be imported: {type(error).__name__}: {error}") from error
    functions = [each for each, value in inspect.getmembers(module, callable) if not each.startswith("_")]
    found = getattr(module, name, None)
    if not callable(found):
        raise ValueError(f"compare: {quote(file)} must have a function {quote(name)}, got none{nearest(name, functions)}")
    return found  # type: ignore[no-any-return]
