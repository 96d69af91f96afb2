"""Is a run trained at all? Signs that it is not, which the fit to its training labels does not tell.

A robust loss rightly does not fit wrong labels, so that a low training accuracy is no sign. All that is looked at here are the
predictions and the curve on the validation rows.
"""

import re
from collections.abc import Sequence
from math import sqrt

import numpy as np
import pandas as pd

from lossmith.statistics.wording import counted

__all__ = ["FAILED", "did_fail", "failed_losses", "gave_something", "untrained_losses", "untrained_reason"]

FAILED = "failed: "
"""How the reason begins where a training of the user's own gave nothing to judge."""

_ONE_CLASS = 0.99
"""Share of the predictions from which on one class is all that a run predicts, where the labels are not of one class, too."""

_BEHIND = 0.02, 3.0
_RISING = 0.02, 2.0
"""Points, and standard errors, of which a difference must exceed both."""

_MIDDLE = 0.4, 0.5
"""The part of the epochs with which the end is compared. A cosine schedule makes four fifths of its way in the first half, and a
fortieth in the last quarter: however little a run has learnt, it hardly rises there any more."""

_RISE = 0.2
"""The part of all it has learnt that a run must have gained since then. A run that is as good as it gets gains something, too,
when its steps become small, and a mark that is wrong takes a good loss out of the comparison."""


def did_fail(results: pd.DataFrame) -> "pd.Series[bool]":
    """Return for each run whether it was a training of the user's own that failed."""
    if "untrained" not in results:
        return pd.Series(False, results.index)
    return results["untrained"].fillna("").str.startswith(FAILED).astype(bool)


def gave_something(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results of trainings that came to an end: those that failed have neither predictions nor test rows.

    Args:
        results: ``Study.results``.

    Returns:
        Some of the rows.
    """
    return results[~did_fail(results)]


def failed_losses(level: pd.DataFrame) -> dict[str, str]:
    """Return the losses whose training failed, in whichever replicate, each with a sentence that says why.

    Args:
        level: Results of one noise level.

    Returns:
        Sentences by loss.
    """
    replicates = level.groupby("loss", sort=False).size()
    return {
        str(loss): f"{loss} failed in {len(part)} of {counted(int(replicates[loss]), 'replicate')}: "
        f"{_most_frequent(part['untrained']).removeprefix(FAILED).removesuffix('.')}."
        for loss, part in level[did_fail(level)].groupby("loss", sort=False)
    }


def untrained_reason(
    predicted_share_of_commonest: float,
    accuracy: float,
    largest_class: float,
    curve: np.ndarray,
    rows: int,
    *,
    behind: float = float("nan"),
    behind_error: float = float("nan"),
) -> str:
    """Return why a run looks untrained, in words; nothing where it looks trained.

    All numbers are of the validation rows with their labels as they are. In a study that is judged by balanced accuracy, accuracy
    and largest class may be those of that metric: a loss that weighs rare classes is rightly less accurate than the largest.

    Args:
        predicted_share_of_commonest: Share of the rows for which the run predicts the class that it predicts most often.
        accuracy: That of the run.
        largest_class: What always predicting the largest class gives.
        curve: Accuracy after every epoch; NaN where there was none.
        rows: The number of validation rows.
        behind: How far the run is behind logistic regression on the same rows, as a share; NaN if that is not known.
        behind_error: Standard error of that, paired by rows.

    Returns:
        ``predicts one class``, ``no better than the largest class``, ``12 points behind logistic regression on validation rows``
        (beyond three standard errors and two points), ``still rising at the end``, or an empty text. A run rises if the mean of
        the last tenth of its epochs is above that of the epochs between 40 and 50 % by two points, by two standard errors of an
        accuracy on so many rows, and by a fifth of what it has learnt beyond the largest class.

    Raises:
        ValueError: If there are no rows.

    >>> flat = np.full(40, 0.8)
    >>> untrained_reason(1.0, 0.2, 0.2, flat, 400)
    'predicts one class'
    >>> untrained_reason(0.3, 0.7, 0.2, flat, 400, behind=0.12, behind_error=0.02)
    '12 points behind logistic regression on validation rows'
    >>> untrained_reason(0.3, 0.8, 0.2, flat, 400)
    ''
    """
    if rows < 1:
        raise ValueError(f"untrained_reason: rows must be at least 1, got {rows}.")
    if predicted_share_of_commonest >= 1 or (predicted_share_of_commonest >= _ONE_CLASS and largest_class < 0.9):
        return "predicts one class"
    if accuracy <= largest_class:
        return "no better than the largest class"
    points, errors = _BEHIND
    if behind > max(points, errors * behind_error):
        return f"{100 * behind:.0f} points behind logistic regression on validation rows"
    return "still rising at the end" if _is_rising(curve, rows, largest_class) else ""


def untrained_losses(results: pd.DataFrame, by: Sequence[str] = ("noise",)) -> pd.DataFrame:
    """Return which losses count as untrained: where at least half of the replicates look so.

    Args:
        results: ``Study.results``; without a column ``untrained`` no loss counts as such.
        by: The columns within which replicates are counted: noise levels, or data sets.

    Returns:
        The columns of ``by``, ``loss``, ``untrained`` (how many replicates), ``replicates``, and ``reason``, the most frequent.
    """
    columns = [*by, "loss", "untrained", "replicates", "reason"]
    if "untrained" not in results:
        return pd.DataFrame(columns=columns)
    reasons = results.assign(untrained=results["untrained"].fillna(""))
    rows = [
        (*keys, int((part["untrained"] != "").sum()), len(part), _most_frequent(part["untrained"]))
        for keys, part in reasons.groupby([*by, "loss"], sort=False)
    ]
    marked = pd.DataFrame(rows, columns=columns)
    return marked[2 * marked["untrained"] >= marked["replicates"]].reset_index(drop=True)


def _is_rising(curve: np.ndarray, rows: int, largest_class: float) -> bool:
    curve = np.asarray(curve, float)
    epochs = len(curve)
    start, stop = (int(part * epochs) for part in _MIDDLE)
    before = curve[start : max(stop, start + 1)]
    last = curve[-max(round(0.1 * epochs), 1) :]
    if epochs < 4 or not (np.isfinite(before).any() and np.isfinite(last).any()):
        return False
    end = float(np.nanmean(last))
    points, errors = _RISING
    least = max(points, errors * sqrt(max(end * (1 - end), 0.0) / rows), _RISE * (end - largest_class))
    return end - float(np.nanmean(before)) > least


def _most_frequent(reasons: "pd.Series[str]") -> str:
    """Return the most frequent reason, numbers aside, which are then averaged."""
    reasons = reasons[reasons != ""]
    if reasons.empty:
        return ""
    kinds = reasons.str.replace(r"\d+", "N", regex=True)
    alike = reasons[kinds == kinds.value_counts(sort=False).idxmax()]
    numbers = alike.str.extract(r"(\d+)", expand=False).astype(float)
    return re.sub(r"\d+", f"{numbers.mean():.0f}", str(alike.iloc[0]), count=1)
