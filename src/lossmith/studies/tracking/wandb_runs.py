"""Weights & Biases: a run for the study, and one for each training in its group."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import wandb

from lossmith.studies.tracking.tracker import TrackedRun, TrackedStudy, Tracker, finite

__all__ = ["make"]


def make() -> Tracker:
    """Return a tracker whose project is ``WANDB_PROJECT`` or ``lossmith``; ``WANDB_MODE=offline`` needs no account."""
    return _WeightsAndBiases()


class _WeightsAndBiases:
    def begin(self, study: TrackedStudy) -> str:
        self._place = study.folder
        known_as = study.known_as or hashlib.sha256(f"{study.folder.resolve()} {os.urandom(8).hex()}".encode()).hexdigest()[:16]
        self._group = f"{study.name} {known_as}"
        settings = {name: _plain(value) for name, value in study.settings.items()}
        self._study = self._begun(study.name, "study", settings, id=known_as, resume="allow")
        self._study.define_metric("*", step_metric="replicate")
        return known_as

    def _begun(self, name: str, kind: str, config: Mapping[str, Any], **how: Any) -> Any:
        return wandb.init(
            project=os.environ.get("WANDB_PROJECT", "lossmith"),
            group=self._group,
            job_type=kind,
            name=name,
            config=dict(config),
            dir=os.fspath(self._place),
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off"),
            **how,
        )

    def run(self, run: TrackedRun) -> None:
        child = self._begun(run.name, run.group, run.parameters)
        for epoch, values in enumerate(zip(*run.curves.values(), strict=True), 1):
            child.log({**finite(dict(zip(run.curves, values, strict=True))), "epoch": epoch})
        child.summary.update(dict(run.measures))
        child.finish()

    def results(self, seed: int, measures: Mapping[str, float]) -> None:
        self._study.log({**measures, "replicate": seed})

    def report(self, page: Path, answer: str) -> None:
        self._study.log({"report": wandb.Html(page.read_text(encoding="utf-8"), inject=False)})
        self._study.notes = answer

    def end(self, *, finished: bool) -> None:
        self._study.finish(exit_code=0 if finished else 1)


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) else str(value)
