"""What a page consists of below its answer."""

from dataclasses import dataclass

from markupsafe import Markup

__all__ = ["Section"]


@dataclass(frozen=True)
class Section:
    """One part of the page. Its parts are made with the functions of ``elements``, ``line_panels`` and ``heat_maps``."""

    anchor: str
    """Names it in links."""
    title: str
    lead: str
    """What to see in it, in a sentence or two."""
    body: Markup
