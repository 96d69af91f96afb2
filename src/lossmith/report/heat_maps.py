"""Matrices as colours: confusion, realised noise, and whatever else compares classes or losses with one another."""

import base64
from collections.abc import Sequence
from io import BytesIO

import numpy as np
from markupsafe import Markup
from PIL import Image

from lossmith.report.elements import MISSING, values_table
from lossmith.report.svg import element

__all__ = ["heat_map"]

MOST_CELLS = 30
"""Rows up to which each cell is an element of its own, with its value under the pointer; larger matrices are one image."""

MOST_NUMBERS = 12
"""Rows up to which cells show their value."""

_SIZE = 300
_MARGIN = 72
_BELOW = 76
_COLOUR = (28, 110, 164)


def heat_map(
    title: str,
    matrix: np.ndarray,
    names: Sequence[str],
    row_title: str,
    column_title: str,
    *,
    span: tuple[float, float] | None = None,
) -> Markup:
    """Return a drawing of a square matrix of shares in [0, 1], and the same as a table where it is small enough to read.

    ``span`` are values between which the colour grows evenly. Without it the colour is the root of the share, which lets rare
    mistakes be seen beside a full diagonal. Values that are missing, NaN, leave their cell empty.
    """
    strengths = _strengths(matrix, span)
    small = len(matrix) <= MOST_CELLS
    cells = _cells(matrix, strengths, names, (row_title, column_title)) if small else _image(strengths)
    drawing = element(
        "svg",
        cells,
        _names(names) if small else "",
        element("rect", class_="frame", x=_MARGIN, y=0, width=_SIZE, height=_SIZE),
        element("text", row_title, class_="name", transform=f"translate(9 {_SIZE / 2}) rotate(-90)", text_anchor="middle"),
        element("text", column_title, class_="name", x=_MARGIN + _SIZE / 2, y=_SIZE + _BELOW - 6, text_anchor="middle"),
        viewBox=f"0 -2 {_MARGIN + _SIZE + 2} {_SIZE + _BELOW + 2}",
        role="img",
        aria_label=f"{title}. Rows: {row_title}; columns: {column_title}. {_diagonal(matrix)}",
        class_="heat",
    )
    table = _table(title, matrix, names, row_title) if small else Markup()
    return element("div", element("p", title, class_="label"), drawing, table, class_="panel")


def _table(title: str, matrix: np.ndarray, names: Sequence[str], row_title: str) -> Markup:
    rows = [[name, *map(_written, row)] for name, row in zip(names, matrix, strict=True)]
    table = values_table(f"{title}, in percent", [row_title, *names], rows)
    return element("details", element("summary", "As a table"), table, class_="values")


def _cells(matrix: np.ndarray, strengths: np.ndarray, names: Sequence[str], titles: tuple[str, str]) -> Markup:
    size = _SIZE / len(matrix)
    marks = []
    for (row, column), value in np.ndenumerate(matrix):
        x, y, strength = _MARGIN + column * size, row * size, strengths[row, column]
        tip = f"{titles[0]} {names[row]}, {titles[1]} {names[column]}: {_written(value)}{' %' if np.isfinite(value) else ''}"
        marks.append(element("rect", x=x, y=y, width=size, height=size, fill_opacity=f"{strength:.3f}", data_tip=tip))
        if len(matrix) <= MOST_NUMBERS and value >= 0.005:
            mark = "on" if strength > 0.55 else None
            marks.append(element("text", f"{100 * value:.0f}", x=x + size / 2, y=y + size / 2 + 3.5, class_=mark))
    return element("g", *marks, class_="cells")


def _names(names: Sequence[str]) -> Markup:
    size = _SIZE / len(names)
    height = min(11.0, size * 0.9)
    marks = []
    for number, name in enumerate(names):
        at = (number + 0.5) * size
        short = name if len(name) <= 8 else f"{name[:7]}…"
        marks.append(element("text", short, x=_MARGIN - 5, y=at + 3.5, text_anchor="end", font_size=height))
        turned = f"translate({_MARGIN + at + 3.5:.1f} {_SIZE + 6}) rotate(-90)"
        flat = {"x": _MARGIN + at, "y": _SIZE + 14.0, "text_anchor": "middle"}
        fits = max(map(len, names)) * 6 < size
        place = flat if fits else {"transform": turned, "text_anchor": "end"}
        marks.append(element("text", short, font_size=height, **place))
    return element("g", *marks, class_="grid")


def _image(strengths: np.ndarray) -> Markup:
    pixels = np.zeros((*strengths.shape, 4), np.uint8)
    pixels[..., :3] = _COLOUR
    pixels[..., 3] = np.rint(255 * strengths)
    file = BytesIO()
    Image.fromarray(pixels, "RGBA").save(file, "PNG", optimize=True)
    source = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    return element("image", href=source, x=_MARGIN, y=0, width=_SIZE, height=_SIZE, class_="pixels")


def _strengths(matrix: np.ndarray, span: tuple[float, float] | None) -> np.ndarray:
    """Return how strong the colour of each value is, from 0 to 1."""
    low, high = span or (0.0, 1.0)
    share = np.clip((matrix - low) / max(high - low, 1e-9), 0.0, 1.0)
    return np.nan_to_num(np.sqrt(share) if span is None else share)


def _written(value: float) -> str:
    return f"{100 * value:.1f}" if np.isfinite(value) else MISSING


def _diagonal(matrix: np.ndarray) -> str:
    known = np.diag(matrix)[np.isfinite(np.diag(matrix))]
    return f"Mean diagonal: {known.mean():.1%}." if len(known) else ""
