"""Facts in a browser: asked about any moment, by hand and by keyboard."""

import re

import pytest
from playwright.sync_api import expect

FACT = "/w/default/facts/one?subject=crane&attribute=limit"


@pytest.fixture
def fact_site(site):
    """A site that knows three values of one fact, the last of them in the future."""
    for value, since in ((5433, "2026-01-27"), (5434, "2026-03-02"), (6432, "2126-01-01")):
        body = {"value": value, "valid_from": f"{since}T00:00:00Z"}
        assert site.client.put("/v1/facts/crane/limit", body).status_code == 200
    return site


def test_time_slider_shows_values_of_any_time_without_leaving_the_page(opened, fact_site):
    page = opened(fact_site, FACT)
    expect(page.locator(".held")).to_contain_text("5434")
    slider = page.get_by_role("slider", name="Time")
    slider.focus()
    slider.press("Home")
    expect(page.locator(".held")).to_contain_text("5433")
    expect(page).to_have_url(re.compile("as_of=2026-01-27"))
    expect(slider).to_be_focused()
    slider.press("End")
    expect(page.locator(".held")).to_contain_text("6432")
    page.get_by_label("Values at (UTC)").fill("2026-02-01T00:00:00")
    expect(page.locator(".held")).to_contain_text("5433")
    page.reload()
    expect(page.locator(".held")).to_contain_text("5433")
    page.get_by_role("link", name="Now", exact=True).click()
    expect(page.locator(".held")).to_contain_text("5434")


def test_focused_timeline_value_shows_a_caption_and_enter_opens_it(opened, fact_site):
    page = opened(fact_site, FACT)
    page.get_by_role("link", name=re.compile("^5434, from 2026-03-02")).focus()
    expect(page.locator("[data-caption-of]")).to_contain_text("5434, from 2026-03-02 00:00 until 2126-01-01")
    page.keyboard.press("Enter")
    expect(page.locator("li:target")).to_contain_text("5434")


def test_on_a_phone_nothing_runs_off_the_side(opened, fact_site):
    fact_site.client.put("/v1/facts/staging-database/note", {"value": "w" * 2000})
    for path in ("/w/default/facts", "/w/default/facts/of?subject=crane", FACT):
        page = opened(fact_site, path, width=360)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
