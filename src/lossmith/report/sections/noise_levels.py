"""Accuracy against the share of wrong labels."""

import numpy as np
import pandas as pd
from markupsafe import Markup

from lossmith.report.elements import Section, figure, legend, loss_name
from lossmith.report.line_panels import Axis, Curve, Panel, line_panel, line_panels
from lossmith.report.subject import Series, Subject
from lossmith.report.svg import element
from lossmith.statistics.summary import compare_to, summarise


def section(subject: Subject) -> Section | None:
    """Return panels over all noise levels: accuracy, its difference to the baseline, calibration; None for one level."""
    if len(subject.noises) < 2:
        return None
    x, across = _across(subject)
    panels = [Panel("Test accuracy", x, _means(subject, "accuracy"))]
    if len(subject.series) > 1:
        points = Axis("points", value_text="{:+.1f} points".format, tick_text=_signed)
        panels.append(Panel(f"Difference to {subject.baseline}", x, _differences(subject), points))
    if "ece" in subject.results:
        panels.append(Panel("Expected calibration error", x, _means(subject, "ece"), Axis("calibration error")))
    lead = "A loss that resists wrong labels stays high to the right. Where lines cross, the best loss depends on the noise."
    caption = "Mean over seeds; bands are ± one standard error. Test labels are never corrupted."
    body = line_panels(panels, across, Axis.share("accuracy"), dots=True)
    return Section("noise", "Accuracy against noise", lead, figure(body, caption, key="noise", before=legend(subject.series)))


def overview(subject: Subject) -> Markup:
    """Return the accuracy of the recommended loss and of the baseline against noise, for the answer; nothing for one level."""
    if len(subject.noises) < 2 or subject.advice.keeps_baseline:
        return Markup()
    x, across = _across(subject)
    curves = [curve for curve in _means(subject, "accuracy") if curve.series.number == 0 or curve.series.recommended]
    names = element("p", *(loss_name(curve.series) for curve in curves), class_="names")
    return line_panel(Panel("", x, curves), across, Axis.share("test accuracy"), dots=True) + names


def _signed(points: float) -> str:
    return f"{points:+.3g}" if round(points, 9) else "0"


def _means(subject: Subject, metric: str) -> list[Curve]:
    table = summarise(subject.results, metric).set_index(["loss", "noise"])
    return [
        _curve(series, table.loc[series.name].reindex(list(subject.noises)))
        for series in subject.series
        if series.name in table.index
    ]


def _differences(subject: Subject) -> list[Curve]:
    """Return the paired differences to the baseline in points, whose errors are smaller than those of the means."""
    table = compare_to(subject.results, subject.baseline)
    table["mean"], table["standard_error"] = 100 * table["difference"], 100 * table["spread"] / np.sqrt(table["pairs"])
    table = table.set_index(["loss", "noise"])
    others = [series for series in subject.series if series.number > 0]
    return [_curve(series, table.loc[series.name].reindex(list(subject.noises))) for series in others]


def _curve(series: Series, rows: pd.DataFrame) -> Curve:
    mean, error = rows["mean"].to_numpy(float), rows["standard_error"].to_numpy(float)
    return Curve(series, mean, mean - error, mean + error)


def _across(subject: Subject) -> tuple[np.ndarray, Axis]:
    """Return places of the noise levels: their rates, or simply side by side where kinds of noise differ."""
    rates = np.array([subject.rates[noise] for noise in subject.noises])
    kinds = {noise.partition("(")[0] for noise in subject.noisy}
    if len(kinds) == 1 and len(np.unique(rates)) == len(rates):
        return rates, Axis.share("wrong labels in training")
    names = {float(number): noise for number, noise in enumerate(subject.noises)}
    places = np.array(list(names))
    return places, Axis("noise", (-0.3, len(names) - 0.7), list(names), names.__getitem__, names.__getitem__)
