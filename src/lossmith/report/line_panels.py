"""Figures of curves: small panels side by side, drawn once here, with values that the page's script shows under the pointer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from markupsafe import Markup

from lossmith.report.elements import values_table
from lossmith.report.subject import Series
from lossmith.report.svg import element, path, position, ticks

__all__ = ["Axis", "Curve", "Panel", "fitting_range", "in_reach", "line_panel", "line_panels", "plot_clip"]

WIDTH, HEIGHT = 360, 236
LEFT, RIGHT, TOP, BOTTOM = 46, 350, 10, 198


@dataclass(frozen=True, eq=False)
class Curve:
    """One line: its values where the panel's ``x`` are, and a band around them."""

    series: Series
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Panel:
    """A drawing with several curves over the same places."""

    title: str
    x: np.ndarray
    curves: Sequence[Curve]
    y: "Axis | None" = None
    """Its own vertical axis, where panels side by side show different things."""


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


def line_panels(panels: Sequence[Panel], x: Axis, y: Axis, *, diagonal: bool = False, dots: bool = False) -> Markup:
    """Return panels side by side and, folded away, the table of their values.

    ``diagonal`` draws the line on which both axes are equal; ``dots`` marks every value.
    """
    drawn = [line_panel(panel, x, y, diagonal=diagonal, dots=dots) for panel in panels]
    tables = [_table(panel, x, y) for panel in panels]
    return element("div", *drawn, class_="panels") + element(
        "details", element("summary", "These values as a table"), *tables, class_="values"
    )


def plot_clip() -> Markup:
    """Return the part of the plane that curves may use, which a page with panels needs once."""
    area = element("rect", x=LEFT - 5, y=TOP - 5, width=RIGHT - LEFT + 10, height=BOTTOM - TOP + 10)
    return element("svg", element("clipPath", area, id="plot"), width=0, height=0, class_="hidden", aria_hidden="true")


def line_panel(panel: Panel, x: Axis, y: Axis, *, diagonal: bool = False, dots: bool = False) -> Markup:
    """Return one panel alone, for a place where the table of its values would be too much."""
    y = panel.y or y
    across = x.domain or _range([panel.x], 0.0)
    up = y.domain or fitting_range(in_reach(panel.curves), margin=0.05)
    places = [position(float(value), across, (LEFT, RIGHT)) for value in panel.x]
    marks = [_curve(curve, places, up, y, dots) for curve in panel.curves]
    line = element("path", class_="diagonal", d=path(_diagonal(across, up))) if diagonal else Markup()
    drawing = element(
        "svg",
        _grid(x, across, y, up),
        line,
        *marks,
        *_outside(panel.curves, up),
        element("line", class_="cursor", y1=TOP, y2=BOTTOM),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"{panel.title or 'Overview'}. {y.label} against {x.label}. A table below has the values.",
        tabindex=0,
        data_places=" ".join(f"{place:.1f}" for place in places),
        data_heads="|".join(f"{x.label} {x.value_text(float(value))}" for value in panel.x),
    )
    return element("div", element("p", panel.title, class_="label") if panel.title else "", drawing, class_="panel")


def _curve(curve: Curve, places: Sequence[float], up: tuple[float, float], y: Axis, dots: bool) -> Markup:
    heights = [_height(value, up) for value in curve.y]
    band = Markup()
    if curve.low is not None and curve.high is not None:
        band = element("path", class_="band", d=path(_outline(places, curve, up), close=True))
    marks = [
        element("circle", cx=place, cy=height, r=2.6)
        for place, height in zip(places, heights, strict=True)
        if dots and isfinite(height)
    ]
    return element(
        "g",
        band,
        element("path", class_="line", d=path(zip(places, heights, strict=True))),
        *marks,
        class_=f"series {curve.series.style}",
        clip_path="url(#plot)",
        data_series=curve.series.number,
        data_name=curve.series.name,
        data_heights=" ".join(f"{height:.1f}" for height in heights),
        data_texts="|".join(_texts(curve, y)),
    )


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


def _grid(x: Axis, across: tuple[float, float], y: Axis, up: tuple[float, float]) -> Markup:
    rows, columns = y.at or ticks(*up), x.at or ticks(*across)
    marks = []
    for value in rows:
        height = _height(value, up)
        marks.append(element("line", x1=LEFT, x2=RIGHT, y1=height, y2=height))
        marks.append(element("text", y.tick_text(value), x=LEFT - 6, y=height + 3.5, text_anchor="end"))
    for value in columns:
        place = position(value, across, (LEFT, RIGHT))
        marks.append(element("text", x.tick_text(value), x=place, y=BOTTOM + 15, text_anchor="middle"))
    names = [
        element("text", x.label, x=(LEFT + RIGHT) / 2, y=HEIGHT - 6, text_anchor="middle", class_="name"),
        element("text", y.label, transform=f"translate(9 {(TOP + BOTTOM) / 2}) rotate(-90)", text_anchor="middle", class_="name"),
    ]
    return element("g", *marks, *names, class_="grid", aria_hidden="true")


def _table(panel: Panel, x: Axis, y: Axis) -> Markup:
    y = panel.y or y
    texts = [_texts(curve, y) for curve in panel.curves]
    rows = [[x.value_text(float(value)), *(column[row] for column in texts)] for row, value in enumerate(panel.x)]
    return values_table(panel.title, [x.label, *(curve.series.name for curve in panel.curves)], rows)


def _outline(places: Sequence[float], curve: Curve, up: tuple[float, float]) -> Sequence[tuple[float, float]]:
    """Return the points around a band, without those where it is not known."""
    assert curve.low is not None
    assert curve.high is not None
    above = [(place, _height(value, up)) for place, value in zip(places, curve.high, strict=True) if isfinite(value)]
    below = [(place, _height(value, up)) for place, value in zip(places, curve.low, strict=True) if isfinite(value)]
    return [*above, *reversed(below)]


def _height(value: float, up: tuple[float, float]) -> float:
    return position(float(value), up, (BOTTOM, TOP))


def _diagonal(across: tuple[float, float], up: tuple[float, float]) -> Sequence[tuple[float, float]]:
    ends = (max(across[0], up[0]), min(across[1], up[1]))
    return [(position(end, across, (LEFT, RIGHT)), _height(end, up)) for end in ends]


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


def fitting_range(curves: Sequence[Curve], *, skip: float = 0.0, margin: float = 0.0) -> tuple[float, float]:
    """Return the range of curves and their bands with a margin; a share of each curve's beginning may be left out of it."""
    parts = [part for curve in curves for part in (curve.y, curve.low, curve.high) if part is not None]
    return _range([part[int(skip * len(part)) :] for part in parts], margin)


def _level(curve: Curve) -> float:
    return float(np.nanmedian(curve.y))


def _outside(curves: Sequence[Curve], up: tuple[float, float]) -> Sequence[Markup]:
    """Return notes that name the curves which lie outside of the panel."""
    known = [curve for curve in curves if np.isfinite(curve.y).any()]
    below = [curve.series.name for curve in known if np.nanmax(curve.y) < up[0]]
    above = [curve.series.name for curve in known if np.nanmin(curve.y) > up[1]]
    notes = [
        (f"below: {', '.join(below)}", BOTTOM - 5) if below else None,
        (f"above: {', '.join(above)}", TOP + 9) if above else None,
    ]
    return [element("text", words, x=RIGHT, y=at, text_anchor="end", class_="outside") for words, at in filter(None, notes)]


def _range(parts: Sequence[np.ndarray], margin: float) -> tuple[float, float]:
    """Return the range of all finite values and a margin, never empty."""
    values = np.concatenate([np.asarray(part, float) for part in parts]) if parts else np.empty(0)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if low == high:
        low, high = low - 0.05 * (abs(low) or 1), high + 0.05 * (abs(high) or 1)
    extra = margin * (high - low)
    return low - extra, high + extra
