"""What a study costs for each trial, whatever trains: trials that do nothing, by the local engine or by Ray.

``python -m benchmarks.trials`` prints milliseconds for each of 500 empty trials, ``--trials 10000 --engine ray --report`` those
of a large study, with the memory of the process that writes it, the size of its file, and the time of its report. Time of the
writer's processor is that of the one process that plans, measures and stores; on a busy machine it is the figure to go by.
"""

import argparse
import random
import resource
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lossmith
from lossmith.report import write_report
from lossmith.training import Trial

LOSSES, NOISES = ("ce", "gce", "sce", "focal", "mae"), (0, 0.2)
LABELS = [0, 1, 2] * 20


def empty(trial: Trial) -> dict[str, Any]:
    """Train nothing."""
    trial.labels(LABELS)
    return {"accuracy": random.random(), "validation_accuracy": random.random()}  # noqa: S311 - seeded by the study


def predicting(trial: Trial, rows: int) -> dict[str, Any]:
    """Train nothing, and return the logits of so many test rows and ten classes."""
    return {**empty(trial), "logits": np.random.randn(rows, 10), "labels": np.arange(rows) % 10}  # noqa: NPY002 - seeded, too


def failing(trial: Trial) -> dict[str, Any]:
    """Fail."""
    raise ValueError(f"no GPU for {trial.name}")


def main() -> None:
    """Run an empty study and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--engine", default="local")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--report", action="store_true", help="write the report, too")
    parser.add_argument("--rows", type=int, default=0, help="test rows whose logits each trial returns")
    parser.add_argument("--failing", action="store_true", help="trials that raise an error")
    options = parser.parse_args()
    cells = len(LOSSES) * len(NOISES)
    seeds = 20 if options.trials >= 2000 else 5
    if options.engine == "ray":
        import ray

        ray.init(log_to_driver=False)  # a study joins a cluster that is there, and leaves it running
    with tempfile.TemporaryDirectory() as folder:
        # A small study first, so that what starts once does not count for each trial.
        compare(options, Path(folder) / "first", 1, 1)
        start, busy = time.perf_counter(), time.process_time()
        study = compare(options, Path(folder) / "study", seeds, max(1, options.trials // (cells * seeds)))
        seconds, busy, done = time.perf_counter() - start, time.process_time() - busy, len(study.trials)
        size = sum(file.stat().st_size for file in study.folder.rglob("*") if file.is_file())
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        each = f"{1000 * seconds / done:.2f} ms a trial, {done / seconds:.0f} a second, {1000 * busy / done:.2f} ms of the writer"
        print(f"{options.engine}: {done} trials in {seconds:.1f} s, {each}", flush=True)
        stored = f"the study {size / 1e6:.1f} MB, {size / 1e3 / done:.2f} kB a trial"
        print(f"memory of the writer {memory / 1e6:.0f} MB at most, {stored}")
        if options.report:
            start = time.perf_counter()
            page = write_report(study)
            print(f"report: {time.perf_counter() - start:.1f} s, {page.stat().st_size / 1e6:.2f} MB")


def compare(options: argparse.Namespace, folder: Path, seeds: int, trials: int) -> lossmith.studies.Study:
    """Run a study of empty trials."""
    return lossmith.compare(
        train=failing if options.failing else partial(predicting, rows=options.rows) if options.rows else empty,
        losses=LOSSES,
        noise=NOISES,
        seeds=seeds,
        trials=trials,
        tune={"learning_rate": (1e-3, 1.0)},
        engine=options.engine,
        workers=options.workers,
        output=folder,
        progress=False,
    )


if __name__ == "__main__":
    main()
