"""What a tracker is told, and what it is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from lossmith.training.recipe import Trained

__all__ = ["TRACKERS", "TrackedRun", "TrackedStudy", "Tracker", "check_installed", "finite", "named_tracker", "tracked_run"]


@dataclass(frozen=True)
class TrackedStudy:
    """What is known when a study begins."""

    name: str
    folder: Path
    settings: Mapping[str, Any]
    """Every setting by its name on the command line, and ``data``."""
    known_as: str = ""
    """What :meth:`Tracker.begin` returned when the study was begun, where it now goes on."""


@dataclass(frozen=True)
class TrackedRun:
    """One training that is over."""

    name: str
    group: str
    """Loss and noise."""
    parameters: Mapping[str, Any]
    measures: Mapping[str, float]
    curves: Mapping[str, Sequence[float]]
    """A number for each epoch, by name."""


class Tracker(Protocol):
    """What sends a study somewhere. Every method may fail or take long: it is called from a thread of its own."""

    def begin(self, study: TrackedStudy) -> str:
        """Open the study, or open it again, and return by what it is known there."""
        ...

    def run(self, run: TrackedRun) -> None:
        """Send a training with its parameters, measures and curves."""
        ...

    def results(self, seed: int, measures: Mapping[str, float]) -> None:
        """Send what counts of a replicate: measures by noise, loss and name."""
        ...

    def report(self, page: Path, answer: str) -> None:
        """Send the report, and the answer in words."""
        ...

    def end(self, *, finished: bool) -> None:
        """Close the study."""
        ...


class _Home(NamedTuple):
    module: str
    client: str
    """The package that it needs."""


TRACKERS = {
    "mlflow": _Home("lossmith.studies.tracking.mlflow_runs", "mlflow"),
    "tensorboard": _Home("lossmith.studies.tracking.tensorboard_runs", "tensorboard"),
    "wandb": _Home("lossmith.studies.tracking.wandb_runs", "wandb"),
}
"""Where each tracker is, by name. It is imported when it is used."""


def check_installed(names: Sequence[str]) -> None:
    """Raise an error for a tracker whose client is not there, before anything is trained.

    Args:
        names: Of trackers.

    Raises:
        ValueError: If a client is missing, with the command that installs it.
    """
    for name in names:
        client = TRACKERS[name].client
        if find_spec(client) is None:
            raise ValueError(f"compare: track {name!r} needs {client}, which is not installed: pip install {client}.")


def named_tracker(name: str) -> Tracker:
    """Return a tracker, with its client imported.

    Args:
        name: One of ``TRACKERS``.

    Returns:
        The tracker, which has sent nothing yet.
    """
    return cast("Tracker", import_module(TRACKERS[name].module).make())


def tracked_run(trained: Trained, measures: Mapping[str, float]) -> TrackedRun:
    """Return what is told of a run.

    Args:
        trained: The run.
        measures: What was measured on its test and validation rows.

    Returns:
        Plain numbers and text.
    """
    run = trained.run
    group = f"{run.noise}/{run.loss}"
    own = dict(part.strip().partition("=")[::2] for part in run.parameters.split(",") if "=" in part)
    settings = {"learning_rate": run.learning_rate, "weight_decay": run.weight_decay, **own}
    which = {"loss": run.loss, "noise": run.noise, "seed": run.seed, **settings}
    told = {**measures, "seconds": trained.seconds, "diverged": float(trained.diverged)}
    numbers = ", ".join(
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}" for name, value in settings.items()
    )
    return TrackedRun(f"{group}/seed {run.seed}: {numbers}", group, which, finite(told), trained.curves)


def finite(measures: Mapping[str, float]) -> dict[str, float]:
    """Return the measures that are numbers, as servers take no others.

    >>> finite({"accuracy": 0.5, "top5": float("nan")})
    {'accuracy': 0.5}
    """
    return {name: float(value) for name, value in measures.items() if math.isfinite(value)}
