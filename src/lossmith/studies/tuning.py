"""Which runs a study needs, and which learning rate each loss gets."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import product
from statistics import fmean
from typing import Any

from lossmith.studies.settings import Settings
from lossmith.training.recipe import Run

__all__ = ["chosen_rates", "final_runs", "search_runs"]


def search_runs(settings: Settings) -> list[Run]:
    """Return the runs that learning rates are chosen by: the same number for every loss."""
    return [
        Run(loss, noise, seed, rate)
        for seed in range(settings.search_seeds)
        for rate in settings.rates
        for noise in settings.searched_noise
        for loss in settings.losses
    ]


def final_runs(settings: Settings, rates: Mapping[tuple[str, str], float]) -> list[Run]:
    """Return the runs that count, at the learning rates that were chosen. The search has trained some of them already."""
    return [
        Run(loss, noise, seed, rates[loss, noise])
        for seed in range(settings.seeds)
        for noise in settings.noise
        for loss in settings.losses
    ]


def chosen_rates(settings: Settings, runs: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Return the learning rate of the highest validation accuracy for every loss and noise whose search is complete.

    A run that diverged counts as 0. Of equal rates the smaller is taken.
    """
    found: dict[tuple[str, str], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run["seed"] < settings.search_seeds:
            accuracy = 0.0 if run["diverged"] else run["validation_accuracy"]
            found[run["loss"], run["noise"]][run["learning_rate"]].append(accuracy)
    best = {}
    for loss, noise in product(settings.losses, settings.noise):
        by_rate = found[loss, noise if noise in settings.searched_noise else settings.noise[0]]
        if all(len(by_rate[rate]) == settings.search_seeds for rate in settings.rates):
            best[loss, noise] = max(settings.rates, key=lambda rate: (fmean(by_rate[rate]), -rate))
    return best
