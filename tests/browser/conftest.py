"""A real Chromium before the real pages; whatever its console complains of fails the test."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.chromium import find_chromium
from tests.fakes.canal import load_canal
from tests.fakes.dashboard import Site, serve_site

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)


# Of this folder alone: as long as Playwright runs, no other test of this process can have an event loop.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield browser
        browser.close()


@dataclass
class Complaints:
    """What a page's console, its scripts and its requests complained of."""

    found: list[str] = field(default_factory=list)

    def listen_to(self, page: Page) -> None:
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.found.append(f"script: {error}"))
        page.on("requestfailed", lambda request: self._note_failed(request.url, request.failure))
        page.on("response", lambda r: self.found.append(f"{r.status} {r.url}") if r.status >= 400 else None)

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.found.append(f"console: {message.text}")

    def _note_failed(self, url: str, failure: str | None) -> None:
        # A page that is left cuts its open requests short.
        if failure != "net::ERR_ABORTED":
            self.found.append(f"{failure} {url}")


class Visits:
    """Open pages of a site, signed in: `opened(site, "/w/default/goals", width=360, theme="dark")`."""

    def __init__(self, chromium: Browser) -> None:
        self._chromium = chromium
        self._contexts: list[BrowserContext] = []
        self.complaints = Complaints()

    def __call__(
        self, site: Site, path: str = "/", *, width: int = 1280, height: int = 900, theme: str = "light"
    ) -> Page:
        context = self._chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, base_url=site.url, reduced_motion="reduce"
        )
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        self.complaints.listen_to(page)
        page.goto(site.link())
        page.goto(path)
        return page

    def end(self) -> None:
        """Close every page; a site must outlive those that look at it."""
        while self._contexts:
            self._contexts.pop().close()


@pytest.fixture
def opened(chromium: Browser) -> Iterator[Visits]:
    visits = Visits(chromium)
    yield visits
    visits.end()
    assert visits.complaints.found == []


@pytest.fixture(scope="session")
def lived_in(tmp_path_factory) -> Path:
    """A home with the sample history, digested and slept over; to be copied."""
    home: Path = tmp_path_factory.mktemp("lived_in") / "home"
    with serve_site(home, load_canal()):
        return home


@pytest.fixture(scope="package")
def sample(lived_in, tmp_path_factory) -> Iterator[Site]:
    """The sample history; for tests that change nothing that others look at."""
    with serve_site(shutil.copytree(lived_in, tmp_path_factory.mktemp("sample") / "home")) as site:
        site.tell_fact()
        yield site


@pytest.fixture
def site(lived_in, tmp_path, opened) -> Iterator[Site]:
    """The sample history, of this test alone."""
    with serve_site(shutil.copytree(lived_in, tmp_path / "home")) as site:
        yield site
        opened.end()
