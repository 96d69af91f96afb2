"""The site in a real browser, where ``make docs`` has built it."""

from pathlib import Path

import pytest

SITE = Path(__file__).parent.parent / "docs" / "_build" / "html"
PAGES = ("index", "start", "losses/gce", "reference/losses", "tutorials/noisy-table", "statistics")

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


def test_search_finds_a_loss(page, observed):
    page.goto((SITE / "search.html").as_uri() + "?q=bi-tempered")
    page.locator("#search-results li a").first.wait_for()
    assert "bi-tempered" in page.locator("#search-results").inner_text().lower()
    assert observed.errors == []
