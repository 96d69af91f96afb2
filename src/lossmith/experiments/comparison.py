"""The comparison: from settings and data to the results of a study, interrupted and resumed as often as it takes."""

import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any

from torch import Tensor, nn

from lossmith.data import PreparedData, load_data, make_noise, realised
from lossmith.experiments.checks import check_recipe
from lossmith.experiments.choice import chosen_rates, final_runs, search_runs
from lossmith.experiments.job import Build, Job
from lossmith.experiments.measures import measure
from lossmith.experiments.plan import Run
from lossmith.experiments.progress import ProgressDisplay, duration, progress_display
from lossmith.experiments.settings import Settings, settings_from
from lossmith.experiments.store import Store, StoreError
from lossmith.experiments.study import FILE, REPORT, Study, open_study
from lossmith.experiments.versions import versions
from lossmith.experiments.workers import Progress, train_all
from lossmith.losses import ClassificationLoss
from lossmith.objectives import Objective, make_objective

__all__ = ["Comparison", "compare", "planned", "resumed"]

STUDIES = Path("studies")
SAMPLE = 16  # runs that the cost is estimated by
QUICK = 0.5  # seconds of an epoch, below which a sample is worth its time
ROOM_FOR_CONVOLUTIONS = 16  # pixels a side


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

    def train(self, display: ProgressDisplay | None = None) -> Study:
        """Train every run that the study lacks, and return the study."""
        display = display or ProgressDisplay()
        store = self._store()
        search = search_runs(self.settings)
        try:
            self._train("choosing learning rates" if self.settings.searched else "training", search, store, display)
            chosen = final_runs(self.settings, chosen_rates(self.settings, store.runs()))
            self._train("training", [run for run in chosen if run not in set(search)], store, display)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._stopped(store)) from None
        return Study(self.folder)

    def _train(self, what: str, runs: list[Run], store: Store, display: ProgressDisplay) -> None:
        finished = store.finished()
        missing = sum(run not in finished for run in runs)
        if not missing:
            return
        display.start(what, missing)
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
            store.add(trained, measure(trained, truth))

    def _jobs(self, runs: Iterable[Run], store: Store) -> list[Job]:
        labels = {key: self._noisy_labels(*key, store) for key in dict.fromkeys((run.noise, run.seed) for run in runs)}
        objectives = {loss: self._objective(loss) for loss in self.settings.losses}
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
        return Store(file)

    def check_folder(self) -> None:
        """Raise an error if the folder holds another study, which is left as it is."""
        if not (self.folder / FILE).exists():
            return
        store = Store(self.folder / FILE)
        stored = Settings.from_json(store.meta("settings"))
        changed = [name for name, value in self.settings.flat().items() if value != stored.flat().get(name)]
        if changed:
            raise StoreError(f"{self.folder} holds a study with other {', '.join(changed)}; give another --output.")
        if store.meta("fingerprint") != self.data.fingerprint():
            raise StoreError(f"{self.folder} holds a study of other data; give another --output.")

    def _about(self) -> dict[str, Any]:
        data = self.data
        rows = {name: len(getattr(data, name)) for name in ("train", "validation", "test")}
        return {
            "settings": self.settings.as_json(),
            "data": {"source": self.settings.data, "name": data.name, "rows": rows, "classes": data.classes, "notes": data.notes},
            "fingerprint": data.fingerprint(),
            "test_labels": self._truth()[data.test].tolist(),
            "versions": versions(),
            "command": self.settings.command(self.folder),
            "from_python": self._brought_from_python(),
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
        where = ", on each noise" if settings.search_noise == "each" else f", with noise {settings.noise[0]}"
        counting = len(settings.losses) * len(settings.noise) * settings.seeds
        lines = {
            "data": f"{data.name}: {parts} rows of shape {data.input_shape}, {data.num_classes} classes",
            "notes": "\n          ".join(data.notes),
            "losses": ", ".join(settings.losses),
            "noise": ", ".join(settings.noise),
            "training": f"{recipe.model}, {recipe.epochs} epochs of batches of {recipe.batch_size}, {recipe.optimizer}",
            "rates": f"{rates}: for each loss the best on the validation split, by {settings.search_seeds} seeds{where}",
            "runs": f"{settings.planned()}, of which {counting} count: {settings.seeds} seeds of each loss and noise",
            "time": f"about {duration(self._estimated_seconds())}",
            "writes": f"{self.folder / FILE}, {self.folder / REPORT}",
        }
        return "\n".join(f"{name:8}  {line}" for name, line in lines.items() if line)

    def _estimated_seconds(self) -> float:
        """Time an epoch of one run, or of a few that train as one where that is quick, on the labels as they are."""
        recipe = replace(self.settings.recipe, epochs=1, keep=(), patience=0)
        seconds = 0.0
        for sample in (1, SAMPLE):
            jobs = [self._job(run, self._objective(run.loss), self.data.labels) for run in search_runs(self.settings)[:sample]]
            trained = train_all(jobs, self.data, recipe, build=self.build, workers=1)
            seconds = fmean(one.seconds for one in trained)
            if seconds > QUICK:
                break
        return seconds * self.settings.recipe.epochs * self.settings.planned() / (self.workers or os.cpu_count() or 1)

    def _objective(self, loss: str) -> nn.Module | Objective:
        return self.losses[loss] if loss in self.losses else make_objective(loss)

    def _stopped(self, store: Store) -> str:
        done = f"{len(store.finished())} of {self.settings.planned()} runs are stored"
        return f"stopped; {done}. Go on with: lossmith resume {self.folder}"


def planned(settings: Settings, *, output: Path | None = None, workers: int | None = None) -> Comparison:
    """Return the comparison that the settings describe, with its data read and everything checked, but nothing trained."""
    settings.check_objectives({})
    data = load_data(settings.data, **settings.loading)
    return _with_model(settings, data, output, workers=workers)


def _with_model(settings: Settings, data: PreparedData, output: Path | None, **own: Any) -> Comparison:
    settings = settings.completed(suitable_model(data), data.num_classes)
    check_recipe(settings.recipe, data, own_model=own.get("build") is not None)
    comparison = Comparison(settings, data, output or STUDIES / data.name, **own)
    return comparison if output else _in_free_folder(comparison)


def suitable_model(data: PreparedData) -> str:
    """Return the model that suits the data: an lstm for words, a small cnn for images that have room for it, else an mlp."""
    if not data.inputs.is_floating_point():
        return "lstm"
    return "small-cnn" if data.inputs.dim() == 4 and min(data.input_shape[1:]) >= ROOM_FOR_CONVOLUTIONS else "mlp"


def _in_free_folder(comparison: Comparison) -> Comparison:
    """Return the comparison in the first folder of its name that is free or holds the very same study."""
    first = comparison.folder
    for number in count(2):
        try:
            comparison.check_folder()
        except StoreError:
            comparison.folder = first.with_name(f"{first.name}-{number}")
        else:
            break
    return comparison


def resumed(folder: Path, *, workers: int | None = None) -> Comparison:
    """Return the comparison of a study that was stopped."""
    study = open_study(folder)
    if study.store.meta("from_python"):
        brought = study.store.meta("from_python")
        raise ValueError(f"{folder} was begun in Python with {brought}; resume it there, by the same call of compare.")
    return Comparison(study.plan, study.load(), study.folder, workers=workers)


def compare(
    data: Any = "digits",
    *,
    losses: Iterable[str | nn.Module] | Mapping[str, str | nn.Module] | None = None,
    noise: Iterable[Any] | float | str | None = None,
    model: str | Build | None = None,
    seeds: int | None = None,
    output: str | Path | None = None,
    workers: int | None = None,
    progress: bool = True,
    **settings: Any,
) -> Study:
    """Train losses on data, under label noise, over seeds, and return the study.

    ``data`` is whatever :func:`lossmith.data.load_data` reads: a file, a folder, the name of a data set, a data frame, arrays.
    ``losses`` are expressions or modules of your own, ``model`` is a name or a function ``(input shape, number of classes) ->
    module``. Further settings are those of ``lossmith compare``, with underscores. Runs that the study in ``output`` has finished
    already are not trained again.

    >>> study = compare("digits", losses=["ce", "gce"], noise=[0.4], seeds=3, epochs=20)  # doctest: +SKIP
    >>> print(study.table())  # doctest: +SKIP
    """
    named = _named_losses(losses)
    own = {name: make_objective(loss) if isinstance(loss, str) else loss for name, loss in named.items() if loss != name}
    build = model if callable(model) else None
    given = {
        "data": os.fspath(data) if isinstance(data, str | Path) else "",
        "losses": list(named) or None,
        "noise": [noise] if isinstance(noise, str | int | float) else noise,
        "model": build.__name__ if build else model,
        "seeds": seeds,
        **settings,
    }
    plan = settings_from({name: value for name, value in given.items() if value is not None})
    plan.check_objectives(own)
    read = load_data(data, **plan.loading)
    comparison = _with_model(plan, read, Path(output) if output else None, losses=own, build=build, workers=workers)
    with progress_display() if progress else nullcontext() as display:
        return comparison.train(display)


def _named_losses(losses: Iterable[str | nn.Module] | Mapping[str, str | nn.Module] | None) -> dict[str, str | nn.Module]:
    """Return the losses by name: a module of our own is known by its expression, another one by its class."""
    if losses is None:
        return {}
    if isinstance(losses, Mapping):
        return dict(losses)
    named = {loss if isinstance(loss, str) else repr(loss).split("\n")[0]: loss for loss in losses}
    return {name: repr(loss) if isinstance(loss, ClassificationLoss) else loss for name, loss in named.items()}
