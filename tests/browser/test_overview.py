"""The overview: its figures lead on, and a change of today is edited, deleted and brought back where it is listed."""

from playwright.sync_api import expect


def test_figures_lead_on(opened, sample):
    page = opened(sample)
    expect(page).to_have_title("Overview · Reverie")
    active = sample.client.get("/v1/stats").get_json()["memories"]["active"]
    figure = page.locator(".stat", has_text="Memories").get_by_role("link")
    expect(figure).to_have_text(str(active))
    figure.click()
    expect(page).to_have_url(f"{sample.url}/w/default/timeline")


def test_memory_of_another_workspace_is_edited_from_the_first_page(opened, site):
    site.write([{"content": "Posts are written in Markdown"}], "blog")
    page = opened(site)
    row = page.get_by_role("region", name="blog").get_by_role("listitem").filter(has_text="Posts are written")
    row.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(f"{site.url}/")
    expect(page.get_by_role("status")).to_contain_text("Memory archived")
    expect(row).to_contain_text("archived")
    row.get_by_role("button", name="Undo").click()
    expect(row).to_contain_text("user")
    row.get_by_role("link", name="Edit").click()
    text = page.get_by_role("textbox", name="Text")
    expect(text).to_be_visible()
    text.fill("Posts are written in AsciiDoc")
    page.get_by_role("button", name="Save").click()
    page.goto("/")
    expect(page.get_by_role("region", name="blog")).to_contain_text("Posts are written in AsciiDoc")


def test_a_hint_is_followed_to_its_end(opened, site):
    page = opened(site)
    page.get_by_role("link", name="Take a snapshot now").click()
    page.locator("#job-snapshot").get_by_role("button", name="Run now").click()
    expect(page.get_by_role("status").filter(has_text="is queued")).to_be_visible()
    site.sleep("snapshot")
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("link", name="Take a snapshot now")).to_have_count(0)
    expect(page.get_by_role("region", name="Queue and maintenance jobs")).to_contain_text("just now")
