"""Results as a study holds them, made up with known differences between losses."""

from collections.abc import Mapping, Sequence
from typing import Any

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


def trials_frame(
    means: Mapping[str, Sequence[float]],
    *,
    seeds: int = 5,
    noise: Sequence[str] = ("none", "symmetric(0.4)"),
    rates: Sequence[float] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    best_rate: Mapping[str, float] | None = None,
    needs_tuning: Mapping[str, float] | None = None,
    spread: float = 0.004,
) -> pd.DataFrame:
    """Return all trials of every cell, trained to the end: accuracy falls from the best rate, by ``needs_tuning`` a decade."""
    rng = np.random.default_rng(1)
    rows = []
    for loss, levels in means.items():
        for level, mean in enumerate(levels):
            for seed in range(seeds):
                decades = np.abs(np.log10(np.array(rates) / (best_rate or {}).get(loss, 0.1)))
                value = mean - (needs_tuning or {}).get(loss, 0.05) * decades + rng.normal(0, spread, len(rates))
                best = value.argmax()
                decays = 10.0 ** rng.uniform(-5, -1, len(rates))
                rows += [
                    (loss, noise[level], seed, rate, decay, one, one, place == best)
                    for place, (rate, decay, one) in enumerate(zip(rates, decays, value, strict=True))
                ]
    columns = ["loss", "noise", "seed", "learning_rate", "weight_decay", "accuracy", "validation_score", "counts"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(stopped=False, diverged=False, weight=1.0, validation_accuracy=frame["validation_score"], epochs=40)


def counted_runs(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the results of a study with these trials."""
    return trials[trials["counts"]].drop(columns=["counts", "stopped", "weight"]).assign(untrained="").reset_index(drop=True)


def references_frame(
    means: Mapping[str, float], *, seeds: int = 5, noise: Sequence[str] = ("none",), spread: float = 0.004
) -> pd.DataFrame:
    """Return a row for each reference, noise and replicate."""
    rng = np.random.default_rng(2)
    keys = [(name, level, seed) for name in means for level in noise for seed in range(seeds)]
    frame = pd.DataFrame(keys, columns=["reference", "noise", "seed"])
    accuracy = frame["reference"].map(means) + rng.normal(0, spread, len(frame))
    return frame.assign(accuracy=accuracy, balanced_accuracy=accuracy - 0.01, nll=np.nan, validation_score=accuracy, settings="")


def clean(means: Mapping[str, float], **changes: Any) -> pd.DataFrame:
    """Return results without added noise."""
    return results_frame({loss: [mean] for loss, mean in means.items()}, noise=["none"], rates=[0.0], **changes)


def untrain(results: pd.DataFrame, loss: str, seeds: int = 5, noise: str = "none") -> pd.DataFrame:
    """Return results in which a loss looks untrained in so many replicates."""
    failed = (results["loss"] == loss) & (results["seed"] < seeds) & (results["noise"] == noise)
    return results.assign(untrained=np.where(failed, "predicts one class", ""))
