"""Results as a study holds them, made up with known differences between losses."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd


def results_frame(
    means: Mapping[str, Sequence[float]],
    *,
    seeds: int = 5,
    noise: Sequence[str] = ("none", "symmetric(0.4)"),
    rates: Sequence[float] = (0.0, 0.36),
    spread: float = 0.004,
    seconds: Mapping[str, float] | None = None,
    ece: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Return a row for each loss, noise and seed; runs of one seed share part of their luck, as paired runs do."""
    rng = np.random.default_rng(0)
    luck = rng.normal(0, 0.02, (len(noise), seeds))
    rows = []
    for loss, levels in means.items():
        for level, mean in enumerate(levels):
            for seed in range(seeds):
                accuracy = mean + luck[level, seed] + rng.normal(0, spread)
                calibration = (ece or {}).get(loss, 0.05) + rng.normal(0, 0.002)
                rows.append((loss, noise[level], rates[level], seed, accuracy, calibration, (seconds or {}).get(loss, 2.0)))
    frame = pd.DataFrame(rows, columns=["loss", "noise", "noise_rate", "seed", "accuracy", "ece", "seconds"])
    return frame.assign(
        run=[f"run-{number}" for number in range(len(frame))],
        learning_rate=0.1,
        epoch=40,
        top5=np.minimum(frame["accuracy"] + 0.1, 1.0),
        balanced_accuracy=frame["accuracy"] - 0.01,
        nll=1.5 - frame["accuracy"],
        brier=1 - frame["accuracy"],
        false_label_accuracy=frame["accuracy"].where(frame["noise_rate"] > 0) - 0.1,
        memorised=(0.9 - frame["accuracy"]).where(frame["noise_rate"] > 0),
        validation_accuracy=frame["accuracy"],
        diverged=False,
    )
