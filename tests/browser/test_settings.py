"""Settings: a workspace's own values, off the record, and a new token, each taken back where that is possible."""

from playwright.sync_api import expect

PAGE = "/w/default/settings"


def test_a_value_of_the_workspaces_own_is_saved_and_undone(opened, site):
    page = opened(site, PAGE)
    page.get_by_label("hook_max_chars in this workspace").fill("2000")
    page.get_by_label("hook_max_chars in this workspace").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("hook_max_chars is 2000, in this workspace.")
    assert site.container.workspace("default").settings.hook_max_chars == 2000
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("as the home has it")
    assert site.container.workspace("default").settings.hook_max_chars == 4000


def test_a_workspace_off_the_record_keeps_nothing_until_it_is_back(opened, site):
    page = opened(site, PAGE)
    page.get_by_role("button", name="Take it off the record").click()
    expect(page.locator("main")).to_contain_text("This workspace is off the record.")
    refused = site.client.post("/v1/memories", {"content": "Said off the record", "kind": "decision"}).get_json()
    assert refused["outcome"] == "rejected"
    page.get_by_role("button", name="Put it back on the record").click()
    expect(page.locator("main")).to_contain_text("This workspace keeps what is said in it.")
    assert site.client.write("Said on the record", kind="decision")


def test_a_session_off_the_record_is_put_back_and_taken_off_again(opened, site):
    page = opened(site, PAGE)
    page.get_by_label("Take a session off the record").fill("claude-1")
    page.get_by_role("button", name="Take off").click()
    row = page.get_by_role("listitem").filter(has_text="claude-1")
    row.get_by_role("button", name="Back on the record").click()
    expect(page.get_by_role("status")).to_contain_text("on the record again")
    assert site.client.get("/v1/incognito").get_json()["items"] == []
    page.get_by_role("button", name="Undo").click()
    expect(row).to_be_visible()
    [item] = site.client.get("/v1/incognito").get_json()["items"]
    assert item["session_id"] == "claude-1"


def test_a_new_token_signs_everybody_else_out(opened, chromium, site):
    other = chromium.new_context(base_url=site.url)
    stranger = other.new_page()
    stranger.goto(site.link())
    before = site.container.token
    page = opened(site, PAGE)
    page.get_by_role("link", name="Make a new token").click()
    page.get_by_role("link", name="Keep this one").click()
    assert site.container.token == before
    page.get_by_role("link", name="Make a new token").click()
    page.get_by_role("button", name="Make a new token").click()
    expect(page.get_by_role("status")).to_contain_text("There is a new token.")
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
    expect(page.get_by_text("Where scripts run, / goes to the search")).to_be_visible()
    context.close()
