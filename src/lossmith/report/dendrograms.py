"""Trees that join what is most alike first."""

from collections.abc import Sequence

import pandas as pd
from markupsafe import Markup

from lossmith.report.elements import values_table
from lossmith.report.subject import Series
from lossmith.report.svg import element, path, position, ticks

__all__ = ["dendrogram"]

_NAMES = 176
_WIDTH = 420
_LINE = 13
_BELOW = 34

Brackets = Sequence[Sequence[tuple[float, float]]]


def dendrogram(title: str, similarity: pd.DataFrame, brackets: Brackets, looks: Sequence[Series]) -> Markup:
    """Return a drawing of a tree with a line of text for each leaf, and which leaf is most like which as a table.

    ``similarity`` is in the order of the leaves, ``brackets`` have four corners (position, 1 - similarity) for each join.
    """
    height = _LINE * len(similarity)
    deepest = max((depth for bracket in brackets for _, depth in bracket), default=0.0) or 1.0
    marks = [_leaf(place, str(name), look) for place, (name, look) in enumerate(zip(similarity.index, looks, strict=True))]
    joins = [path([(_across(depth, deepest), (place + 0.5) * _LINE) for place, depth in bracket]) for bracket in brackets]
    drawing = element(
        "svg",
        _scale(deepest, height),
        element("g", *marks),
        element("path", d="".join(joins), class_="line hue0"),
        viewBox=f"0 0 {_WIDTH} {height + _BELOW}",
        role="img",
        aria_label=f"{title}: a tree of {len(similarity)} runs. From top to bottom: {'; '.join(map(str, similarity.index))}.",
    )
    return element("div", element("h4", title), drawing, _nearest(title, similarity), class_="panel")


def _across(depth: float, deepest: float) -> float:
    return position(depth, (0.0, deepest), (_NAMES + 12.0, _WIDTH - 8.0))


def _leaf(place: int, name: str, look: Series) -> Markup:
    at = (place + 0.5) * _LINE
    short = name if len(name) <= 32 else f"{name[:18]}…{name[-13:]}"
    mark = element("circle", cx=_NAMES + 6.0, cy=at, r=3.0, style="fill: var(--hue)", class_=look.style)
    return element("text", short, x=_NAMES - 4, y=at + 3.5, text_anchor="end", font_size=10, data_tip=name) + mark


def _scale(deepest: float, height: int) -> Markup:
    marks = []
    for depth in ticks(0.0, deepest, 6):
        x = _across(depth, deepest)
        marks.append(element("line", x1=x, x2=x, y1=0, y2=height))
        marks.append(element("text", f"{100 * (1 - depth):.3g} %", x=x, y=height + 13, text_anchor="middle"))
    words = element("text", "same prediction", x=(_NAMES + _WIDTH) / 2, y=height + 29, text_anchor="middle", class_="name")
    return element("g", *marks, words, class_="grid")


def _nearest(title: str, similarity: pd.DataFrame) -> Markup:
    """Return which run each is most like."""
    rows = []
    for name, row in similarity.iterrows():
        others = row.drop(name)
        rows.append([str(name), str(others.idxmax()), f"{100 * others.max():.1f}"] if len(others) else [str(name), "", ""])
    table = values_table(title, ["run", "most like", "same prediction, percent"], rows)
    return element("details", element("summary", "As a table"), table, class_="values")
