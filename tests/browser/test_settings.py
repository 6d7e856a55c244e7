"""Settings in a browser: a new token signs the others out, and single keys are switched off in every tab."""

from playwright.sync_api import expect

PAGE = "/w/default/settings"


def test_new_token_signs_out_other_sessions(opened, chromium, site):
    other = chromium.new_context(base_url=site.url)
    stranger = other.new_page()
    stranger.goto(site.link())
    before = site.container.token
    page = opened(site, PAGE)
    page.get_by_role("link", name="Create new token").click()
    page.get_by_role("link", name="Keep the current token").click()
    assert site.container.token == before
    page.get_by_role("link", name="Create new token").click()
    page.get_by_role("button", name="Create new token").click()
    expect(page.get_by_role("status")).to_contain_text("New token created.")
    assert site.container.token != before
    assert site.client.get("/v1/incognito").status_code == 401
    assert stranger.goto("/w/default/goals").status == 401
    other.close()
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")


def test_single_keys_are_turned_off_at_once_in_every_tab_and_on_again(opened, site):
    """Turn them off by keyboard alone; another tab stops to listen, and to tell of them, as it stands."""
    site.write([{"content": "The build runs nightly."}, {"content": "the build runs nightly"}])
    inbox = opened(site, "/w/default/inbox?kind=done")
    page = inbox.context.new_page()
    page.goto(PAGE)
    switch = page.get_by_role("checkbox", name="Single-key shortcuts")
    search = page.get_by_role("searchbox", name="Recall")
    expect(switch).to_be_checked()
    switch.focus()
    page.keyboard.press("Space")
    expect(switch).not_to_be_checked()
    switch.blur()
    page.keyboard.press("/")
    expect(search).not_to_be_focused()
    expect(search).not_to_have_attribute("aria-keyshortcuts", "/")
    expect(inbox.locator(".keys")).to_be_hidden()
    expect(inbox.locator(".entry kbd").first).to_be_hidden()
    for key in ("j", "x", "/"):
        inbox.keyboard.press(key)
    assert inbox.evaluate("document.activeElement === document.body")
    expect(inbox.get_by_role("status")).to_have_count(0)
    inbox.reload()
    expect(inbox.locator(".entry").first).to_be_visible()
    expect(inbox.locator(".keys")).to_be_hidden()
    inbox.keyboard.press("j")
    assert inbox.evaluate("document.activeElement === document.body")
    switch.check()
    expect(inbox.locator(".keys")).to_be_visible()
    inbox.keyboard.press("j")
    expect(inbox.locator(".entry").first).to_be_focused()
    switch.blur()
    page.keyboard.press("/")
    expect(search).to_be_focused()


def test_without_scripts_there_is_no_switch(chromium, sample):
    context = chromium.new_context(java_script_enabled=False, base_url=sample.url)
    page = context.new_page()
    page.goto(sample.link())
    page.goto(PAGE)
    expect(page.get_by_role("checkbox")).to_have_count(0)
    expect(page.get_by_text("/ focuses the search field")).to_be_visible()
    context.close()
