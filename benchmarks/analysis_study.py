"""Time of the analysis of a study: ten losses, five seeds, 10,000 test examples, 128 features, 10 classes."""

import time
from collections.abc import Callable

import numpy as np

from lossmith.analysis import (
    RunOutputs,
    agreement_tables,
    calibration_table,
    class_centroids,
    cosine_distances,
    ensemble_table,
    separation_table,
    singular_spectrum,
    transfer,
)


def main() -> None:
    """Print what each part takes, in seconds of one processor."""
    random = np.random.default_rng(0)
    labels = random.integers(10, size=10_000)
    runs = {f"{loss}-{seed}": outputs(random, labels, f"loss {loss}", seed) for loss in range(10) for seed in range(5)}
    features = [run.features for run in runs.values() if run.features is not None]
    parts: dict[str, Callable[[], object]] = {
        "calibration": lambda: calibration_table(runs, labels),
        "class separation": lambda: separation_table(runs, labels),
        "agreement": lambda: agreement_tables(runs, labels),
        "ensembles": lambda: ensemble_table(runs, labels),
        "spectra": lambda: [(singular_spectrum(x), singular_spectrum(class_centroids(x, labels))) for x in features],
        "cosine distances, one run of each loss": lambda: [cosine_distances(x, labels) for x in features[::5]],
        "transfer, one run": lambda: transfer(features[0][:8000], labels[:8000], features[0][8000:], labels[8000:]),
    }
    for name, part in parts.items():
        start = time.process_time()
        part()
        print(f"{name}: {time.process_time() - start:.1f} s")


def outputs(random: np.random.Generator, labels: np.ndarray, loss: str, seed: int) -> RunOutputs:
    """Return outputs of a run that is right four times out of five."""
    centres = random.normal(size=(10, 128))
    given = np.where(random.random(len(labels)) < 0.2, random.integers(10, size=len(labels)), labels)
    features = np.maximum(0.5 * centres[given] + random.normal(size=(len(labels), 128)), 0.0).astype(np.float32)
    return RunOutputs(loss, seed, features @ centres.T.astype(np.float32) / 10.0, features)


if __name__ == "__main__":
    main()
