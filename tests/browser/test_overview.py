"""The overview: what stands on it leads on, the chart has its numbers, a hint can be followed to its end."""

from playwright.sync_api import expect


def test_figures_kinds_and_goals_lead_on(opened, sample):
    page = opened(sample)
    expect(page).to_have_title("Overview · Reverie")
    active = sample.client.get("/v1/stats").get_json()["memories"]["active"]
    expect(page.locator(".stat", has_text="Memories").get_by_role("link")).to_have_text(str(active))
    page.get_by_role("region", name="By kind").get_by_role("link", name="lesson").click()
    expect(page).to_have_url(f"{sample.url}/w/default/timeline?kind=lesson")
    page.go_back()
    goal = page.get_by_role("region", name="Open goals").get_by_role("listitem").first
    title = goal.get_by_role("link").inner_text()
    goal.get_by_role("link").click()
    expect(page.locator("main")).to_contain_text(title.rstrip("…"))


def test_the_chart_has_its_numbers_and_the_keyboard_reaches_them(opened, sample):
    page = opened(sample)
    growth = page.get_by_role("region", name="Growth", exact=True)
    expect(growth.get_by_role("img")).to_be_visible()
    growth.get_by_text("Show as a table").focus()
    page.keyboard.press("Enter")
    table = growth.get_by_role("table")
    expect(table).to_be_visible()
    total = sum(sample.client.get("/v1/stats").get_json()["memories"][name] for name in ("active", "archived"))
    expect(table.get_by_role("row").nth(1).get_by_role("cell").last).to_have_text(str(total))


def test_a_hint_is_followed_to_its_end(opened, site):
    page = opened(site)
    page.get_by_role("link", name="Take a snapshot now").click()
    page.locator("#job-snapshot").get_by_role("button", name="Run now").click()
    expect(page.get_by_role("status").filter(has_text="is queued")).to_be_visible()
    site.sleep("snapshot")
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("link", name="Take a snapshot now")).to_have_count(0)
    expect(page.get_by_role("region", name="Queue and maintenance jobs")).to_contain_text("just now")
