"""Numbers of a comparison in words, as the terminal and the report say them."""

import math
from collections.abc import Sequence

import pandas as pd

from lossmith.statistics.summary import is_higher_better

__all__ = [
    "budget_words",
    "capitalised",
    "counted",
    "interval",
    "is_share",
    "listed",
    "measured_in",
    "number_word",
    "percent",
    "sentence",
    "spoken",
]

_SHARES = frozenset(
    {"accuracy", "top5", "balanced_accuracy", "macro_f1", "false_label_accuracy", "validation_accuracy", "memorised"}
)
_SPOKEN = {
    "top5": "top-5 accuracy",
    "macro_f1": "macro F1",
    "nll": "negative log-likelihood",
    "ece": "expected calibration error",
    "brier": "Brier score",
}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def is_share(metric: str) -> bool:
    """Return whether a metric is a share of examples, which people read in percent."""
    return metric in _SHARES


def interval(row: pd.Series, metric: str = "accuracy") -> str:
    """Return a difference with its interval, shares in points, with the sign that makes better positive.

    >>> row = pd.Series({"difference": 0.012, "low": 0.008, "high": 0.016})
    >>> interval(row)
    '+1.2 points (95 % interval +0.8 to +1.6)'
    >>> interval(row, "nll")
    '-0.012 (95 % interval -0.016 to -0.008)'
    """
    unit = " points" if is_share(metric) else ""
    ends = ("low", "high") if is_higher_better(metric) else ("high", "low")
    mean, low, high = (_gain(float(row[name]), metric) for name in ("difference", *ends))
    return f"{mean}{unit} (95 % interval {low} to {high})" if row["low"] <= row["high"] else f"{mean}{unit}"


def measured_in(metric: str) -> str:
    """Return what a difference is measured in, where it is not accuracy, of which people think first.

    >>> measured_in("accuracy"), measured_in("macro_f1"), measured_in("nll")
    ('', ' in macro F1', ' in negative log-likelihood, where plus is lower and better')
    """
    if metric == "accuracy":
        return ""
    return f" in {spoken(metric)}" + ("" if is_higher_better(metric) else ", where plus is lower and better")


def counted(number: int, noun: str) -> str:
    """Return ``1 replicate`` or ``5 replicates``."""
    return f"{number} {noun}" + ("s" if number != 1 else "")


def budget_words(budgets: Sequence[int]) -> str:
    """Return numbers of trials that follow one another in words.

    >>> budget_words([1]), budget_words([1, 2]), budget_words([2, 4])
    ('without tuning', 'with up to two trials', 'with two to four trials')
    """
    first, last = (number_word(budget) for budget in (budgets[0], budgets[-1]))
    if len(budgets) == 1:
        return "without tuning" if budgets[0] == 1 else f"with {first} trials"
    if budgets[0] == 1:
        return f"with up to {last} trials"
    return f"with {first} to {last} trials"


def percent(share: float, digits: int = 0) -> str:
    """Return a share as ``36 %``."""
    return f"{100 * share:.{digits}f} %"


def spoken(metric: str) -> str:
    """Return the name of a metric as people say it.

    >>> spoken("balanced_accuracy"), spoken("nll")
    ('balanced accuracy', 'negative log-likelihood')
    """
    return _SPOKEN.get(metric, metric.replace("_", " "))


def listed(names: Sequence[str]) -> str:
    """Return names as people list them.

    >>> listed(["ce"]), listed(["ce", "gce", "mae"])
    ('ce', 'ce, gce and mae')
    """
    return " and ".join(", ".join(part) for part in (names[:-1], names[-1:]) if part)


def capitalised(words: str) -> str:
    """Return words with a capital at their beginning, and others as they are.

    >>> capitalised("macro F1")
    'Macro F1'
    """
    return f"{words[:1].upper()}{words[1:]}"


def sentence(words: str) -> str:
    """Return words with a capital and a full stop."""
    return f"{capitalised(words)}."


def _gain(value: float, metric: str) -> str:
    scale, digits = (100, 1) if is_share(metric) else (1, 3)
    limit = 1.0 if is_share(metric) else math.inf  # a difference of shares is no larger, whatever the t distribution says
    signed = min(max(value, -limit), limit) * (1 if is_higher_better(metric) else -1)
    return f"{scale * signed:+.{digits}f}"


def number_word(number: int) -> str:
    """Return ``four``, or ``16``: numbers up to ten are words."""
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)
