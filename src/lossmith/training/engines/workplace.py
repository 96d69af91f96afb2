"""Where a study is trained: by which engine, on how much of which machines. Results do not depend on it, but for rounding."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch

from lossmith.expressions.limits import Limits, is_whole
from lossmith.expressions.nearest import nearest
from lossmith.expressions.quotes import quote
from lossmith.training.devices import chosen_device
from lossmith.training.engines.engine import Engine
from lossmith.training.engines.local import LocalEngine

__all__ = ["ENGINES", "Workplace", "take_workplace"]

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Workplace:
    """What trains, and on what."""

    engine: str = "local"
    """``local``, processes of this machine, or ``ray``, a cluster."""
    workers: int | None = None
    """How many tasks are done at a time; by default as many as there is room for."""
    device: str = "auto"
    """``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``."""
    ray_address: str = ""
    """Of the cluster's head; empty for the one that Ray itself knows of, or else for one that is started on this machine."""
    trial_cpus: int = 1
    """Processors of a trial, or of each of its processes."""
    trial_gpus: float = 1.0
    """GPUs of the same, where it computes on one; 0.5 lets two share one."""

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            hint = nearest(str(self.engine), ENGINES)
            raise ValueError(f"compare: engine must be one of {', '.join(ENGINES)}, got {quote(self.engine)}{hint}")
        if self.workers is not None and (not is_whole(self.workers) or self.workers < 1):
            raise ValueError(f"compare: workers must be a whole number >= 1, got {quote(self.workers)}.")
        if not isinstance(self.ray_address, str):
            raise ValueError(f"compare: ray_address must be text, such as 10.0.0.1:6379, got {quote(self.ray_address)}.")
        if self.ray_address and self.engine != "ray":
            raise ValueError(f"compare: ray_address needs engine 'ray', got {quote(self.engine)}.")
        Limits(1, whole=True).check("trial_cpus", self.trial_cpus, owner="compare")
        Limits(0.0, low_open=True).check("trial_gpus", self.trial_gpus, owner="compare")

    def device_here(self) -> torch.device:
        """Return what this process computes on by itself, wherever trainings run."""
        return chosen_device(self.device if self.engine == "local" else "auto")

    def make_engine(self) -> Engine:
        """Return the engine.

        Returns:
            One that has not begun to work.

        Raises:
            ModuleNotFoundError: If the engine needs a package that is not installed.
            ValueError: If there is no such device.
        """
        if self.engine == "ray":
            from lossmith.training.engines.ray_engine import RayEngine

            return RayEngine(self.ray_address, self.workers, self.device, self.trial_cpus, self.trial_gpus)
        return LocalEngine(self.workers, chosen_device(self.device), self.trial_cpus, self.trial_gpus)


def take_workplace(given: Mapping[str, Any]) -> tuple[Workplace, dict[str, Any]]:
    """Divide what was given by name into where a study is trained, and what it is.

    Args:
        given: Settings by name, as they stand on the command line, in a file or in Python.

    Returns:
        The workplace, and the others.

    >>> take_workplace({"engine": "local", "losses": "ce"})[1]
    {'losses': 'ce'}
    """
    names = {each.name for each in fields(Workplace)}
    where = {name: value for name, value in given.items() if name in names and value is not None}
    return Workplace(**where), {name: value for name, value in given.items() if name not in names}
