"""Studies of format 1, read as if they were of today's: nothing in their files is changed, and nothing is added to them.

They were made by another protocol. Rows were split once, and learning rates were chosen once, by the first seeds on the first
noise or on each; all seeds have both in common. So every seed stands for a replicate here, all of them judged on the same test
rows, and none of their trials stands for any that might have been drawn.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, NoReturn

import numpy as np

from lossmith.expressions.limits import is_whole
from lossmith.studies.design.settings import CLEAN
from lossmith.studies.storage.store import CURVE_KINDS, Replicate, Store
from lossmith.studies.storage.stored_content import Row, StoreError, check_kinds, check_texts
from lossmith.studies.storage.study_file import OLD_FORMAT, TABLES_OF_ALL_FORMATS, StudyFile, format_of
from lossmith.training.recipe import Cell

__all__ = ["OLD_PROTOCOL", "OldStore", "open_store"]

OLD_PROTOCOL = (
    "The study was made by an older lossmith, with one split of the rows and one choice of learning rates for all seeds, so that "
    "the seeds agree with one another more than with another study: it is less sure than it looks."
)

_RUN_TABLE = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY, loss TEXT NOT NULL, noise TEXT NOT NULL, seed INTEGER NOT NULL, learning_rate REAL NOT NULL,
    epoch INTEGER NOT NULL, seconds REAL NOT NULL, diverged INTEGER NOT NULL, measures TEXT NOT NULL,
    finished TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (loss, noise, seed, learning_rate)
);
"""
_RUN_KINDS: dict[str, type | tuple[type, ...]] = {
    "id": int,
    "loss": str,
    "noise": str,
    "seed": int,
    "learning_rate": float,
    "epoch": int,
    "seconds": float,
    "diverged": int,
    "measures": str,
}
_UNCHANGED = ("data", "losses", "noise", "seeds", "rates", "clean_validation", "loading")
_SETTINGS = {*_UNCHANGED, "search_seeds", "search_noise", "recipe"}
_ALL_SEEDS_ON_THE_SAME_ROWS = [0.0, True]


def open_store(file: Path) -> Store:
    """Open the file of a study, of today's format or the one before.

    Args:
        file: The file ``study.sqlite`` of a study.

    Returns:
        What it holds.

    Raises:
        StoreError: If there is no such file, or it cannot be read.
    """
    return OldStore(file) if file.is_file() and format_of(file) == OLD_FORMAT else Store(file)


class _Search(NamedTuple):
    """How a study of the old format chose its learning rates."""

    losses: tuple[str, ...]
    noise: tuple[str, ...]
    seeds: int
    rates: tuple[float, ...]
    search_seeds: int
    """The first so many seeds tried every rate."""
    search_noise: str
    """``first`` or ``each``: where they did."""

    def noise_of_choice(self, noise: str) -> str:
        """Return the noise on which the rate for a noise was chosen."""
        return noise if self.search_noise == "each" else self.noise[0]


class OldStore(Store):
    """The file of a study of format 1. What is to be kept of it stays in memory."""

    format = OLD_FORMAT
    tables = TABLES_OF_ALL_FORMATS + _RUN_TABLE
    meta_kinds = {**StudyFile.meta_kinds, "test_labels": list}

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self._kept: dict[str, str] = {}

    def meta(self, name: str) -> Any:
        """Return what was stored about the study under this name, settings as they are today; or None."""
        if name in self._kept:
            return json.loads(self._kept[name])
        if name == "overlap":
            return _ALL_SEEDS_ON_THE_SAME_ROWS
        stored = super().meta(name)
        if name != "settings":
            return stored
        with self.explained("table meta, settings"):
            return _todays_settings(stored)

    def set_meta(self, name: str, value: object) -> None:
        """Keep something about the study, for as long as this object is there."""
        self._kept[name] = json.dumps(value)

    def writing(self) -> NoReturn:
        """Refuse to."""
        raise StoreError(f"{self.file} is a study of an older lossmith, which can be read but not gone on with.")

    @cached_property
    def _search(self) -> _Search:
        stored = super().meta("settings")
        with self.explained("table meta, settings"):
            return _search_of(stored)

    @cached_property
    def _weight_decay(self) -> float:
        (decay,) = self.meta("settings")["decays"]
        return float(decay)

    def run_rows(self, where: str = "TRUE") -> list[dict[str, Any]]:
        """Return finished runs with the columns they have today: trials that were trained to the end and stand for no others."""
        of_today = {"weight_decay": self._weight_decay, "parameters": "", "epochs": 0, "stopped": 0, "stands_for": 0.0}
        return [{**row, **of_today} for row in self.checked_rows("run", _RUN_KINDS, "id", where=where)]

    def with_measures(self, row: Row) -> dict[str, Any]:
        """Return a run with its measures; what rates were chosen by was the validation accuracy."""
        found = super().with_measures(row)
        with self.explained(f"table run, run {row['id']}"):
            if "validation_accuracy" not in found:
                raise ValueError("measures must hold validation_accuracy")
        return {**found, "validation_score": found["validation_accuracy"]}

    def choices(self) -> dict[Cell, tuple[int, str]]:
        """Return for each seed of a loss and noise whose search is complete the run at the learning rate that was chosen."""
        runs, search = self.runs(), self._search
        rates = _chosen_rates(search, runs)
        counting = (run for run in runs if run["seed"] < search.seeds)
        return {
            Cell(run["loss"], run["noise"], run["seed"]): (run["id"], "diverged" if run["diverged"] else "")
            for run in counting
            if rates.get((run["loss"], run["noise"])) == run["learning_rate"]
        }

    def references(self) -> list[dict[str, Any]]:
        """Return nothing: there were no classical models."""
        return []

    def replicate(self, seed: int) -> Replicate | None:
        """Return the one test split that all seeds have; its rows are numbered from 0, as their own numbers are not known."""
        if not 0 <= seed < max(self._search.seeds, self._search.search_seeds):
            return None
        labels, about = self.meta("test_labels"), self.meta("data")
        with self.explained("table meta, test_labels"):
            if not labels or not all(type(label) is int for label in labels):
                raise ValueError("must be classes")
            return Replicate(about["rows"]["validation"], np.asarray(labels, np.int64), np.arange(len(labels)))

    def curves(self) -> list[dict[str, Any]]:
        """Return a row for every epoch of every run that counts."""
        counting = {run for run, _ in self.choices().values()}
        wanted = "loss, noise, seed, learning_rate, curve.*"
        order, of_run = "curve.run, curve.epoch", "JOIN run ON run.id = curve.run"
        rows = self.checked_rows("curve", CURVE_KINDS, order, columns=wanted, join=of_run)
        return [{**row, "weight_decay": self._weight_decay} for row in rows if row["run"] in counting]


def _todays_settings(old: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as today's studies have them, from those of the old format."""
    search = _search_of(old)
    recipe = dict(old["recipe"])
    decay = recipe.pop("weight_decay")
    on_clean_labels = search.search_noise == "first" and search.noise[0] == CLEAN
    return {
        **{name: old[name] for name in _UNCHANGED},
        "decays": [decay],
        "tune_on": "clean" if on_clean_labels else "own",
        "references": False,
        "recipe": recipe,
    }


def _search_of(old: Mapping[str, Any]) -> _Search:
    if other := old.keys() ^ _SETTINGS:
        raise ValueError(f"settings must be {', '.join(sorted(_SETTINGS))}, got other {', '.join(sorted(other))}")
    check_kinds(old, {"losses": list, "noise": list, "rates": list, "recipe": dict})
    for name in ("losses", "noise"):
        check_texts(name, old[name])
    for name in ("seeds", "search_seeds"):
        if not is_whole(old[name]) or old[name] < 1:
            raise ValueError(f"{name} must be a whole number >= 1, got {old[name]!r:.40}")
    if not old["noise"] or not old["rates"]:
        raise ValueError("noise and rates must name at least one, got none")
    if old["search_noise"] not in ("first", "each"):
        raise ValueError(f"search_noise must be 'first' or 'each', got {old['search_noise']!r:.40}")
    rates = tuple(float(rate) for rate in old["rates"])
    return _Search(tuple(old["losses"]), tuple(old["noise"]), old["seeds"], rates, old["search_seeds"], old["search_noise"])


def _chosen_rates(search: _Search, runs: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """Return the learning rate of the highest validation accuracy for every loss and noise whose search is complete.

    It is the mean over the seeds of the search, in which a run that diverged counts as 0. Of equal rates the smaller is taken.
    """
    found: dict[tuple[str, str], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run["seed"] < search.search_seeds:
            accuracy = 0.0 if run["diverged"] else run["validation_accuracy"]
            found[run["loss"], run["noise"]][run["learning_rate"]].append(accuracy)
    best = {}
    for loss, noise in product(search.losses, search.noise):
        by_rate = found[loss, search.noise_of_choice(noise)]
        if all(len(by_rate[rate]) == search.search_seeds for rate in search.rates):
            best[loss, noise] = max(search.rates, key=lambda rate: (fmean(by_rate[rate]), -rate))
    return best
