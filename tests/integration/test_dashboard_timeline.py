"""The timeline on the dashboard: by day and session, filtered, in pages, and as a stream."""

import json
import re
from dataclasses import replace

import pytest

from pipeline.kernel.store import changes
from pipeline.kernel.store.work import DIGESTION_STAGES
from tests.fakes.dashboard import sign_in
from web.dashboard.view import PAGE_SIZE

TIMELINE = "/w/default/timeline"


@pytest.fixture
def browser(client):
    return sign_in(client)


@pytest.fixture
def history(client):
    """Two days, two sessions that meet on one of them, and something without a session."""
    for at, session, text in (
        ("2026-03-01T09:00:00Z", "harbour", "The crane is painted"),
        ("2026-03-02T08:00:00Z", "harbour", "The crane is dry"),
        ("2026-03-02T09:30:00Z", "office", "The lease is signed"),
        ("2026-03-02T10:00:00Z", "harbour", "The crane lifts"),
        ("2026-03-02T11:00:00Z", None, "It rained"),
    ):
        client.write(text, occurred_at=at, **({} if session is None else {"session_id": session}))


def list_shown(page):
    return re.findall(r'<li class="row" data-id="([^"]+)"', page)


def test_timeline_lists_days_and_sessions_newest_first(browser, history):
    page = browser.page(TIMELINE)
    order = [
        "Monday 2 March 2026",
        "Without a session",
        "It rained",
        ">harbour<",
        "The crane lifts",
        "The crane is dry",
    ]
    order += [">office<", "The lease is signed", "Sunday 1 March 2026", "The crane is painted"]
    places = [page.index(text) for text in order]
    assert places == sorted(places)
    assert page.count("3 memories") == 2
    assert "2026-03-01 09:00 – 10:00" in page
    assert 'rel="next"' not in page


def test_days_hours_and_filters_are_those_of_the_reader(browser, history):
    browser.tell_zone("Pacific/Kiritimati")  # fourteen hours ahead
    page = browser.page(TIMELINE)
    assert "Tuesday 3 March 2026" in page
    assert 'title="2026-03-02 11:00 UTC">01:00</time>' in page
    assert "Time zone: Pacific/Kiritimati" in page
    listed = browser.page(f"{TIMELINE}?since=2026-03-03&until=2026-03-03")
    assert [word for word in ("painted", "dry", "signed", "lifts", "rained") if word in listed] == ["lifts", "rained"]


@pytest.mark.parametrize("zone", ["", "Nowhere/Land", "Europe", "../../etc/passwd", "x" * 900])
def test_a_zone_that_is_none_is_utc(browser, history, zone):
    browser.tell_zone(zone)
    assert "Time zone: UTC" in browser.page(TIMELINE)


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("since=2026-03-02", {"dry", "signed", "lifts", "rained"}),
        ("until=2026-03-01", {"painted"}),
        ("since=2026-03-01&until=2026-03-02", {"painted", "dry", "signed", "lifts", "rained"}),
        ("session=office", {"signed"}),
        ("kind=decision", set()),
        ("kind=fact&source=user", {"painted", "dry", "signed", "lifts", "rained"}),
        ("scope=agent", set()),
        ("archived=only", set()),
    ],
)
def test_timeline_filters_show_only_matching_memories(browser, history, query, texts):
    page = browser.page(f"{TIMELINE}?{query}")
    assert {word for word in ("painted", "dry", "signed", "lifts", "rained") if word in page} == texts
    assert "Clear" in page
    if not texts:
        assert "No memory matches" in page


def test_tags_entities_and_the_archive_are_filters_too(client, browser, digested):
    tagged = client.write("Deploy on Thursdays", tags=["ops"])
    named = client.write("The guard stands in src/door.py")
    gone = client.write("Nobody needs this")
    client.delete(f"/v1/memories/{gone}")
    digested()
    assert list_shown(browser.page(f"{TIMELINE}?tag=OPS")) == [tagged]
    assert list_shown(browser.page(f"{TIMELINE}?entity=src/door.py")) == [named]
    assert set(list_shown(browser.page(TIMELINE))) == {tagged, named}
    assert set(list_shown(browser.page(f"{TIMELINE}?archived=also"))) == {tagged, named, gone}
    assert list_shown(browser.page(f"{TIMELINE}?archived=only")) == [gone]


@pytest.mark.parametrize(
    "query", ["kind=rumour", "since=yesterday", "tag=a%20b", "before=5", "before=2026_x", "nonsense=1", "archived=yes"]
)
def test_a_filter_that_cannot_be_is_refused(browser, history, query):
    assert browser.get(f"{TIMELINE}?{query}").status_code == 422


@pytest.mark.parametrize("until", ["9999-12-31", "9999-12-30"])
def test_the_end_of_time_is_a_day(browser, history, until):
    assert len(list_shown(browser.page(f"{TIMELINE}?until={until}"))) == 5


def test_a_long_journal_comes_in_pages_that_keep_the_filters(client, browser):
    bodies = [
        {"content": f"Note number {n:03d} on harbours", "occurred_at": f"2026-03-01T{n // 60:02d}:{n % 60:02d}:00Z"}
        for n in range(2 * PAGE_SIZE + 5)
    ]
    ids = [one["id"] for one in client.post("/v1/memories/batch", {"items": bodies}).get_json()["results"]]
    found, page = [], browser.page(f"{TIMELINE}?kind=fact")
    while True:
        found += list_shown(page)
        if 'rel="next"' not in page:
            break
        page = browser.follow(page, "Older")
        assert "kind=fact" in browser._at
    assert found == ids[::-1]


def test_timeline_shows_pending_digestion(client, browser, digested):
    client.write("The port of staging is 5433")
    assert "pending: " in browser.page(TIMELINE)
    digested()
    assert "pending: " not in browser.page(TIMELINE)


def test_timeline_of_an_empty_workspace_shows_no_memories(browser):
    assert "No memories in" in browser.page("/w/nowhere/timeline")


def test_timeline_of_only_archived_memories_is_empty(client, browser):
    client.delete(f"/v1/memories/{client.write('Nobody needs this')}")
    assert "No memories yet" in browser.page(TIMELINE)


def test_names_are_data(client, browser):
    client.write("<script>alert(1)</script>", session_id="<b>bold</b>")
    page = browser.page(TIMELINE)
    assert "<script>alert" not in page
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold" in page


def test_script_request_gets_only_the_list_with_full_page_links(client, browser):
    bodies = [{"content": f"Note number {n:03d} about the harbour"} for n in range(PAGE_SIZE + 1)]
    client.post("/v1/memories/batch", {"items": bodies})
    part = browser.page(f"{TIMELINE}/rows?kind=fact")
    assert "<html" not in part
    assert len(list_shown(part)) == PAGE_SIZE
    assert f"{TIMELINE}?kind=fact&amp;before=" in part
    assert "data-events" not in browser.follow(part, "Older")


@pytest.fixture
def stream(app, browser, container):
    """The events that are sent at once, as if the server were about to stop."""
    container.stopping.set()

    def read(query="", **headers):
        answer = browser._browser.get(
            f"{TIMELINE}/events{query}", headers={"Host": "127.0.0.1:7077", **headers}, buffered=True
        )
        assert (answer.status_code, answer.mimetype) == (200, "text/event-stream")
        found = {}
        for block in answer.get_data(as_text=True).split("\n\n"):
            fields = dict(line.partition(": ")[::2] for line in block.splitlines())
            if "event" in fields:
                found[fields["event"]] = (int(fields["id"]), json.loads(fields["data"]))
        return found

    return read


def test_timeline_stream_sends_changes_after_the_given_number(client, stream):
    client.write("The port of staging is 5433")
    memory_id = client.write("The port of the shop is 80")
    number, told = stream("?after=1")["changes"]
    assert (number, told["changes"]) == (2, [{"id": memory_id, "op": "create"}])
    assert stream("?after=0", **{"Last-Event-ID": "2"}).keys() == {"digestion"}
    assert stream("?after=0", **{"Last-Event-ID": "nonsense"})["changes"][0] == 2
    assert stream().keys() == {"digestion"}
    assert set(stream()["digestion"][1]["waiting"][memory_id]) <= set(DIGESTION_STAGES)


def test_a_stream_ends_for_strangers_and_leaves_no_place_taken(app, client, container, stream):
    client.write("The port of staging is 5433")
    assert app.test_client().get(f"{TIMELINE}/events", headers={"Host": "127.0.0.1:7077"}).status_code == 401
    for _ in range(5):
        stream()
    with app.extensions["dashboard_streams"].hold() as held:
        assert held


def test_timeline_stream_of_an_unknown_workspace_is_not_found(browser):
    assert browser.get("/w/nowhere/timeline/events").status_code == 404


def test_with_few_threads_no_stream_is_held(app, container, stream, client):
    container.settings = replace(container.settings, web_threads=2)
    client.write("The port of staging is 5433")
    assert stream("?after=0")["changes"][1]["changes"]
    with app.extensions["dashboard_streams"].hold() as held:
        assert not held


def test_the_number_on_the_page_is_where_its_stream_begins(client, browser, container):
    client.write("The port of staging is 5433")
    with container.databases.get("default").read() as db:
        number = changes.generation(db)
    page = browser.page(TIMELINE)
    assert f'data-change="{number}"' in page
    assert f'data-events="{TIMELINE}/events"' in page
