"""The trials of a study as the functions here read them: one row a trial, which settings are good, and which one counts."""

import numpy as np
import pandas as pd

from lossmith.statistics.summary import SHARES_RIGHT, is_higher_better
from lossmith.training.merit import Merit, ranks

__all__ = ["BESIDE_SCORES", "finished_trials", "is_near_best", "placed", "score_error", "usable_trials"]

CELL = ["loss", "noise", "seed"]
"""The columns that tell a cell, whose trials differ in their settings only."""

BESIDE_SCORES = ("validation_error", "validation_likelihood", "train_accuracy", "validation_accuracy")
"""The columns that decide between trials with about the same score: see :class:`lossmith.training.merit.Merit`."""

_DEFAULTS = {
    "learning_rate": np.nan,
    "weight_decay": np.nan,
    "weight": 0.0,
    "stopped": False,
    "counts": False,
    "diverged": False,
}


def usable_trials(trials: pd.DataFrame, metric: str = "accuracy") -> pd.DataFrame:
    """Return one row a trial: its cell, its settings, its ``score`` on the validation rows and its ``value`` on the test rows.

    Where a column is missing, as in studies of the first format, it has the value that says nothing: no weight, not stopped. A
    trial that diverged without a prediction is the worst by its score. Its share of right predictions is taken as 0, other
    metrics as the worst that any trial of its noise and replicate has.

    Args:
        trials: ``Study.trials``.
        metric: The column that is read as the value.

    Returns:
        ``loss``, ``noise``, ``seed``, ``learning_rate``, ``weight_decay``, ``weight``, ``stopped``, ``counts``, ``diverged``,
        ``score``, what else tells trials apart (:data:`BESIDE_SCORES`, NaN where nobody knows), ``value``, and ``place``: see
        :func:`placed`.

    Raises:
        ValueError: If a column is missing that nothing can stand for.
    """
    score = "validation_score" if "validation_score" in trials else "validation_accuracy"
    for column in (*CELL, metric, score):
        if column not in trials:
            raise ValueError(f"statistics: trials need a column {column!r}, got {', '.join(map(str, trials.columns))}.")
    trials = trials.reset_index(drop=True)
    columns = {name: trials.get(name, pd.Series(default, trials.index)) for name, default in _DEFAULTS.items()}
    frame = trials[CELL].assign(**columns).astype({"stopped": bool, "counts": bool, "diverged": bool, "weight": float})
    frame["score"] = trials[score].astype(float).fillna(-np.inf)
    for name in BESIDE_SCORES:
        frame[name] = trials.get(name, pd.Series(np.nan, trials.index)).astype(float)
    frame["value"] = trials[metric].astype(float).replace([np.inf, -np.inf], np.nan)
    worst = frame.groupby(["noise", "seed"])["value"].transform("min" if is_higher_better(metric) else "max")
    return placed(frame.assign(value=frame["value"].fillna(0.0 if metric in SHARES_RIGHT else worst)))


def placed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return trials with their ``place`` among those of their cell that are there and were trained to the end.

    Args:
        frame: What :func:`usable_trials` returns, or some of its rows.

    Returns:
        The same rows; a place is 0 for the best by its validation rows, less for others, and alike for equals.
    """
    scores = frame["score"].where(~frame["diverged"] & ~frame["stopped"])
    told = zip(scores, *(frame[name] for name in BESIDE_SCORES), strict=True)
    merits = [Merit(score, error, likelihood).beside(*shares) for score, error, likelihood, *shares in told]
    by_cell = pd.Series(merits, frame.index).groupby([frame[name] for name in CELL])
    return frame.assign(place=-by_cell.transform(lambda cell: ranks(list(cell))).astype(float))


def finished_trials(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the trials that were trained to the end, and did not diverge.

    Args:
        frame: What :func:`usable_trials` returns.

    Returns:
        Some of its rows.
    """
    return frame[~frame["stopped"] & ~frame["diverged"] & np.isfinite(frame["score"])]


def score_error(scores: float | np.ndarray, rows: int, metric: str = "accuracy") -> np.ndarray:
    """Return the standard errors of scores on so many validation rows.

    Of a share it is the binomial one. The Brier score of a row lies between 0 and 2, so that its variance is at most
    ``b (2 - b)``, which is taken; the surprise of a row is taken to spread as much as its mean, as that of an exponential
    distribution does.

    Args:
        scores: Higher is better: ``nll`` and ``brier`` have their sign changed.
        rows: The number of validation rows.
        metric: What the scores are of.

    Returns:
        The standard errors.

    Raises:
        ValueError: If there are no rows.

    >>> score_error(np.array([0.9, 0.5]), 100)
    array([0.03, 0.05])
    """
    if rows < 1:
        raise ValueError(f"score_error: rows must be at least 1, got {rows}.")
    scores = np.asarray(scores, float)
    if metric == "nll":
        return np.asarray(np.abs(scores) / np.sqrt(rows))
    means, most = (-scores, 2.0) if metric == "brier" else (scores, 1.0)
    means = np.clip(means, 0.0, most)
    return np.asarray(np.sqrt(means * (most - means) / rows))


def is_near_best(frame: pd.DataFrame, rows: int, metric: str = "accuracy") -> "pd.Series[bool]":
    """Return for each trial whether it is within one standard error of the best of its cell that was trained to the end.

    Args:
        frame: What :func:`usable_trials` returns.
        rows: The number of validation rows.
        metric: What the score is of.

    Returns:
        True for near-best trials; for none where no trial of the cell was trained to the end.
    """
    finished = frame.index.isin(finished_trials(frame).index)
    best = frame["score"].where(finished).groupby([frame[name] for name in CELL]).transform("max")
    return frame["score"] >= best - score_error(best.to_numpy(float), rows, metric)
