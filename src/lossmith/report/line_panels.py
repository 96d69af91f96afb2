"""Figures of curves: small panels side by side, drawn once here, with values that the page's script shows under the pointer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from markupsafe import Markup

from lossmith.report.elements import values_table
from lossmith.report.plot_frames import FRAMES, WIDE, Frame, Plot, fitting_range, spanned
from lossmith.report.subject import Series
from lossmith.report.svg import element, path, ticks
from lossmith.statistics.wording import is_share, spoken

__all__ = ["Axis", "Curve", "Marks", "Panel", "in_reach", "line_panel", "line_panels", "metric_axis", "plot_clips", "values_of"]


@dataclass(frozen=True, eq=False)
class Marks:
    """Places that are marked beside a line, such as single trials."""

    x: np.ndarray
    y: np.ndarray
    kind: str
    """``dot``, ``dash`` for what is less sure, ``ring`` for what stands out."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One line: its values where the panel's ``x`` are, and a band around them."""

    series: Series
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    marks: Sequence[Marks] = ()
    is_behind: bool = False
    """Whether it is there to compare with, and drawn faintly."""

    @property
    def parts(self) -> Sequence[np.ndarray]:
        """The line and the ends of its band."""
        return [part for part in (self.y, self.low, self.high) if part is not None]


@dataclass(frozen=True, eq=False)
class Panel:
    """A drawing with several curves over the same places."""

    title: str
    x: np.ndarray
    curves: Sequence[Curve]
    y: "Axis | None" = None
    """Its own vertical axis, where panels side by side show different things."""
    heading: Markup | None = None
    """What stands above it, where that is not the title."""


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _percent_tick(value: float) -> str:
    return f"{100 * value:.3g}"


@dataclass(frozen=True, eq=False)
class Axis:
    """What is drawn along a side: its words, its round numbers and how to write a value."""

    label: str
    domain: tuple[float, float] | None = None
    """Given, or made to fit the values of each panel."""
    at: Sequence[float] | None = None
    """Where ticks are; round numbers if not given."""
    tick_text: Callable[[float], str] = "{:.4g}".format
    value_text: Callable[[float], str] = "{:.4g}".format

    @classmethod
    def share(cls, label: str, domain: tuple[float, float] | None = None) -> "Axis":
        """Return an axis of shares, in percent."""
        return cls(f"{label} (%)", domain, None, _percent_tick, _percent)


def metric_axis(metric: str, words: str = "") -> Axis:
    """Return an axis for a metric; words such as ``test`` come before its name."""
    label = f"{words} {spoken(metric)}".strip()
    return Axis.share(label) if is_share(metric) else Axis(label)


def line_panels(panels: Sequence[Panel], x: Axis, y: Axis, *, diagonal: bool = False, dots: bool = False) -> Markup:
    """Return panels side by side and, folded away, the table of their values.

    ``diagonal`` draws the line on which both axes are equal; ``dots`` marks every value.
    """
    drawn = [line_panel(panel, x, y, diagonal=diagonal, dots=dots) for panel in panels]
    return element("div", *drawn, class_="panels") + values_of(panels, x, y)


def values_of(panels: Sequence[Panel], x: Axis, y: Axis) -> Markup:
    """Return the values of panels as tables, folded away."""
    tables = [_table(panel, x, y) for panel in panels]
    return element("details", element("summary", "These values as a table"), *tables, class_="values")


def plot_clips() -> Markup:
    """Return the parts of the plane that curves may use, which a page with panels needs once."""
    clips = [element("clipPath", element("rect", **frame.clip), id=frame.name) for frame in FRAMES]
    return element("svg", *clips, width=0, height=0, class_="hidden", aria_hidden="true")


def line_panel(panel: Panel, x: Axis, y: Axis, *, diagonal: bool = False, dots: bool = False, frame: Frame = WIDE) -> Markup:
    """Return one panel alone, for a place where the table of its values would be too much."""
    y = panel.y or y
    up = y.domain or fitting_range([curve.parts for curve in in_reach(panel.curves)], margin=0.05)
    plot = Plot(frame, x.domain or spanned([panel.x], 0.0), up)
    places = [plot.x(value) for value in panel.x]
    line = element("path", class_="diagonal", d=path(_diagonal(plot))) if diagonal else Markup()
    drawing = element(
        "svg",
        _grid(x, y, plot),
        line,
        *(_curve(curve, places, y, plot, dots=dots) for curve in panel.curves),
        *_outside(panel.curves, plot),
        element("line", class_="cursor", y1=frame.top, y2=frame.bottom),
        viewBox=f"0 0 {frame.width} {frame.height}",
        role="img",
        aria_label=f"{panel.title or 'Overview'}. {y.label} against {x.label}. A table below has the values.",
        tabindex=0,
        data_places=" ".join(f"{place:.1f}" for place in places),
        data_heads="|".join(f"{x.label} {x.value_text(float(value))}" for value in panel.x),
    )
    heading = panel.heading or panel.title
    return element("div", element("p", heading, class_="label") if heading else "", drawing, class_="panel")


def _curve(curve: Curve, places: Sequence[float], y: Axis, plot: Plot, *, dots: bool) -> Markup:
    heights = [plot.y(value) for value in curve.y]
    band = Markup()
    if curve.low is not None and curve.high is not None:
        band = element("path", class_="band", d=path(_outline(places, curve, plot), close=True))
    circles = [
        element("circle", cx=place, cy=height, r=2.6)
        for place, height in zip(places, heights, strict=True)
        if dots and isfinite(height)
    ]
    return element(
        "g",
        band,
        *(_marked(marks, plot) for marks in curve.marks),
        element("path", class_="line", d=path(zip(places, heights, strict=True))),
        *circles,
        class_=f"series {curve.series.style}{' behind' if curve.is_behind else ''}",
        clip_path=f"url(#{plot.frame.name})",
        data_series=curve.series.number,
        data_name=curve.series.name,
        data_heights=" ".join(f"{height:.1f}" for height in heights),
        data_texts="|".join(_texts(curve, y)),
    )


def _marked(marks: Marks, plot: Plot) -> Markup:
    """Return many marks as one path: lines so short that only their ends are seen."""
    start, length = (-2.0, "h4") if marks.kind == "dash" else (0.0, "h0")
    at = [
        f"M{plot.x(x) + start:.1f} {plot.y(y):.1f}{length}"
        for x, y in zip(marks.x, marks.y, strict=True)
        if isfinite(x) and isfinite(y)
    ]
    if not at:
        return Markup()
    drawn = element("path", class_=f"mark {marks.kind}", d="".join(at))
    return element("path", class_="mark around", d="".join(at)) + drawn if marks.kind == "ring" else drawn


def _texts(curve: Curve, y: Axis) -> Sequence[str]:
    """Return the values in words: the mean, and half the width of the band."""
    texts = [y.value_text(float(value)) if isfinite(value) else "" for value in curve.y]
    if curve.low is None or curve.high is None:
        return texts
    halves = (curve.high - curve.low) / 2
    return [
        f"{text} ± {y.value_text(float(half))}" if text and isfinite(half) else text
        for text, half in zip(texts, halves, strict=True)
    ]


def _grid(x: Axis, y: Axis, plot: Plot) -> Markup:
    frame, marks = plot.frame, []
    for value in y.at or _some_ticks(plot.up, frame):
        height = plot.y(value)
        marks.append(element("line", x1=frame.left, x2=frame.right, y1=height, y2=height))
        marks.append(element("text", y.tick_text(value), x=frame.left - 6, y=height + 3.5, text_anchor="end"))
    marks += [
        element("text", x.tick_text(value), x=plot.x(value), y=frame.bottom + 15, text_anchor="middle")
        for value in x.at or _some_ticks(plot.across, frame)
    ]
    return element("g", *marks, *(_names(x, y, frame) if frame.is_named else ()), class_="grid", aria_hidden="true")


def _some_ticks(domain: tuple[float, float], frame: Frame) -> Sequence[float]:
    """Return about as many round numbers as there is room for, and two at least: one alone tells no distance."""
    found = (ticks(*domain, frame.ticks + more) for more in range(5))
    return next((at for at in found if len(at) > 1), ticks(*domain))


def _names(x: Axis, y: Axis, frame: Frame) -> Sequence[Markup]:
    middle, turned = (frame.left + frame.right) / 2, f"translate(9 {(frame.top + frame.bottom) / 2}) rotate(-90)"
    return [
        element("text", x.label, x=middle, y=frame.height - 6, text_anchor="middle", class_="name"),
        element("text", y.label, transform=turned, text_anchor="middle", class_="name"),
    ]


def _table(panel: Panel, x: Axis, y: Axis) -> Markup:
    y = panel.y or y
    texts = [_texts(curve, y) for curve in panel.curves]
    rows = [[x.value_text(float(value)), *(column[row] for column in texts)] for row, value in enumerate(panel.x)]
    return values_table(panel.title, [x.label, *(curve.series.name for curve in panel.curves)], rows)


def _outline(places: Sequence[float], curve: Curve, plot: Plot) -> Sequence[tuple[float, float]]:
    """Return the points around a band, without those where it is not known."""
    assert curve.low is not None
    assert curve.high is not None
    above = [(place, plot.y(value)) for place, value in zip(places, curve.high, strict=True) if isfinite(value)]
    below = [(place, plot.y(value)) for place, value in zip(places, curve.low, strict=True) if isfinite(value)]
    return [*above, *reversed(below)]


def _diagonal(plot: Plot) -> Sequence[tuple[float, float]]:
    ends = (max(plot.across[0], plot.up[0]), min(plot.across[1], plot.up[1]))
    return [(plot.x(end), plot.y(end)) for end in ends]


def in_reach(curves: Sequence[Curve]) -> Sequence[Curve]:
    """Return the curves without the few whose distance would press all others into a sixth of the height.

    The baseline and the recommended loss are what a reader looks for first: they stay.
    """
    kept = sorted((curve for curve in curves if np.isfinite(curve.y).any()), key=_level)
    for _ in range(len(kept) // 3):
        span = _level(kept[-1]) - _level(kept[0])
        if not _matters(kept[0]) and _level(kept[-1]) - _level(kept[1]) < span / 6:
            kept = kept[1:]
        elif not _matters(kept[-1]) and _level(kept[-2]) - _level(kept[0]) < span / 6:
            kept = kept[:-1]
    return kept


def _matters(curve: Curve) -> bool:
    return curve.series.number == 0 or curve.series.recommended


def _level(curve: Curve) -> float:
    return float(np.nanmedian(curve.y))


def _outside(curves: Sequence[Curve], plot: Plot) -> Sequence[Markup]:
    """Return notes that name the curves which lie outside of the panel."""
    known, frame = [curve for curve in curves if np.isfinite(curve.y).any()], plot.frame
    below = [curve.series.name for curve in known if np.nanmax(curve.y) < plot.up[0]]
    above = [curve.series.name for curve in known if np.nanmin(curve.y) > plot.up[1]]
    notes = [
        (f"below: {', '.join(below)}", frame.bottom - 5) if below else None,
        (f"above: {', '.join(above)}", frame.top + 9) if above else None,
    ]
    return [element("text", words, x=frame.right, y=at, text_anchor="end", class_="outside") for words, at in filter(None, notes)]
