"""What holds on every page: reachable, usable by everybody, at home in any window, unmoved by what memories say."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.pages import LISTS, list_pages
from web.dashboard.blueprint import NAVIGATION

WCAG = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
# The rules of WCAG that depend on colors, the only thing in which themes differ.
COLORS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
NARROW, WIDE = 360, 2560
WORD = "w" * 9000
HOSTILE = (
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 2'>",
    "'\"><svg onload=window.pwned=3>",
    "[a link](javascript:window.pwned=4) javascript:window.pwned=5",
    "</textarea></title></select><script>window.pwned=6</script>",
    "{{ 7 * 7 }} ${window.pwned=7} {% raw %}",
    WORD,
)


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than its window."""
    return page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")


def serious(page: Page, rules: dict = WCAG) -> list[str]:
    # Describing every element that passes takes longer than the checks.
    found = Axe().run(page, options={"runOnly": rules, "resultTypes": ["violations"]}).response["violations"]
    return [
        f"{page.url} {v['id']}: {v['help']} {[node['html'][:160] for node in v['nodes'][:3]]}"
        for v in found
        if v["impact"] in ("serious", "critical")
    ]


def test_every_page_is_linked_in_the_navigation(opened, sample):
    page = opened(sample)
    for entry in NAVIGATION:
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=entry.label, exact=True).click()
        expect(page.locator(".side nav a[aria-current=page]")).to_have_text(entry.label)
        expect(page.get_by_role("heading", level=1)).to_be_visible()


@pytest.mark.parametrize(("theme", "rules"), [("light", WCAG), ("dark", COLORS)])
def test_every_page_passes_the_accessibility_rules(opened, sample, theme, rules):
    page = opened(sample, theme=theme)
    found = []
    for path in list_pages(sample):
        page.goto(path)
        found += serious(page, rules)
    assert found == []


def test_every_page_fits_its_window(opened, sample):
    page = opened(sample, width=NARROW)
    wide = {}
    for path in list_pages(sample):
        page.set_viewport_size({"width": NARROW, "height": 900})
        page.goto(path)
        wide[path, NARROW] = overflow(page)
        page.set_viewport_size({"width": WIDE, "height": 900})
        wide[path, WIDE] = overflow(page)
    assert {place: by for place, by in wide.items() if by > 0} == {}


def test_the_workspace_is_switched_on_the_page_that_is_shown(opened, site):
    site.write([{"content": "Another project altogether"}], workspace="another")
    page = opened(site)
    for path in LISTS:
        page.goto(f"/w/default{path}")
        page.locator(".switch summary").click()
        page.locator(".switch").get_by_role("link", name="another", exact=True).click()
        expect(page).to_have_url(f"{site.url}/w/another{path}")


def test_every_page_is_honest_when_there_is_little(opened, site):
    site.write([{"content": "One memory, about nothing that has a name"}], workspace="little")
    page = opened(site)
    for path in LISTS:
        page.goto(f"/w/little{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.goto(f"/w/nowhere{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_nothing_that_memories_say_is_run(opened, site):
    kinds = ["fact", "decision", "lesson", "goal", "episode"]
    bodies = [
        {"content": f"{kinds[number % 5]} {text} about billing.py and Ada Lovelace", "kind": kinds[number % 5]}
        | {"session_id": text[:200], "metadata": {text[:100]: text[:100]}, "tags": ["hostile"]}
        for number, text in enumerate(HOSTILE)
    ]
    site.write([*bodies, {"content": "Goal", "kind": "goal", "details": {"status": "open"}}], workspace="hostile")
    site.write([{"content": f"See {name} and {name[:60]}.py"} for name in HOSTILE], workspace="hostile")
    for number, name in enumerate(HOSTILE[:6]):
        answer = site.client.put(f"/v1/facts/subject-{number}/name", {"value": name}, workspace="hostile")
        assert answer.status_code == 200
    site.sleep("arcs", "edges", workspace="hostile")
    page = opened(site)
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    memories = site.client.get("/v1/memories?limit=100", workspace="hostile").get_json()["items"]
    paths = [f"/w/hostile{path}" for path in LISTS] + [f"/w/hostile/memories/{memory['id']}" for memory in memories]
    for path in [*paths, "/w/hostile/recall?q=%3Cscript%3Ewindow.pwned%3D8%3C/script%3E"]:
        page.goto(path)
        assert page.evaluate("window.pwned") is None, path
        assert overflow(page) <= 0, path
        assert page.locator("a[href^='javascript:']").count() == 0, path


def test_every_page_works_without_scripts(chromium, sample):
    context = chromium.new_context(java_script_enabled=False, base_url=sample.url)
    page = context.new_page()
    page.goto(sample.link())
    for path in list_pages(sample):
        answer = page.goto(path)
        assert answer.status == 200, path
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    context.close()


def test_the_theme_is_chosen_and_kept(opened, sample):
    page = opened(sample, theme="light")
    before = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.get_by_role("button", name="Theme").click()
    after = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.reload()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == after != before


def test_a_slash_leads_to_the_search_and_the_search_to_the_lab(opened, sample):
    page = opened(sample, "/w/default/goals")
    page.keyboard.press("/")
    page.keyboard.type("which port does staging use")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{sample.url}/w/default/recall?q=which+port+does+staging+use")


def test_a_stranger_learns_how_to_sign_in(chromium, sample):
    page = chromium.new_page(base_url=sample.url)
    assert page.goto("/").status == 401
    expect(page.get_by_text("reverie dashboard")).to_be_visible()
    assert serious(page) == []
    page.close()


def test_signing_out_ends_it(opened, site):
    page = opened(site)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This browser is signed out.")
    assert page.context.request.get("/").status == 401
