"""Curves during training: test accuracy, and what is predicted for training rows whose label is wrong."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lossmith.report.elements import Section, figure
from lossmith.report.line_panels import Axis, Curve, Panel, in_reach
from lossmith.report.plot_frames import fitting_range
from lossmith.report.small_multiples import curves_of_losses
from lossmith.report.subject import Subject
from lossmith.report.svg import element
from lossmith.statistics.wording import capitalised

__all__ = ["false_label_section", "section"]

_BANDS = (
    "mean over the replicates, or over most of them where the others had fewer or more epochs; bands are ± one standard error."
)


def section(subject: Subject) -> Section | None:
    """Return a panel for each noise level."""
    panels = _curve_panels(subject, "test_accuracy", subject.noises)
    if not panels:
        return None
    lead = "A curve that rises and then falls has begun to fit wrong labels. One that stays low has not begun to learn."
    focused = [replace(panel, y=Axis.share("test accuracy", _focus(panel))) for panel in panels]
    body = curves_of_losses(focused, Axis("epoch"), Axis.share("test accuracy"), key="curves")
    caption = f"Accuracy on the test split after each epoch, of the runs that count; {_BANDS}"
    return Section("curves", "Learning curves", lead, figure(body, caption, key="curves"))


def false_label_section(subject: Subject) -> Section | None:
    """Return panels for training rows whose label is wrong: shares predicted as the true class, and as the wrong label."""
    right = _curve_panels(subject, "false_label_accuracy", subject.noisy)
    wrong = _curve_panels(subject, "memorised", subject.noisy)
    if not right or not wrong:
        return None
    body = (
        element("h3", "Seen through: predicted as their true class")
        + curves_of_losses(right, Axis("epoch"), Axis.share("true class"), key="seen-through")
        + element("h3", "Memorised: predicted as the wrong label they carry")
        + curves_of_losses(wrong, Axis("epoch"), Axis.share("wrong label"), key="memorised", with_legend=False)
    )
    lead = "The training rows whose label was made wrong. A robust loss predicts what they are; one that memorises, their label."
    caption = capitalised(_BANDS)
    return Section("false-labels", "Wrong labels", lead, figure(body, caption, key="false-labels"))


def _focus(panel: Panel) -> tuple[float, float]:
    """Return the range of all but the first quarter of the epochs, in which every loss climbs and none can be told apart."""
    return fitting_range([curve.parts for curve in in_reach(panel.curves)], skip=0.25, margin=0.08)


def _curve_panels(subject: Subject, column: str, noises: Sequence[str]) -> list[Panel]:
    """Return a panel for each noise level with a column of the study's curves, mean ± standard error over replicates.

    Where fewer than half of the replicates go on, the curve ends.
    """
    if column not in subject.curves:
        return []
    curves = _of_one_length(subject.curves.dropna(subset=column), subject.study.settings.recipe.epochs)
    grouped = curves.groupby(["noise", "loss", "epoch"])[column].agg(["mean", "sem", "size"])
    grouped = grouped[2 * grouped["size"] >= grouped.groupby(["noise", "loss"])["size"].transform("max")]
    return [_panel(subject, grouped.loc[noise], noise) for noise in noises if noise in grouped.index.get_level_values("noise")]


def _of_one_length(curves: pd.DataFrame, epochs: int) -> pd.DataFrame:
    """Return the curves without second chances, or those alone where most replicates of a loss had one.

    A mean over both would jump where the usual epochs are over, and be taken for something that training did.
    """
    again = curves.groupby(["noise", "loss", "seed"])["epoch"].transform("max") > epochs
    first = curves["epoch"] == curves.groupby(["noise", "loss", "seed"])["epoch"].transform("min")
    most = again.where(first).groupby([curves["noise"], curves["loss"]]).transform("mean") > 0.5
    return curves[again == most]


def _panel(subject: Subject, table: pd.DataFrame, noise: str) -> Panel:
    epochs = np.sort(table.index.get_level_values("epoch").unique())
    present = set(table.index.get_level_values("loss"))
    curves = []
    for series in subject.series:
        if series.name in present:
            rows = table.loc[series.name].reindex(epochs)
            mean, error = rows["mean"].to_numpy(float), rows["sem"].to_numpy(float)
            curves.append(Curve(series, mean, mean - error, mean + error))
    return Panel(subject.noise_title(noise), epochs.astype(float), curves)
