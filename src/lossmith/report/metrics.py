"""How metrics are named and drawn."""

from lossmith.report.line_panels import Axis
from lossmith.statistics.wording import capitalised, is_share, spoken

__all__ = ["metric_axis", "metric_title"]


def metric_title(metric: str) -> str:
    """Return a metric as a heading, with its unit.

    >>> metric_title("balanced_accuracy"), metric_title("nll")
    ('Balanced accuracy (%)', 'Negative log-likelihood')
    """
    return capitalised(spoken(metric)) + (" (%)" if is_share(metric) else "")


def metric_axis(metric: str, words: str = "") -> Axis:
    """Return an axis for a metric; words such as ``test`` come before its name."""
    label = f"{words} {spoken(metric)}".strip()
    return Axis.share(label) if is_share(metric) else Axis(label)
