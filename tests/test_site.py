"""The site in a real browser, where ``make docs`` has built it."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parent.parent / "docs" / "_build" / "html"
PAGES = (
    *(
        "index",
        "start",
        "statistics",
        "evidence",
        "changes",
        "integrations/README",
        "losses/index",
        "losses/gce",
        "reference/losses",
    ),
    *(f"tutorials/{name}" for name in ("noisy-table", "texts", "rare-classes", "language-model", "own-loss", "cluster")),
)

pytestmark = pytest.mark.skipif(not (SITE / "searchindex.js").exists(), reason="make docs has not built the site")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_and_complain_of_nothing(page, observed, width, scheme):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    for name in PAGES:
        page.goto((SITE / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        red = int(page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]"))
        assert (red > 128) == (scheme == "light"), name
    assert observed.errors == []
    assert not [request for request in observed.requests if not request.startswith("file:")]


@cache
def places(file):
    """Return what a link into a page may name."""
    return set(re.findall(r'\bid="([^"]+)"', file.read_text(encoding="utf-8")))


def leads_nowhere(page, link):
    parts = urlsplit(link)
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    return not file.exists() or bool(parts.fragment and unquote(parts.fragment) not in places(file))


def test_links_lead_somewhere():
    pages = list(SITE.rglob("*.html"))
    links = {(page, link) for page in pages for link in re.findall(r'<a [^>]*href="([^"]*)"', page.read_text(encoding="utf-8"))}
    within = [(page, link) for page, link in links if not urlsplit(link).scheme]
    assert len(within) > 5000
    assert not [f"{page.relative_to(SITE)}: {link}" for page, link in within if leads_nowhere(page, link)]


def test_search_finds_a_loss(page, observed):
    page.goto((SITE / "search.html").as_uri() + "?q=bi-tempered")
    page.locator("#search-results li a").first.wait_for()
    assert "bi-tempered" in page.locator("#search-results").inner_text().lower()
    assert observed.errors == []
