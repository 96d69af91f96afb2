"""How much will you tune? What a loss gives after few trials and after many, and how wide its plateau of good settings is.

After Dodge et al. 2019, *Show your work*: the trials of a cell are a sample of what tuning may meet. The expected result after
``k`` trials is the mean over all choices of ``k`` of them, of which the best on the validation rows is taken. A trial is not
chosen twice: that mean is right on average for ``k`` fresh trials (Tang et al. 2020 show that drawing with replacement, as Dodge
et al. do, gives too little), and with all trials of a study it is what the study found.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np
import pandas as pd
from scipy import stats

from lossmith.statistics.differences.luck import LuckOfRows
from lossmith.statistics.differences.overlapping import INDEPENDENT, Overlap
from lossmith.statistics.summary import compare_to
from lossmith.statistics.trial_frames import CELL, is_near_best, placed, usable_trials

__all__ = ["BUDGETS", "expected_best", "expected_results", "plateaus", "tuning_curves", "tuning_differences"]

BUDGETS = (1, 2, 4, 8, 16)
"""Numbers of trials that are told."""


def expected_best(scores: np.ndarray, values: np.ndarray, weights: np.ndarray, trials: int) -> float:
    """Return the expected value of the best of so many trials, chosen from all that the weights stand for.

    Of the ``C(n, k)`` choices of ``k`` among ``n`` trials, ``C(m, k)`` have no score above ``s``, if ``m`` trials have none.
    Trials of equal scores are taken with equal chances.

    Args:
        scores: By which the best is taken, one for each trial of the sample.
        values: What is then got.
        weights: How many trials each stands for, whole numbers.
        trials: How many are chosen, ``k``.

    Returns:
        The mean of the value; NaN where weights stand for fewer trials.

    >>> expected_best(np.array([0.1, 0.5, 0.9]), np.array([10.0, 20.0, 60.0]), np.array([1.0, 1.0, 2.0]), 2)
    53.333333333333336
    """
    drawn = np.asarray(weights, float) > 0
    weights, values = np.asarray(weights, float)[drawn], np.asarray(values, float)[drawn]
    if round(weights.sum()) < trials:
        return float("nan")
    _, group = np.unique(np.asarray(scores, float)[drawn], return_inverse=True)
    mass = np.bincount(group, weights)
    means = np.bincount(group, weights * values) / mass
    chances = np.diff(_share_of_choices(np.cumsum(mass), trials), prepend=0.0)
    return float(chances @ means)


def expected_results(trials: pd.DataFrame, metric: str = "accuracy", budgets: Sequence[int] = BUDGETS) -> pd.DataFrame:
    """Return what each loss is expected to give after few trials and many, in every replicate.

    Args:
        trials: ``Study.trials``.
        metric: The column that is expected.
        budgets: Numbers of trials; those above what the trials of a cell stand for are left out.

    Returns:
        ``loss``, ``noise``, ``seed``, ``trials`` and the metric. Empty where no trial has a weight.

    Raises:
        ValueError: If a column is missing, or a budget is below 1.
    """
    if any(budget < 1 for budget in budgets):
        raise ValueError(f"budgets must be at least 1, got {min(budgets)}.")
    frame = usable_trials(trials, metric)
    frame = placed(frame[frame["weight"] > 0])
    rows: list[tuple[object, ...]] = []
    for cell, part in frame.groupby(CELL, sort=False):
        places, values, weights = part[["place", "value", "weight"]].to_numpy().T
        known = [budget for budget in budgets if budget <= round(weights.sum())]
        rows += [(*cell, budget, expected_best(places, values, weights, budget)) for budget in known]
    return pd.DataFrame(rows, columns=[*CELL, "trials", metric])


def tuning_curves(
    trials: pd.DataFrame,
    metric: str = "accuracy",
    budgets: Sequence[int] = BUDGETS,
    *,
    confidence: float = 0.95,
    overlap: Overlap = INDEPENDENT,
) -> pd.DataFrame:
    """Return the mean over replicates of what each loss is expected to give after few trials and many, with a band.

    Args:
        trials: ``Study.trials``.
        metric: The column that is expected.
        budgets: Numbers of trials.
        confidence: That of the band, a t interval, in (0, 1).
        overlap: What replicates share.

    Returns:
        ``loss``, ``noise``, ``trials``, ``mean``, ``low``, ``high`` (NaN for one replicate) and ``replicates``.

    Raises:
        ValueError: If a column is missing, or a budget is below 1.
    """
    grouped = expected_results(trials, metric, budgets).groupby(["loss", "noise", "trials"], sort=False)[metric]
    curves = grouped.agg(mean="mean", spread="std", replicates="count").reset_index()
    half = [_half(*row, confidence, overlap.ratio) for row in zip(curves["spread"], curves["replicates"], strict=True)]
    curves = curves.assign(low=curves["mean"] - half, high=curves["mean"] + half)
    return curves[["loss", "noise", "trials", "mean", "low", "high", "replicates"]]


def tuning_differences(
    trials: pd.DataFrame,
    baseline: str,
    metric: str = "accuracy",
    budgets: Sequence[int] = BUDGETS,
    *,
    confidence: float = 0.95,
    overlap: Overlap = INDEPENDENT,
    luck_of_rows: LuckOfRows | None = None,
) -> pd.DataFrame:
    """Compare every loss with the baseline after as many trials, paired within replicates and corrected for the number of losses.

    Args:
        trials: ``Study.trials``.
        baseline: The loss that all others are compared with.
        metric: The column that is expected.
        budgets: Numbers of trials.
        confidence: That of the intervals, in (0, 1).
        overlap: What replicates share.
        luck_of_rows: What the luck of test rows has to do with each difference, where it is known.

    Returns:
        ``trials`` and the columns of :func:`lossmith.statistics.compare_to`. Empty where the baseline has no trial of weight.

    Raises:
        ValueError: If a column is missing, or a budget is below 1.
    """
    expected = expected_results(trials, metric, budgets)
    parts = [
        compare_to(part, baseline, metric, confidence=confidence, overlap=overlap, luck_of_rows=luck_of_rows).assign(
            trials=budget
        )
        for budget, part in expected.groupby("trials")
        if baseline in set(part["loss"])
    ]
    columns = ["loss", "noise", "trials", "pairs", "difference", "low", "high", "spread", "p", "p_holm"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def plateaus(trials: pd.DataFrame, rows: int, metric: str = "accuracy") -> pd.DataFrame:
    """Return how much of what was tried is good: within one standard error of the best of its cell on the validation rows.

    Args:
        trials: ``Study.trials``.
        rows: The number of validation rows.
        metric: What trials are chosen by.

    Returns:
        ``loss``, ``noise`` and ``share``, weighted and averaged over the replicates. Empty where no trial has a weight.

    Raises:
        ValueError: If a column is missing, or there are no rows.
    """
    frame = usable_trials(trials, metric)
    good = (
        frame.assign(good=frame["weight"] * is_near_best(frame, rows, metric)).groupby(CELL, sort=False)[["good", "weight"]].sum()
    )
    shares = (good["good"] / good["weight"])[good["weight"] > 0].rename("share")
    return shares.groupby(["loss", "noise"], sort=False).mean().reset_index()


def _share_of_choices(most: np.ndarray, trials: int) -> np.ndarray:
    """Return the share of all choices of so many of the last number that are choices of each number, ``C(m, k) / C(n, k)``."""
    steps = np.arange(trials)
    return np.asarray((np.maximum(most[:, None] - steps, 0.0) / (most[-1] - steps)).prod(1))


def _half(spread: float, replicates: int, confidence: float, ratio: float) -> float:
    """Return half the width of the band around a mean; NaN for one replicate, whose spread is NaN."""
    if replicates < 2:
        return float("nan")
    return float(stats.t.ppf((1 + confidence) / 2, replicates - 1)) * sqrt(1 / replicates + ratio) * spread
