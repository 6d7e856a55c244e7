"""Workers: jobs and queue tell how far they are without a reload."""

from playwright.sync_api import expect

from tests.fakes.in_process import list_requests


def test_job_run_from_the_page_updates_its_state_when_done(opened, site):
    page = opened(site, "/w/default/workers")
    row = page.locator("#job-decay")
    expect(row).to_contain_text("never ran")
    row.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("status").filter(has_text="The job decay is queued")).to_be_visible()
    expect(row).to_contain_text("queued")
    assert list_requests(site.worker) == ["decay"]
    page.evaluate("window.notReloaded = true")
    site.sleep("decay")
    expect(row.locator("[data-live=state-decay]")).to_have_text("done")
    expect(row).to_contain_text("just now, took")
    assert page.evaluate("window.notReloaded")


def test_the_queue_is_watched_until_it_is_empty(opened, site):
    for number in range(3):
        site.client.write(f"Something new about lock number {number}")
    page = opened(site, "/w/default/workers")
    queue = page.get_by_role("region", name="Queue")
    expect(queue.get_by_role("heading")).to_contain_text("pending")
    site.write([{"content": "The last of them"}])
    expect(queue.get_by_role("heading")).to_contain_text("empty")
    expect(page.get_by_role("status").filter(has_text="All work is done.")).to_have_count(1)
