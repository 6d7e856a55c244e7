"""The map: opened, searched, moved, chosen from, and the same as a list."""

import pytest
from playwright.sync_api import expect

from tests.fakes.atlas import chart, note
from tests.fakes.dashboard import serve_site
from tests.fakes.in_process import list_requests

HOSTILE = "<img src=x onerror='window.pwned=1'> \u202ereversed"


GROUPS = (("lighthouse", "keeper", "lamp"), ("harbour", "pilot", "tide", "buoy"), ("mill", "miller", "flour"))


@pytest.fixture(scope="module")
def small_map(tmp_path_factory):
    """A map of three small communities."""
    with serve_site(tmp_path_factory.mktemp("charted") / "home") as site:
        database = site.container.databases.get("default", create=True)
        for number in range(4):
            for group in GROUPS:
                note(database, number, group[number % 2 :])
        site.sleep("layout")
        yield site


@pytest.fixture
def blank(tmp_path, opened):
    """A site without a map."""
    with serve_site(tmp_path / "home") as site:
        note(site.container.databases.get("default", create=True), 1, ["lighthouse", "keeper"])
        yield site
        opened.end()


@pytest.fixture(scope="module")
def large_map(tmp_path_factory):
    """A map of 4,000 entities and 40,000 ties."""
    with serve_site(tmp_path_factory.mktemp("crowded") / "home") as site:
        chart(site.container.databases.get("default", create=True), 4000, 40_000)
        yield site


def open_map(opened, site, path="/w/default/map", **options):
    page = opened(site, path, **options)
    wait_for_paint(page)
    return page


def wait_for_paint(page):
    page.locator("[data-painted]").wait_for(state="attached")


def entity(site, name):
    found = site.client.get(f"/v1/entities?q={name}").get_json()["items"]
    return next(one["id"] for one in found if one["name"] == name)


def scale(page):
    return float(page.locator("[data-map]").get_attribute("data-scale"))


def panel(page):
    return page.get_by_role("region", name="Selected entity")


def test_an_entity_is_searched_chosen_and_its_memory_opened(opened, small_map):
    page = open_map(opened, small_map)
    field = page.get_by_role("combobox", name="Find an entity")
    field.fill("light")
    expect(page.get_by_role("option")).to_have_count(1)
    field.press("ArrowDown")
    expect(page.get_by_role("option", name="lighthouse")).to_have_attribute("aria-selected", "true")
    field.press("Enter")
    expect(panel(page).get_by_role("heading", name="lighthouse")).to_be_visible()
    expect(page).to_have_url(f"{small_map.url}/w/default/map?around={entity(small_map, 'lighthouse')}")
    panel(page).get_by_role("button", name="keeper").click()
    expect(panel(page).get_by_role("heading", name="keeper")).to_be_visible()
    panel(page).locator(".panel-memories a").first.click()
    expect(page).to_have_url(f"{small_map.url}/w/default/memories/{page.url.rpartition('/')[2]}")


def test_entity_missing_from_the_map_is_searched_in_the_list(opened, small_map):
    page = open_map(opened, small_map)
    page.get_by_role("combobox", name="Find an entity").fill("no such thing")
    page.get_by_role("button", name="Find").click()
    expect(page).to_have_url(f"{small_map.url}/w/default/entities?q=no+such+thing")


def test_map_click_selects_the_hovered_entity_and_escape_clears_it(opened, small_map):
    page = open_map(opened, small_map, f"/w/default/map?around={entity(small_map, 'lamp')}")
    expect(panel(page).get_by_role("heading", name="lamp")).to_be_visible()
    stage = page.get_by_role("application", name="Map")
    stage.press("Escape")
    expect(panel(page)).to_be_hidden()
    expect(page).to_have_url(f"{small_map.url}/w/default/map")
    stage.hover()
    expect(page.locator("[data-tip]")).to_have_text("lamp · product")
    stage.click()
    expect(panel(page).get_by_role("heading", name="lamp")).to_be_visible()
    panel(page).get_by_role("link", name="Open the entity").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("lamp")


def test_the_map_is_zoomed_and_moved_by_keys_buttons_and_pointer(opened, small_map):
    page = open_map(opened, small_map)
    stage = page.get_by_role("application", name="Map")
    whole = scale(page)
    stage.press("+")
    page.wait_for_function("before => document.querySelector('[data-map]').dataset.scale > before", arg=whole)
    page.get_by_role("button", name="Show all", exact=True).click()
    page.wait_for_function("before => Number(document.querySelector('[data-map]').dataset.scale) === before", arg=whole)
    stage.hover()
    page.mouse.wheel(0, -200)
    page.wait_for_function("before => document.querySelector('[data-map]').dataset.scale > before", arg=whole)
    canvas = stage.locator("canvas")
    before = canvas.evaluate("it => it.style.transform")
    page.mouse.down()
    page.mouse.move(500, 500, steps=4)
    page.mouse.up()
    page.wait_for_function("([it, before]) => it.style.transform !== before", arg=[canvas.element_handle(), before])
    before = canvas.evaluate("it => it.style.transform")
    stage.press("ArrowLeft")
    page.wait_for_function("([it, before]) => it.style.transform !== before", arg=[canvas.element_handle(), before])


def test_a_community_is_brought_out_from_the_legend(opened, small_map):
    page = open_map(opened, small_map)
    link = page.locator(".map-legend a").first
    link.click()
    expect(link).to_have_attribute("aria-current", "true")
    page.wait_for_function("() => Number(document.querySelector('[data-map]').dataset.painted) > 0")
    page.get_by_role("application", name="Map").press("Escape")
    expect(link).not_to_have_attribute("aria-current", "true")


def test_the_list_leads_to_the_same(opened, small_map):
    page = open_map(opened, small_map)
    page.locator("ul.rows h3 a", has_text="lighthouse").click()
    page.get_by_role("link", name="keeper", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("keeper")
    page.get_by_role("link", name="Show on the map").click()
    expect(panel(page).get_by_role("heading", name="keeper")).to_be_visible()


def test_the_theme_repaints_the_map(opened, small_map):
    page = open_map(opened, small_map)
    page.get_by_role("button", name="Theme").click()
    page.wait_for_function("() => Number(document.querySelector('[data-map]').dataset.painted) > 0")


def test_a_map_is_drawn_when_it_is_asked_for(opened, blank):
    page = opened(blank, "/w/default/map")
    page.get_by_role("button", name="Draw the map now").click()
    expect(page.get_by_text("Drawing the map …")).to_be_visible()
    assert list_requests(blank.worker) == ["layout"]
    blank.sleep("layout")
    # The page looks by itself whether it is there.
    expect(page.get_by_role("application", name="Map")).to_be_visible()
    wait_for_paint(page)


def test_names_are_never_run(opened, blank):
    database = blank.container.databases.get("default")
    for number in range(3):
        note(database, number, [HOSTILE, "<script>window.pwned=2</script>", "w" * 9000])
    blank.sleep("layout")
    page = open_map(opened, blank)
    page.get_by_role("combobox", name="Find an entity").fill("<img")
    page.get_by_role("option").first.click()
    expect(panel(page).get_by_role("heading", level=2)).to_contain_text("<img src=x")
    expect(panel(page).get_by_role("button", name="<script>window.pwned=2</script>")).to_be_visible()
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth") <= 0


def test_a_map_of_4000_entities_and_40000_ties_opens(opened, large_map):
    page = open_map(opened, large_map)
    expect(page.get_by_text("4\u202f000 entities in 30 communities")).to_be_visible()
    # An empty window is a picture of a few bytes.
    assert len(page.get_by_role("application", name="Map").screenshot()) > 50_000
    page.get_by_role("combobox", name="Find an entity").fill("thing_3999")
    page.get_by_role("combobox", name="Find an entity").press("Enter")
    expect(panel(page).get_by_role("heading", level=2)).to_contain_text("thing_3999.py")


def test_without_scripts_there_is_the_list(chromium, small_map):
    context = chromium.new_context(java_script_enabled=False, base_url=small_map.url)
    page = context.new_page()
    page.goto(small_map.link())
    page.goto("/w/default/map")
    expect(page.locator("canvas")).to_be_hidden()
    expect(page.locator("ul.rows").get_by_role("link", name="lighthouse", exact=True)).to_be_visible()
    page.get_by_label("Find an entity").fill("lighth")
    page.get_by_role("button", name="Find").click()
    expect(page.locator("main table").get_by_role("link", name="lighthouse")).to_be_visible()
    context.close()
