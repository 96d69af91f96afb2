"""The comparison: from settings and data to the results of a study, interrupted and resumed as often as it takes."""

import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from torch import Tensor, nn

from lossmith import __version__
from lossmith.data import PreparedData, make_noise, realised
from lossmith.expressions.limits import is_whole
from lossmith.expressions.quotes import quote
from lossmith.objectives.named_objectives import make_objective
from lossmith.objectives.objective import Objective
from lossmith.statistics.wording import counted
from lossmith.studies.brought import identity_of
from lossmith.studies.measures import measures_of
from lossmith.studies.progress import ProgressDisplay, duration
from lossmith.studies.rehearsal import warnings_about
from lossmith.studies.settings import Settings
from lossmith.studies.store import Store, StoreError
from lossmith.studies.stored_study import planned_runs, stored_settings
from lossmith.studies.study import FILE, REPORT, Study
from lossmith.studies.tuning import chosen_rates, final_runs, search_runs
from lossmith.training.job import Build, Job
from lossmith.training.recipe import Run
from lossmith.training.workers import Progress, train_all

__all__ = ["Comparison"]

SAMPLE = 16  # runs that the cost is estimated by
SAMPLE_ROWS, SAMPLE_BATCHES = 32_000, 100  # that are trained on for it, at least
QUICK = 0.5  # seconds of an epoch, below which a sample is worth its time


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

    def __post_init__(self) -> None:
        if self.workers is not None and (not is_whole(self.workers) or self.workers < 1):
            raise ValueError(f"compare: workers must be a whole number >= 1, got {quote(self.workers)}.")

    def train(self, display: ProgressDisplay | None = None) -> Study:
        """Train every run that the study lacks, and return the study."""
        display = display or ProgressDisplay()
        store = self._store()
        settings, search = self.settings, search_runs(self.settings)
        try:
            if settings.searched:
                self._train("choosing learning rates", search, store, display)
                chosen = final_runs(settings, chosen_rates(settings, planned_runs(store, settings)))
                self._train("training", [run for run in chosen if run not in set(search)], store, display)
            else:
                rates = dict.fromkeys(product(settings.losses, settings.noise), settings.rates[0])
                self._train("training", list(dict.fromkeys([*search, *final_runs(settings, rates)])), store, display)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"stopped; {self._kept(store)}") from None
        except ChildProcessError as death:
            raise ChildProcessError(f"{death} {self._kept(store)}") from death
        return Study(self.folder, self.data, self.build)

    def _train(self, what: str, runs: list[Run], store: Store, display: ProgressDisplay) -> None:
        finished = store.finished()
        missing = sum(run not in finished for run in runs)
        if not missing:
            return
        display.start(what, missing, stores=True)
        truth = self._truth()[self.data.test].numpy()

        def on_progress(progress: Progress) -> None:
            display.advance(progress.runs / progress.epochs)

        for trained in train_all(
            self._jobs(runs, store),
            self.data,
            self.settings.recipe,
            build=self.build,
            workers=self.workers,
            finished=finished,
            on_progress=on_progress,
        ):
            store.add(trained, measures_of(trained, truth))
            display.store()

    def _jobs(self, runs: Iterable[Run], store: Store) -> list[Job]:
        labels = {key: self._noisy_labels(*key, store) for key in dict.fromkeys((run.noise, run.seed) for run in runs)}
        objectives = self.objectives()
        return [self._job(run, objectives[run.loss], labels[run.noise, run.seed]) for run in runs]

    def _job(self, run: Run, objective: nn.Module | Objective, labels: Tensor) -> Job:
        return Job(run, objective, labels[self.data.train], labels[self.data.validation])

    def _noisy_labels(self, noise: str, seed: int, store: Store) -> Tensor:
        """Return the labels of all rows under a noise, and store what it did."""
        labels = self.data.labels.clone()
        for rows in [self.data.train] if self.settings.clean_validation else [self.data.train, self.data.validation]:
            labels[rows] = make_noise(noise).corrupt(self.data, rows, seed)
        found = realised(self._truth()[self.data.train], labels[self.data.train], self.data.num_classes)
        store.add_noise(noise, seed, found.rate, found.matrix, labels.numpy())
        return labels

    def _truth(self) -> Tensor:
        return self.data.labels if self.data.true_labels is None else self.data.true_labels

    def _store(self) -> Store:
        """Open the study's file, or make it, unless another process just did."""
        file = self.folder / FILE
        with suppress(StoreError):
            return Store.create(file, self._about())
        self.check_folder()
        store = Store(file)
        if self.settings != stored_settings(store):
            for name, value in self._about().items():
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
            "test_labels": self._truth()[data.test].tolist(),
            "versions": _versions(),
            "command": self.settings.command(self.folder),
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
        rates = ", ".join(f"{rate:g}" for rate in settings.rates)
        where = " on each noise" if settings.search_noise == "each" else f" with noise {settings.noise[0]}"
        tries, epochs = counted(settings.search_seeds, "seed"), counted(recipe.epochs, "epoch")
        counting = len(settings.losses) * len(settings.noise) * settings.seeds
        lines = {
            "data": f"{data.name}: {parts} rows of shape {data.input_shape}, {data.num_classes} classes",
            "notes": "\n          ".join(self.notes()),
            "losses": ", ".join(settings.losses),
            "noise": ", ".join(settings.noise),
            "training": f"{recipe.model}, {epochs} of batches of {recipe.batch_size}, {recipe.optimizer}",
            "rates": f"{rates}: for each loss the best on the validation split by {tries}{where}",
            "runs": f"{settings.planned()}, of which {counting} count: {counted(settings.seeds, 'seed')} of each loss and noise",
            "time": f"about {duration(self._estimated_seconds())}",
            "writes": f"{self.folder / FILE}, {self.folder / REPORT}",
        }
        return "\n".join(f"{name:8}  {line}" for name, line in lines.items() if line)

    def _estimated_seconds(self) -> float:
        """Time an epoch of one run, or of a few that train as one where that is quick, on the labels as they are.

        Of many rows a part is enough to tell.
        """
        step = max(1, len(self.data.train) // max(SAMPLE_ROWS, SAMPLE_BATCHES * self.settings.recipe.batch_size))
        part = replace(self.data, **{split: getattr(self.data, split)[::step] for split in ("train", "validation", "test")})
        recipe = replace(self.settings.recipe, epochs=1, keep=(), patience=0)
        seconds, objectives = 0.0, {name: _unscheduled(objective) for name, objective in self.objectives().items()}
        for sample in (1, SAMPLE):
            runs = search_runs(self.settings)[:sample]
            labels = (part.labels[part.train], part.labels[part.validation])
            jobs = [Job(run, objectives[run.loss], *labels) for run in runs]
            trained = train_all(jobs, part, recipe, build=self.build, workers=1)
            seconds = step * fmean(one.seconds for one in trained)
            if seconds > QUICK:
                break
        return seconds * self.settings.recipe.epochs * self.settings.planned() / (self.workers or os.cpu_count() or 1)

    def objectives(self) -> dict[str, nn.Module | Objective]:
        """Return what is trained, by the name it has in the settings."""
        return {loss: self.losses[loss] if loss in self.losses else make_objective(loss) for loss in self.settings.losses}

    def notes(self) -> list[str]:
        """Return what a user should know before training: about the data, and about what will hardly work."""
        return [*self.data.notes, *warnings_about(self.settings, self.data, self.objectives())]

    def _kept(self, store: Store) -> str:
        done = f"{len(store.finished())} of {self.settings.planned()} runs are stored"
        return f"{done}. Go on with: lossmith resume {self.folder}"


def _unscheduled(objective: nn.Module | Objective) -> nn.Module | Objective:
    """A schedule of a whole training does not fit into one epoch of it."""
    return replace(objective, schedules={}) if isinstance(objective, Objective) else objective


def _extends(value: Any, stored: Any, name: str) -> bool:
    """Return whether a setting is what it was, or more of it where more can be added."""
    if name == "seeds":
        return bool(value >= stored)
    if name in ("losses", "noise"):
        return tuple(value[: len(stored)]) == tuple(stored)
    return bool(value == stored)


def _versions() -> dict[str, str]:
    """Return the versions of everything that computes."""
    libraries = {name: version(name) for name in ("torch", "numpy", "scikit-learn", "pandas")}
    return {"lossmith": __version__, **libraries, "python": platform.python_version(), "machine": platform.machine()}
