"""The search for learning rates: was every loss given its chance?"""

import numpy as np
import pandas as pd

from lossmith.report.elements import Section, figure, legend
from lossmith.report.line_panels import Axis, Curve, Panel, line_panels
from lossmith.report.subject import Subject


def section(subject: Subject) -> Section | None:
    """Return a panel for each noise level that was searched; None without a search."""
    searches = subject.study.searches
    if searches.empty or searches["learning_rate"].nunique() < 2:
        return None
    grouped = searches.groupby(["noise", "loss", "learning_rate"])["validation_accuracy"].mean()
    searched = [noise for noise in subject.noises if noise in set(searches["noise"])]
    rates = np.sort(searches["learning_rate"].unique())
    panels = [_panel(subject, grouped.loc[noise], noise, rates) for noise in searched]
    if not panels:
        return None
    x = Axis("learning rate", None, list(np.log10(rates)), _rate, _rate)
    lead = "A loss whose best rate is at an end of the search may do better beyond it; the comparison is then unfair to it."
    body = line_panels(panels, x, Axis.share("validation accuracy"), dots=True)
    caption = "Validation accuracy of the runs from which each loss got its learning rate."
    return Section("rates", "Learning rates", lead, figure(body, caption, key="rates", before=legend(subject.series)))


def _rate(exponent: float) -> str:
    return f"{10**exponent:.2g}"


def _panel(subject: Subject, table: pd.Series, noise: str, rates: np.ndarray) -> Panel:
    present = set(table.index.get_level_values("loss"))
    curves = [
        Curve(series, table.loc[series.name].reindex(rates).to_numpy(float))
        for series in subject.series
        if series.name in present
    ]
    return Panel(subject.noise_title(noise), np.log10(rates), curves)
