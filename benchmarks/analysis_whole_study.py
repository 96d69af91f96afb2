"""Time of ``lossmith analyse``: ten losses, five seeds, 10,000 test images of 28 x 28, 10 classes, features and weights kept."""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from lossmith.studies import Study, compare
from lossmith.studies.progress import ProgressDisplay
from lossmith.studies.study_analysis import analyse

LOSSES = ["ce", "focal", "label-smoothing", "sce", "gce", "bi-tempered", "nce-mae", "mae", "cosine-softmax", "squared-error"]


class Stopwatch(ProgressDisplay):
    """Prints what each part takes when the next one begins."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.since = "", (0.0, 0.0)

    def start(self, what: str, runs: float) -> None:
        """Begin a part."""
        super().start(what, runs)
        self.stop()
        self.part, self.since = what, _clocks()

    def stop(self) -> None:
        """End a part."""
        if self.part:
            wall, processor = (now - then for now, then in zip(_clocks(), self.since, strict=True))
            print(f"{self.part}: {wall:.1f} s, of processors {processor:.1f} s", flush=True)


def main() -> None:
    """Train a study for an epoch, analyse it, and print what each part takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--rows", type=int, default=10_000, help="test images")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        study = small_study(Path(folder), options.model, options.rows)
        watch = Stopwatch()
        since = _clocks()
        analyse(study, display=watch)
        watch.stop()
        wall, processor = (now - then for now, then in zip(_clocks(), since, strict=True))
        print(f"whole analysis of {len(study.results)} runs: {wall:.1f} s, of processors {processor:.1f} s")


def small_study(folder: Path, model: str, rows: int) -> Study:
    """Train ten losses with five seeds on 1000 images of blurred squares."""
    random = np.random.default_rng(0)
    patterns = random.random((10, 7, 7)).repeat(4, 1).repeat(4, 2)
    for name, count in {"train": 1000, "test": rows}.items():
        labels = random.integers(10, size=count)
        images = patterns[labels] + random.normal(0.0, 1.5, (count, 28, 28))
        np.savez(folder / f"{name}.npz", X=images.astype(np.float32)[:, None], y=labels)
    how = {"seeds": 5, "noise": [0], "epochs": 1, "rates": [0.03], "keep": ["features", "weights"], "model": model}
    data, test = str(folder / "train.npz"), str(folder / "test.npz")
    return compare(data, losses=LOSSES, test=test, output=folder / "study", progress=False, **how)


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


if __name__ == "__main__":
    main()
