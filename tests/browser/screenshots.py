"""Draw every page over the sample history, light and dark, with real models, into docs/screenshots."""

import re
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from config.settings import Settings
from pipeline.bootstrap.web import WebContainer
from pipeline.bootstrap.worker import WorkerContainer
from pipeline.features.maintenance.registry import BY_NAME
from pipeline.index.encoder import ENGLISH
from tests.browser.chromium import find_chromium
from tests.browser.conftest import ARGUMENTS
from tests.browser.pages import list_pages
from tests.fakes.canal import load_canal
from tests.fakes.dashboard import Site, serve_containers
from tests.fakes.in_process import digest_all

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
WINDOW = {"width": 1360, "height": 850}
QUESTION = "/recall?q=What+turned+out+to+be+wrong+in+STA-417%3F"
PROMPT = "A chamber was confirmed twice again. What must the allocator do before it looks at the capacity?"
ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
# A script may draw after the page has loaded.
SETTLED_MS = 1200


def main() -> None:
    """Draw the pages."""
    if find_chromium() is None:
        raise SystemExit("Chromium is not installed on this machine")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="reverie-screenshots-") as home:
        settings = Settings(home=Path(home))
        worker = WorkerContainer(settings)
        worker.encoders.get(ENGLISH)  # compiled now: the web server waits for it
        container = WebContainer(settings, lambda _workspace, _stage: None)
        container.encoders.load(ENGLISH)
        with serve_containers(container, worker) as site:
            _live(site)
            _draw(site)


def _live(site: Site) -> None:
    """Let the history be written, asked, acted upon and slept over."""
    site.write(load_canal())
    site.tell_fact()
    for number in range(6):
        answer = site.client.post("/v1/prepare", {"message": PROMPT, "session_id": f"session-{number}"}).get_json()
        for lesson in answer["lessons"]:
            surface = f"/v1/lessons/surfaces/{lesson['surface_id']}"
            site.client.post(surface, {"followed": number != 2})
    site.sleep(*(name for name in BY_NAME if name != "touches"))
    # What the jobs wrote is digested, too, by a worker that is there.
    digest_all(site.worker)
    site.worker.operations.report_worker(site.worker.owner)


def _draw(site: Site) -> None:
    pages = {_name(path): path for path in list_pages(site)}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(ARGUMENTS))
        for theme in ("light", "dark"):
            context = browser.new_context(viewport=WINDOW, color_scheme=theme, base_url=site.url)
            page = context.new_page()
            page.goto(site.link())
            for name, path in (pages | {"recall": f"/w/default{QUESTION}"}).items():
                page.goto(path)
                page.wait_for_timeout(SETTLED_MS)
                page.screenshot(path=FOLDER / f"{name}-{theme}.png")
                print(FOLDER / f"{name}-{theme}.png")
        browser.close()


def _name(path: str) -> str:
    """Return what a page's pictures are called: `facts`, `facts-one`, `memories-one`."""
    parts = path.removeprefix("/w/default/").partition("?")[0].split("/")
    return "-".join("one" if ULID.fullmatch(part) else part for part in parts) or "overview"


if __name__ == "__main__":
    main()
