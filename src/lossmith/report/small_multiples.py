"""Many losses in one figure: together while lines can be told apart, and a panel each where they would cross."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from markupsafe import Markup

from lossmith.report.elements import cases, legend, loss_name
from lossmith.report.line_panels import Axis, Curve, Panel, in_reach, line_panel, line_panels, values_of
from lossmith.report.plot_frames import SMALL, fitting_range
from lossmith.report.svg import element
from lossmith.statistics.wording import sentence

__all__ = ["MOST_LINES", "PLAIN", "Look", "curves_of_losses", "panel_a_loss"]

MOST_LINES = 5
"""Losses up to which their curves share a panel."""


class Look(NamedTuple):
    """How curves are drawn."""

    diagonal: bool = False
    """Whether there is the line on which both axes are equal."""
    dots: bool = False
    """Whether every value is marked."""


PLAIN = Look()


def curves_of_losses(
    panels: Sequence[Panel], x: Axis, y: Axis, *, key: str, label: str = "At", look: Look = PLAIN, with_legend: bool = True
) -> Markup:
    """Return panels of a few losses side by side, or of many losses as a panel for each, with the panels to choose from.

    Args:
        panels: Such as one for each noise level, with a curve for each loss.
        x: The axis of all panels.
        y: That of panels without their own.
        key: Names the choice, unique on the page.
        label: What is chosen.
        look: How curves are drawn.
        with_legend: Whether a legend stands above panels that losses share.

    Returns:
        HTML.
    """
    if max(len(panel.curves) for panel in panels) <= MOST_LINES:
        known = {curve.series.number: curve.series for panel in panels for curve in panel.curves}
        above = legend(known.values()) if with_legend else Markup()
        return above + line_panels(panels, x, y, diagonal=look.diagonal, dots=look.dots)
    bodies = {panel.title: panel_a_loss(panel, x, y, look=look) for panel in panels}
    return cases(label, bodies, key)


def panel_a_loss(panel: Panel, x: Axis, y: Axis, *, look: Look = PLAIN, baseline_too: bool = False) -> Markup:
    """Return a small panel for each loss, over the same axes, with the baseline behind it.

    Args:
        panel: All losses.
        x: The horizontal axis.
        y: The vertical axis, unless the panel has its own.
        look: How curves are drawn.
        baseline_too: Whether the baseline has a panel, too, beside being in all the others.

    Returns:
        HTML.
    """
    y = panel.y or y
    if y.domain is None:
        y = replace(y, domain=fitting_range([curve.parts for curve in in_reach(panel.curves)], margin=0.05))
    baseline = [curve for curve in panel.curves if curve.series.number == 0]
    behind = [Curve(curve.series, curve.y, is_behind=True) for curve in baseline]
    alone = [curve for curve in panel.curves if curve.series.number or baseline_too or len(panel.curves) == 1]
    drawn = [
        line_panel(
            Panel(
                f"{curve.series.name}, {panel.title}",
                panel.x,
                [*(behind if curve.series.number else ()), curve],
                heading=loss_name(curve.series),
            ),
            x,
            y,
            diagonal=look.diagonal,
            dots=look.dots,
            frame=SMALL,
        )
        for curve in alone
    ]
    against = f"{y.label} against {x.label}" + (f"; faint: {baseline[0].series.name}" if baseline else "")
    words = element("p", sentence(against), class_="axes")
    return words + element("div", *drawn, class_="panels small") + values_of([panel], x, y)
