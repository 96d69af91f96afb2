"""Sections of a page, and what they are made of: tables, legends, choices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from lossmith.report.subject import Series
from lossmith.report.svg import element

__all__ = ["MISSING", "Section", "cases", "copyable", "figure", "legend", "loss_name", "values_table"]

MISSING = "\N{EN DASH}"
"""Stands in a table cell that has no value."""


@dataclass(frozen=True)
class Section:
    """One part of the page. Its parts are made with the functions here, and with those of ``line_panels`` and ``heat_maps``."""

    anchor: str
    """Names it in links."""
    title: str
    lead: str
    """What to see in it, in a sentence or two."""
    body: Markup


def values_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """Return a plain table whose first column names its rows.

    Args:
        caption: What the table shows.
        header: The headings of the columns.
        rows: The cells, the name of the row first.

    Returns:
        HTML.
    """
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in header)))
    body = element("tbody", *(_values_row(row) for row in rows))
    return element("div", element("table", element("caption", caption), head, body, class_="plain"), class_="scroll")


def _values_row(row: Sequence[str]) -> Markup:
    return element("tr", element("th", row[0], scope="row"), *(element("td", text) for text in row[1:]))


def legend(series: Iterable[Series]) -> Markup:
    """Return a button for each loss that shows or hides it in every figure.

    Args:
        series: The losses, in order.

    Returns:
        HTML.
    """
    return element("div", *map(_legend_button, series), class_="legend", role="group", aria_label="Losses shown in the figures")


def _legend_button(series: Series) -> Markup:
    return element(
        "button",
        _swatch(series),
        series.name,
        type="button",
        aria_pressed="true",
        data_toggle=series.number,
        class_=series.style,
    )


def _swatch(series: Series) -> Markup:
    line = element("line", x1=1, x2=21, y1=5, y2=5, class_="line")
    return element("svg", line, viewBox="0 0 22 10", class_=f"swatch {series.style}", aria_hidden="true")


def loss_name(series: Series) -> Markup:
    """Return the name of a loss with its colour.

    Args:
        series: The loss.

    Returns:
        HTML.
    """
    return element("span", _swatch(series), element("code", series.name), class_="loss")


def figure(body: Markup, caption: str, *, key: str, before: Markup | str = "") -> Markup:
    """Return a figure with its caption below; ``key`` names it for links and tests.

    Args:
        body: What is shown.
        caption: What to see in it.
        key: Names the figure, unique on the page.
        before: What stands above the body, such as a legend.

    Returns:
        HTML.
    """
    return element("figure", before, body, element("figcaption", caption), id=f"figure-{key}")


def cases(label: str, bodies: Mapping[str, Markup], key: str, first: str | None = None) -> Markup:
    """Return several bodies for the reader to choose from, ``first`` to begin with; without a script all are shown.

    Args:
        label: What is chosen, such as ``At``.
        bodies: What is shown, by the name of the choice.
        key: Names the choice, unique on the page.
        first: The name that is chosen at the beginning.

    Returns:
        HTML.
    """
    if len(bodies) == 1:
        return next(iter(bodies.values()))
    options = [
        element("option", name, value=number, selected="selected" if name == first else None)
        for number, name in enumerate(bodies)
    ]
    choice = element("label", f"{label} ", element("select", *options, id=f"choice-{key}", autocomplete="off"), class_="choice")
    shown = [
        element("div", element("p", name, class_="label case-name"), body, class_="case", data_case=number)
        for number, (name, body) in enumerate(bodies.items())
    ]
    return element("div", choice, *shown, class_="cases")


def copyable(text: str) -> Markup:
    """Return text in a box with a button that copies it.

    Args:
        text: What is copied.

    Returns:
        HTML.
    """
    button = element("button", "Copy", type="button", class_="copy")
    return element("div", element("pre", element("code", text), tabindex=0), button, class_="copyable")
