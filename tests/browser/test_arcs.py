"""Arcs in a browser: filtered, opened, followed to a memory."""

from playwright.sync_api import expect


def test_an_arc_is_found_by_its_status_and_leads_to_its_memories(opened, sample):
    arc = sample.client.get("/v1/arcs").get_json()["items"][0]
    page = opened(sample, "/w/default/arcs")
    page.get_by_label("Status").select_option(arc["status"])
    expect(page).to_have_url(f"{sample.url}/w/default/arcs?status={arc['status']}")
    page.locator(f"a[href$='/arcs/{arc['id']}']").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(arc["title"])
    expect(page.locator("svg.pulse rect").first).to_be_visible()
    rows = page.locator("ol.rows li.row")
    expect(rows).to_have_count(arc["size"])
    rows.last.get_by_role("link").first.click()
    expect(page).to_have_url(f"{sample.url}/w/default/memories/{arc['members'][-1]['id']}")


def test_on_a_phone_nothing_runs_off_the_side(opened, sample):
    arc = sample.client.get("/v1/arcs").get_json()["items"][0]
    for path in ("/w/default/arcs", f"/w/default/arcs/{arc['id']}"):
        page = opened(sample, path, width=360)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
