"""Lessons in a browser: answered for an agent, archived, found by words, and all of it taken back."""

from playwright.sync_api import expect


def record(site, text):
    items = site.client.get("/v1/lessons").get_json()["items"]
    return next(((item["followed"], item["ignored"]) for item in items if text in item["content"]), None)


def test_a_person_answers_and_archives_and_takes_both_back(opened, site):
    text = "Never trust the clock of a moored boat"
    site.write([{"content": text, "kind": "lesson"}])
    site.client.get("/v1/lessons?q=never+trust+the+clock+of+a+moored+boat&session=s1")
    page = opened(site, "/w/default/lessons")
    page.get_by_label("Search text").fill("moored clock")
    page.get_by_label("Sort by").select_option("shown")
    row = page.locator("li.row", has_text=text)
    expect(page.locator("ul.rows > li")).to_have_count(1)
    row.get_by_text("Recent uses").click()
    expect(row).to_contain_text("s1")
    row.get_by_role("link", name="Rate these uses").click()
    page.get_by_role("button", name="Mark as followed").click()
    expect(page.get_by_role("status")).to_contain_text("Marked as followed.")
    assert record(site, text) == (1, 0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("no answer yet")).to_be_visible()
    assert record(site, text) == (0, 0)
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("status")).to_contain_text("archived")
    assert record(site, text) is None
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("Lesson restored.")
    assert record(site, text) == (0, 0)
