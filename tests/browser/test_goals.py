"""Goals: listed, filtered, changed, and changed back."""

from playwright.sync_api import expect


def test_a_goal_is_done_and_undone(opened, site):
    (goal,) = site.write([{"content": "Ship the importer before the fair", "kind": "goal"}])
    page = opened(site, "/w/default/goals")
    row = page.locator("li.row", has_text="Ship the importer")
    row.get_by_label("Status of this goal").select_option("done")
    expect(page.get_by_role("status")).to_contain_text("done now")
    assert site.client.get(f"/v1/memories/{goal}").get_json()["details"]["status"] == "done"
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("open now")
    assert site.client.get(f"/v1/memories/{goal}").get_json()["details"]["status"] == "open"


def test_goals_are_filtered_by_status(opened, site):
    site.write([{"content": "Write the migration guide", "kind": "goal"}])
    page = opened(site, "/w/default/goals")
    page.get_by_label("Status", exact=True).select_option("dropped")
    expect(page).to_have_url(f"{site.url}/w/default/goals?status=dropped")
    expect(page.locator("li.row", has_text="migration guide")).to_have_count(0)


def test_a_goal_is_set_changed_and_changed_back(opened, site):
    page = opened(site, "/w/default/goals")
    page.get_by_label("New goal").fill("Publish the timetable")
    page.get_by_label("due", exact=True).fill("2020-05-01")
    page.get_by_role("button", name="Set the goal").click()
    expect(page.get_by_role("status")).to_contain_text("The goal is set.")
    row = page.locator("li.row", has_text="Publish the timetable")
    expect(row).to_contain_text("overdue by")

    def stored():
        items = site.client.get("/v1/goals").get_json()["items"]
        return next((item for item in items if item["title"].startswith("Publish")), None)

    row.get_by_role("link", name="Change this goal").click()
    page.get_by_label("What is to be reached").fill("Publish both timetables")
    page.get_by_label("Progress, %").fill("40")
    page.get_by_label("Due").fill("")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("The goal is changed.")
    assert (stored()["title"], stored()["progress"], stored()["due_at"]) == ("Publish both timetables", 0.4, None)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("li.row", has_text="Publish the timetable")).to_contain_text("overdue by")
    assert (stored()["title"], stored()["progress"]) == ("Publish the timetable", 0.0)
