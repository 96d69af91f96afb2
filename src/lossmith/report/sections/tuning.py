"""How much will you tune? What each loss is expected to give after few trials and after many."""

from dataclasses import replace

import numpy as np
import pandas as pd
from markupsafe import Markup

from lossmith.report.elements import MISSING, Section, cases, figure, legend, loss_name
from lossmith.report.line_panels import Axis, Curve, Panel, line_panel, line_panels, metric_axis
from lossmith.report.small_multiples import MOST_LINES, Look, panel_a_loss
from lossmith.report.subject import Subject
from lossmith.report.svg import element
from lossmith.report.table_cells import number_text
from lossmith.statistics.budgets import tuning_curves, tuning_differences
from lossmith.statistics.wording import counted, is_share, spoken

_LEVEL = 0.05
_LEAD = (
    "The best loss for someone who tunes little need not be the best for someone who tunes much. A line that begins high needs "
    "no tuning; one that rises late needs it."
)


def section(subject: Subject) -> Section | None:
    """Return a panel for each noise level, and tables; None where trials cannot tell, or there was one."""
    if subject.trials.empty:
        return None
    curves = tuning_curves(subject.trials, subject.metric, overlap=subject.study.overlap)
    if is_share(subject.metric):  # which the ends of a t interval do not know
        curves = curves.assign(low=curves["low"].clip(0, 1), high=curves["high"].clip(0, 1))
    if curves["trials"].nunique() < 2:
        return None
    noises = [noise for noise in subject.noises if noise in set(curves["noise"])]
    panels = [_panel(subject, curves[curves["noise"] == noise], noise) for noise in noises]
    at = panels[0].x.tolist()
    x = Axis("trials", None, at, lambda power: f"{2**power:.0f}", lambda power: f"{2**power:.0f}")
    y = metric_axis(subject.metric, "test")
    body = _drawings(subject, panels, x, y) + cases("At", _tables(subject, curves, noises), "tuning")
    caption = (
        f"Expected test {spoken(subject.metric)} of the best of so many trials, chosen by their validation rows, from all "
        "trials of each replicate (Dodge et al. 2019). Bands are 95 % intervals over the replicates. In the table, below: the "
        f"difference to {subject.baseline} after as many trials, bold where there is evidence of it (p < 0.05, Holm)."
    )
    return Section("tuning", "How much will you tune?", _LEAD, figure(body, caption, key="tuning"))


def _panel(subject: Subject, curves: pd.DataFrame, noise: str) -> Panel:
    budgets = np.sort(curves["trials"].unique())
    by_loss = curves.set_index(["loss", "trials"])
    drawn = []
    for series in subject.series:
        if series.name in by_loss.index:
            rows = by_loss.loc[series.name].reindex(budgets)
            drawn.append(Curve(series, *(rows[name].to_numpy(float) for name in ("mean", "low", "high"))))
    return Panel(subject.noise_title(noise), np.log2(budgets.astype(float)), drawn)


def _drawings(subject: Subject, panels: list[Panel], x: Axis, y: Axis) -> Markup:
    """Return all losses together; where they are many without their bands, which would hide one another, and then one by one."""
    above = legend(subject.series)
    if len(subject.series) <= MOST_LINES:
        return above + line_panels(panels, x, y, dots=True)
    bare = [replace(panel, curves=[replace(curve, low=None, high=None) for curve in panel.curves]) for panel in panels]
    drawn = element("div", *(line_panel(panel, x, y, dots=True) for panel in bare), class_="panels")
    apart = {panel.title: panel_a_loss(panel, x, y, look=Look(dots=True)) for panel in panels}
    folded = element("details", element("summary", "A panel for each loss, with bands"), cases("At", apart, "tuning-apart"))
    return above + drawn + folded


def _tables(subject: Subject, curves: pd.DataFrame, noises: list[str]) -> dict[str, Markup]:
    compared = tuning_differences(
        subject.trials, subject.baseline, subject.metric, overlap=subject.study.overlap, luck_of_rows=subject.luck_of_rows
    ).set_index(["noise", "loss", "trials"])
    means = curves.set_index(["noise", "loss", "trials"])["mean"]
    return {subject.noise_title(noise): _table(subject, means, compared, noise) for noise in noises}


def _table(subject: Subject, means: "pd.Series[float]", compared: pd.DataFrame, noise: str) -> Markup:
    budgets = sorted(means.loc[noise].index.get_level_values("trials").unique())
    heads = ["Loss", *(counted(int(budget), "trial") for budget in budgets)]
    rows = [
        element(
            "tr",
            element("th", loss_name(series), scope="row"),
            *(_cell(means, compared, (noise, series.name, budget), subject.metric) for budget in budgets),
            class_="chosen" if series.recommended else None,
            data_series=series.number,
        )
        for series in subject.series
        if series.name in means.loc[noise].index
    ]
    table = element(
        "table",
        element("caption", f"After so many trials, {subject.noise_title(noise)}", class_="hidden"),
        element("thead", element("tr", *(element("th", text, scope="col") for text in heads))),
        element("tbody", *rows),
        class_="budgets",
    )
    return element("div", table, class_="scroll")


def _cell(means: "pd.Series[float]", compared: pd.DataFrame, key: tuple[str, str, int], metric: str) -> Markup:
    if key not in means.index or pd.isna(means[key]):
        return element("td", MISSING)
    mean = number_text(float(means[key]), metric)
    if key not in compared.index:
        return element("td", mean)
    row = compared.loc[key]
    scale, digits = (100, 1) if is_share(metric) else (1, 3)
    text = f"{scale * row['difference']:+.{digits}f}"
    told = bool(row["p_holm"] < _LEVEL)
    title = (
        f"95 % interval {scale * row['low']:+.{digits}f} to {scale * row['high']:+.{digits}f}"
        if row["low"] <= row["high"]
        else None
    )
    return element("td", mean, element("small", element("strong", text) if told else text, title=title))
