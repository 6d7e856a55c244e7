"""One memory in a browser: changed, pinned, archived, purged, and each taken back that can be."""

import re

from playwright.sync_api import expect


def record(site, content, **fields):
    memory_id = site.client.write(content, **fields)
    return memory_id, f"/w/default/memories/{memory_id}"


def read(site, memory_id):
    return site.client.get(f"/v1/memories/{memory_id}").get_json()


def expect_status(page, text):
    expect(page.get_by_role("status")).to_contain_text(text)


def press(page, name):
    page.get_by_role("main").get_by_role("button", name=name, exact=True).click()


def test_a_memory_is_changed_and_every_change_taken_back(opened, site):
    memory_id, path = record(site, "It listens on port 5433, behind the proxy", source="import", tags=["ops"])
    page = opened(site, path)

    page.locator("#edit > summary").click()
    page.get_by_role("textbox", name="Text").fill("It listens on port 6543, behind the proxy")
    page.get_by_label("Tags", exact=True).fill("ops net")
    page.get_by_role("spinbutton", name="Importance").fill("0.9")
    press(page, "Save")
    expect_status(page, "changed")
    expect(page.locator(".history del")).to_have_text("5433")
    expect(page.locator(".history ins")).to_have_text("6543")
    changed = read(site, memory_id)
    assert (changed["tags"], changed["importance"]) == (["ops", "net"], 0.9)
    press(page, "Undo")
    expect_status(page, "changed")
    worker = read(site, memory_id)
    assert (worker["content"], worker["tags"]) == ("It listens on port 5433, behind the proxy", ["ops"])

    for button, undone, field, values in (
        ("Pin", "Pin", "pinned", (True, False)),
        ("Confirm", "Confirm", "trust", ("trusted", "evidence")),
    ):
        press(page, button)
        expect(page.get_by_role("button", name=button, exact=True)).to_have_count(0)
        assert read(site, memory_id)[field] == values[0]
        press(page, "Undo")
        expect(page.get_by_role("button", name=undone, exact=True)).to_be_visible()
        assert read(site, memory_id)[field] == values[1]

    press(page, "Archive")
    expect_status(page, "archived")
    assert read(site, memory_id)["archived_at"] is not None
    press(page, "Undo")
    expect_status(page, "restored")
    press(page, "Archive")
    press(page, "Restore")
    expect(page.get_by_role("button", name="Archive", exact=True)).to_be_visible()
    assert read(site, memory_id)["archived_at"] is None


def test_a_purge_takes_two_clicks_and_leaves_nothing(opened, site):
    memory_id, path = record(site, "The flumadiddle is in the cellar")
    page = opened(site, path)
    page.get_by_role("link", name="Purge…").click()
    expect(page.get_by_text("This cannot be undone.")).to_be_visible()
    page.get_by_role("link", name="Back").click()
    assert read(site, memory_id)["content"] == "The flumadiddle is in the cellar"
    page.get_by_role("link", name="Purge…").click()
    press(page, "Purge permanently")
    expect_status(page, "purged")
    expect(page).to_have_url(re.compile("/timeline$"))
    expect(page.get_by_text("flumadiddle")).to_have_count(0)
    assert site.client.get(f"/v1/memories/{memory_id}").status_code == 404


def test_a_record_leads_on(opened, sample):
    page = opened(sample, "/w/default/timeline?session=staithe-2026-01-12-kickoff")
    page.locator("li.row a", has_text="Wim Dekker").first.click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.locator("section[aria-labelledby=comes] a").first.click()
    expect(page).to_have_url(re.compile("session="))
    page.go_back()
    page.locator(".entities a").first.click()
    expect(page).to_have_url(re.compile("/entities/"))
