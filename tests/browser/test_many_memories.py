"""The pages before a workspace of many memories."""

import pytest
from playwright.sync_api import expect

from tests.browser.pages import LISTS
from tests.fakes.dashboard import Site, serve_containers
from tests.fakes.in_process import fast_settings, open_web, open_worker
from tests.fakes.multitude import fill

MEMORIES = 20_000
MOST_BYTES = 100_000


@pytest.fixture(scope="module")
def multitude(tmp_path_factory):
    settings = fast_settings(tmp_path_factory.mktemp("multitude") / "home")
    container = open_web(settings)
    fill(container.databases.get("default", create=True), MEMORIES)
    with serve_containers(container, open_worker(settings)) as site:
        site.sleep("segment")
        yield site


def paths(site: Site) -> list[str]:
    def first(path: str) -> dict:
        return site.client.get(path).get_json()["items"][0]

    return [
        *(f"/w/default{path}" for path in LISTS),
        f"/w/default/memories/{first('/v1/memories')['id']}",
        f"/w/default/entities/{first('/v1/entities')['id']}",
        "/w/default/recall?q=which+service+reads+the+key",
    ]


def test_every_page_opens_and_stays_small(opened, multitude):
    page = opened(multitude)
    sizes = {}
    for path in paths(multitude):
        answer = page.goto(path)
        assert answer.status == 200, path
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        sizes[path] = len(answer.body())
    assert {path: size for path, size in sizes.items() if size > MOST_BYTES} == {}


@pytest.mark.parametrize("path", ["/timeline", "/entities", "/lessons", "/goals", "/facts"])
def test_a_long_list_goes_on(opened, multitude, path):
    page = opened(multitude, f"/w/default{path}")
    seen = page.locator("main").inner_text()
    page.locator("a[rel=next]").click()
    expect(page.locator("main")).not_to_have_text(seen)
    assert "before=" in page.url
