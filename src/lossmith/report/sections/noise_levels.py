"""The metric against the share of wrong labels."""

from dataclasses import replace

import numpy as np
import pandas as pd
from markupsafe import Markup

from lossmith.report.elements import Section, figure, loss_name
from lossmith.report.line_panels import Axis, Curve, Panel, in_reach, line_panel, metric_axis
from lossmith.report.plot_frames import fitting_range
from lossmith.report.small_multiples import Look, curves_of_losses
from lossmith.report.subject import Series, Subject
from lossmith.report.svg import element
from lossmith.report.table_cells import metric_title
from lossmith.statistics.summary import summarise
from lossmith.statistics.wording import is_share, spoken


def section(subject: Subject) -> Section | None:
    """Return panels over all noise levels: the metric, its difference to the baseline, calibration; None for one level."""
    if len(subject.noises) < 2:
        return None
    x, across = _across(subject)
    metric = subject.metric
    panels = [_focused(subject, Panel(metric_title(metric), x, _means(subject, metric), metric_axis(metric)))]
    if len(subject.series) > 1:
        compared = Panel(f"Difference to {subject.baseline}", x, _differences(subject), _difference_axis(metric))
        panels.append(_focused(subject, compared))
    if "ece" in subject.results:
        panels.append(Panel("Expected calibration error", x, _means(subject, "ece"), Axis("calibration error")))
    lead = (
        "What if that many labels were wrong? A loss that resists stays good to the right. Where lines cross, the noise decides."
    )
    caption = (
        "Mean over the replicates; bands are ± one standard error, and those of differences the intervals of the verdicts. Test "
        "labels are never corrupted."
    )
    body = curves_of_losses(panels, across, metric_axis(metric), key="noise", label="Show", look=Look(dots=True))
    return Section("noise", "Against noise", lead, figure(body, caption, key="noise"))


def overview(subject: Subject) -> Markup:
    """Return the recommended loss and the baseline against noise, for the answer; nothing for one level."""
    if len(subject.noises) < 2 or subject.advice.keeps_baseline:
        return Markup()
    x, across = _across(subject)
    curves = [curve for curve in _means(subject, subject.metric) if curve.series.number == 0 or curve.series.recommended]
    names = element("p", *(loss_name(curve.series) for curve in curves), class_="names")
    return line_panel(Panel("", x, curves), across, metric_axis(subject.metric), dots=True) + names


def _focused(subject: Subject, panel: Panel) -> Panel:
    """Return a panel whose range leaves out what looks untrained, from which all else would look alike."""
    assert panel.y is not None
    kept = []
    for curve in in_reach(panel.curves):
        trained = np.array([(curve.series.name, noise) not in subject.untrained for noise in subject.noises])
        kept.append([np.where(trained, part, np.nan) for part in curve.parts])
    return replace(panel, y=replace(panel.y, domain=fitting_range(kept, margin=0.05)))


def _difference_axis(metric: str) -> Axis:
    unit = " points" if is_share(metric) else ""
    label = "points" if is_share(metric) else spoken(metric)
    return Axis(label, value_text=lambda value: f"{value:+.3g}{unit}", tick_text=_signed)


def _signed(points: float) -> str:
    return f"{points:+.3g}" if round(points, 9) else "0"


def _means(subject: Subject, metric: str) -> list[Curve]:
    table = summarise(subject.results, metric).set_index(["loss", "noise"])
    return [
        _curve(series, table.loc[series.name].reindex(list(subject.noises)))
        for series in subject.series
        if series.name in table.index
    ]


def _curve(series: Series, rows: pd.DataFrame) -> Curve:
    mean, error = rows["mean"].to_numpy(float), rows["standard_error"].to_numpy(float)
    return Curve(series, mean, mean - error, mean + error)


def _differences(subject: Subject) -> list[Curve]:
    """Return the paired differences to the baseline with their intervals, shares in points."""
    scale = 100 if is_share(subject.metric) else 1
    table = subject.differences.set_index(["loss", "noise"])[["difference", "low", "high"]]
    curves = []
    for series in subject.series:
        if series.number and series.name in table.index:
            rows = scale * table.loc[series.name].reindex(list(subject.noises))
            curves.append(Curve(series, *(rows[name].to_numpy(float) for name in ("difference", "low", "high"))))
    return curves


def _across(subject: Subject) -> tuple[np.ndarray, Axis]:
    """Return places of the noise levels: their rates, or simply side by side where kinds of noise differ."""
    rates = np.array([subject.rates[noise] for noise in subject.noises])
    kinds = {noise.partition("(")[0] for noise in subject.noisy}
    if len(kinds) == 1 and len(np.unique(rates)) == len(rates):
        return rates, Axis.share("wrong labels in training")
    names = {float(number): noise for number, noise in enumerate(subject.noises)}
    places = np.array(list(names))
    return places, Axis("noise", (-0.3, len(names) - 0.7), list(names), names.__getitem__, names.__getitem__)
