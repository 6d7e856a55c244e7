"""Goals in a browser: their status changed by choosing it, and the list filtered."""

from playwright.sync_api import expect


def test_a_goal_is_done_and_undone(opened, site):
    (goal,) = site.write([{"content": "Ship the importer before the fair", "kind": "goal"}])
    page = opened(site, "/w/default/goals")
    row = page.locator("li.row", has_text="Ship the importer")
    row.get_by_label("Status of this goal").select_option("done")
    expect(page.get_by_role("status")).to_contain_text("is now done")
    assert site.client.get(f"/v1/memories/{goal}").get_json()["details"]["status"] == "done"
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("is now open")
    assert site.client.get(f"/v1/memories/{goal}").get_json()["details"]["status"] == "open"


def test_goals_are_filtered_by_status(opened, site):
    site.write([{"content": "Write the migration guide", "kind": "goal"}])
    page = opened(site, "/w/default/goals")
    page.get_by_label("Status", exact=True).select_option("dropped")
    expect(page).to_have_url(f"{site.url}/w/default/goals?status=dropped")
    expect(page.locator("li.row", has_text="migration guide")).to_have_count(0)
