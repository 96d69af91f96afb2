"""Fixtures that open pages in a real, headless Chromium: ``page``, and ``observed`` for what the page did.

A test writes a file, calls ``page.goto(file.as_uri())`` and then asserts that ``observed.errors`` and ``observed.requests`` are
empty.
``page.set_viewport_size`` and ``page.emulate_media`` change the width, the colour scheme, and to print.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, sync_playwright

__all__ = ["Observed", "chromium", "observed", "page"]

PROGRAMS = (os.environ.get("LOSSMITH_CHROMIUM", "chromium"), "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, PROGRAMS)), None)


@dataclass
class Observed:
    """What a page did besides showing itself: complaints on the console, uncaught errors, requests beyond its own file."""

    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.type}: {message.text}")

    def on_error(self, error: Error) -> None:
        self.errors.append(f"uncaught: {error}")

    def on_request(self, request: Request) -> None:
        if not request.is_navigation_request() and not request.url.startswith(("data:", "blob:")):
            self.requests.append(request.url)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a process."""
    if CHROMIUM is None:
        pytest.skip("no Chromium found: install Debian's chromium, or name the program in LOSSMITH_CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def observed() -> Observed:
    """What the test's page did; see Observed."""
    return Observed()


@pytest.fixture
def page(chromium: Browser, observed: Observed) -> Iterator[Page]:
    """A fresh page, with no memory of other tests, of a desktop's width."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    fresh = context.new_page()
    fresh.set_default_timeout(60_000)  # waits end with the event they wait for; only a page that never shows it takes so long
    fresh.on("console", observed.on_console)
    fresh.on("pageerror", observed.on_error)
    fresh.on("request", observed.on_request)
    yield fresh
    context.close()
