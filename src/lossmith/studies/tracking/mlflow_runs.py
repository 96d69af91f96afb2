"""MLflow: a run for the study, and below it a run for each training."""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from lossmith.studies.tracking.tracker import TrackedRun, TrackedStudy, Tracker, finite

__all__ = ["make"]

_LONGEST = 500  # characters of a parameter that every server takes
_AT_ONCE = 1000, 100  # measures and parameters that it takes in one call


def make() -> Tracker:
    """Return a tracker that sends to where ``MLFLOW_TRACKING_URI`` says, under ``MLFLOW_EXPERIMENT_NAME`` or ``lossmith``."""
    return _Mlflow()


class _Mlflow:
    def begin(self, study: TrackedStudy) -> str:
        self._client = MlflowClient()
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "lossmith")
        known = self._client.get_experiment_by_name(name)
        self._experiment = known.experiment_id if known is not None else self._client.create_experiment(name)
        self._study = study.known_as or self._new(study.name, {})
        if not study.known_as:
            self._log(self._study, {**study.settings, "folder": study.folder})
        return self._study

    def _new(self, name: str, tags: Mapping[str, str]) -> str:
        made = self._client.create_run(self._experiment, tags={"mlflow.runName": name, **tags})
        return str(made.info.run_id)

    def _log(self, run: str, parameters: Mapping[str, Any], metrics: "list[Metric] | None" = None) -> None:
        params = [Param(_key(name), str(value)[:_LONGEST]) for name, value in parameters.items()]
        metrics = metrics or []
        most, fewest = _AT_ONCE
        for start in range(0, max(len(params), 1), fewest):
            self._client.log_batch(run, params=params[start : start + fewest])
        for start in range(0, len(metrics), most):
            self._client.log_batch(run, metrics=metrics[start : start + most])

    def run(self, run: TrackedRun) -> None:
        child = self._new(run.name, {"mlflow.parentRunId": self._study, "group": run.group})
        metrics = _metrics(run.measures)
        for name, curve in run.curves.items():
            by_epoch = finite({str(epoch): value for epoch, value in enumerate(curve, 1)})
            metrics += [_metric(f"curve/{name}", value, int(epoch)) for epoch, value in by_epoch.items()]
        self._log(child, run.parameters, metrics)
        self._client.set_terminated(child)

    def results(self, seed: int, measures: Mapping[str, float]) -> None:
        self._log(self._study, {}, _metrics(measures, seed))

    def report(self, page: Path, answer: str) -> None:
        self._client.log_batch(self._study, tags=[RunTag("mlflow.note.content", answer)])
        self._client.log_artifact(self._study, os.fspath(page))

    def end(self, *, finished: bool) -> None:
        self._client.set_terminated(self._study, "FINISHED" if finished else "KILLED")


def _metrics(measures: Mapping[str, float], step: int = 0) -> list[Metric]:
    return [_metric(name, value, step) for name, value in measures.items()]


def _metric(name: str, value: float, step: int) -> Metric:
    return Metric(_key(name), value, int(1000 * time.time()), step)


def _key(name: str) -> str:
    """Return a name with the signs that MLflow takes: ``1.0*nce + 20*mae`` becomes ``1.0-nce - 20-mae``."""
    return re.sub(r"[^\w./ -]+", "-", name).strip("-")
