"""The timeline in a browser: it goes on by itself while somebody looks, and not while nobody does."""

import re

import pytest
from playwright.sync_api import expect

from tests.fakes.in_process import digest_all

TIMELINE = "/w/default/timeline"
# Beyond the few streams that are held, news is asked for every three seconds.
PATIENCE = {"timeout": 20_000}


@pytest.fixture
def live(opened, site):
    page = opened(site, TIMELINE)
    expect(page.locator("#live")).to_have_text("Live", **PATIENCE)
    return page


def keep(site, content, **fields):
    return site.client.write(content, **fields)


def row(page, memory_id):
    return page.locator(f"li[data-id='{memory_id}']")


def test_a_write_appears_and_is_marked_when_it_is_digested(live, site):
    live.evaluate("window.stays = true")
    memory_id = keep(site, "<b>The crane</b> in src/crane.py lifts", session_id="harbour")
    expect(row(live, memory_id)).to_contain_text("<b>The crane</b>", **PATIENCE)
    expect(live.locator("main h2").first).to_have_text("Today")
    expect(live.locator("main h3").first).to_contain_text("harbour")
    expect(row(live, memory_id).locator(".digestion")).to_contain_text("pending: embedding")
    expect(live.locator("#live")).to_have_text("Live: 1 new memory")
    digest_all(site.worker)
    expect(row(live, memory_id).locator(".digestion")).to_have_text("✓ processed", **PATIENCE)
    site.client.delete(f"/v1/memories/{memory_id}")
    expect(row(live, memory_id)).to_have_count(0, **PATIENCE)
    assert live.evaluate("window.stays")


def test_memories_excluded_by_the_filter_do_not_appear_live(opened, site):
    page = opened(site, f"{TIMELINE}?kind=decision")
    expect(page.locator("#live")).to_have_text("Live", **PATIENCE)
    other = keep(site, "The crane lifts")
    memory_id = keep(site, "We paint the crane red", kind="decision")
    expect(row(page, memory_id)).to_be_visible(**PATIENCE)
    expect(row(page, other)).to_have_count(0)


def test_new_memories_do_not_move_the_page_until_requested(live, site):
    live.evaluate("window.scrollTo(0, 1200)")
    before = live.evaluate("document.querySelector('#journal').innerText")
    memory_id = keep(site, "The crane lifts")
    button = live.get_by_role("button", name="Show 1 new memory")
    expect(button).to_be_visible(**PATIENCE)
    assert live.evaluate("document.querySelector('#journal').innerText") == before
    button.click()
    expect(row(live, memory_id)).to_be_in_viewport()
    expect(row(live, memory_id).get_by_role("link").first).to_be_focused()
    expect(button).to_have_count(0)


def test_hidden_page_pauses_the_stream_and_catches_up(live, site):
    hide = "Object.defineProperty(document, 'visibilityState', {value: '%s', configurable: true});"
    hide += "document.dispatchEvent(new Event('visibilitychange'))"
    live.evaluate(hide % "hidden")
    expect(live.locator("#live")).to_have_text("Paused")
    memory_id = keep(site, "The crane lifts")
    live.evaluate(hide % "visible")
    expect(row(live, memory_id)).to_be_visible(**PATIENCE)


def test_more_tabs_than_are_held_go_on_too(live, opened, site):
    pages = [live, opened(site, TIMELINE), opened(site, TIMELINE)]
    memory_id = keep(site, "The crane lifts")
    for page in pages:
        expect(row(page, memory_id)).to_be_visible(**PATIENCE)


def test_older_pages_and_filters_lead_on(opened, sample):
    page = opened(sample, TIMELINE)
    page.get_by_label("Kind", exact=True).select_option("decision")
    expect(page).to_have_url(re.compile(r"kind=decision"))
    expect(page.locator("li.row .kind:not(.kind-decision)")).to_have_count(0)
    page.get_by_role("link", name="Clear").click()
    expect(page).to_have_url(f"{sample.url}{TIMELINE}")
    page.get_by_role("link", name="Older", exact=True).click()
    expect(page).to_have_url(re.compile("before="))
    assert page.locator("#live").is_hidden()
    first = page.locator("h3 a").first
    session = first.inner_text()
    first.click()
    expect(page.get_by_label("Session", exact=True)).to_have_value(session)
    page.locator("li.row a").first.click()
    expect(page).to_have_url(re.compile("/memories/"))
