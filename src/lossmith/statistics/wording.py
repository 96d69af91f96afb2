"""Numbers of a comparison in words, as the terminal and the report say them."""

import math

import pandas as pd

__all__ = ["counted", "interval", "is_share", "percent", "sentence", "spoken"]

_SHARES = frozenset({"accuracy", "top5", "balanced_accuracy", "false_label_accuracy", "validation_accuracy", "memorised"})
_SPOKEN = {
    "top5": "top-5 accuracy",
    "nll": "negative log-likelihood",
    "ece": "expected calibration error",
    "brier": "Brier score",
}


def is_share(metric: str) -> bool:
    """Return whether a metric is a share of examples, which people read in percent."""
    return metric in _SHARES


def interval(row: pd.Series, metric: str = "accuracy") -> str:
    """Return a difference with its interval, shares in points.

    >>> interval(pd.Series({"difference": 0.012, "low": 0.008, "high": 0.016}))
    '+1.2 points (95 % interval +0.8 to +1.6)'
    """
    scale, unit, digits = (100, " points", 1) if is_share(metric) else (1, "", 3)
    limit = 1.0 if is_share(metric) else math.inf  # a difference of shares is no larger, whatever the t distribution says
    numbers = (min(max(row[name], -limit), limit) for name in ("difference", "low", "high"))
    mean, low, high = (f"{scale * number:+.{digits}f}" for number in numbers)
    return f"{mean}{unit} (95 % interval {low} to {high})" if row["low"] < row["high"] else f"{mean}{unit}"


def counted(number: int, noun: str) -> str:
    """Return ``1 seed`` or ``5 seeds``."""
    return f"{number} {noun}" + ("s" if number != 1 else "")


def percent(share: float, digits: int = 0) -> str:
    """Return a share as ``36 %``."""
    return f"{100 * share:.{digits}f} %"


def spoken(metric: str) -> str:
    """Return the name of a metric as people say it.

    >>> spoken("balanced_accuracy"), spoken("nll")
    ('balanced accuracy', 'negative log-likelihood')
    """
    return _SPOKEN.get(metric, metric.replace("_", " "))


def sentence(words: str) -> str:
    """Return words with a capital and a full stop."""
    return f"{words[0].upper()}{words[1:]}."
