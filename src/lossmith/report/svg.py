"""Elements of drawings, and the scales that place values in them."""

from collections.abc import Iterable, Sequence
from math import ceil, floor, isfinite, log10

from markupsafe import Markup, escape

__all__ = ["element", "path", "position", "ticks"]


def element(tag: str, *children: str, **attributes: object) -> Markup:
    """Return an element; ``class_`` means class, other underscores mean hyphens, and what is None is left out.

    >>> element("g", element("text", "a < b"), class_="tick", aria_hidden="true")
    Markup('<g class="tick" aria-hidden="true"><text>a &lt; b</text></g>')
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{written}>{Markup().join(children)}</{tag}>")  # noqa: S704  every part is escaped


def path(points: Iterable[tuple[float, float]], *, close: bool = False) -> str:
    """Return the data of a path through points; where one is not finite the path has a gap.

    >>> path([(0, 1), (2, 3.25), (4, float("nan")), (6, 7)])
    'M0 1L2 3.2M6 7'
    """
    parts, pen = [], "M"
    for x, y in points:
        if isfinite(y):
            parts.append(f"{pen}{_plain(float(x))} {_plain(float(y))}")
        pen = "L" if isfinite(y) else "M"
    return "".join(parts) + ("Z" if close and parts else "")


def position(value: float, domain: tuple[float, float], pixels: tuple[float, float]) -> float:
    """Return where a value of a domain lies between two pixels."""
    share = (value - domain[0]) / (domain[1] - domain[0])
    return pixels[0] + share * (pixels[1] - pixels[0])


def ticks(low: float, high: float, about: int = 5) -> Sequence[float]:
    """Return round numbers between two values, about as many as asked for.

    >>> [round(tick, 3) for tick in ticks(0.12, 0.97)]
    [0.2, 0.4, 0.6, 0.8]
    """
    raw = (high - low) / max(about, 1)
    magnitude = 10.0 ** floor(log10(raw))
    step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= raw * 0.999)
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _plain(value: object) -> str:
    """Return numbers with a tenth of a pixel, which is more than eyes see."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
