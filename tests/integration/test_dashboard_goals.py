"""Goals on the dashboard: set, changed, overdue, and taken back."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from tests.fakes.dashboard import sign_in
from web.dashboard.view import PAGE_SIZE
from web.features.goals.page import due_in_words

GOALS = "/w/default/goals"
NOW = datetime(2026, 3, 10, 15, 0, tzinfo=UTC)


@pytest.fixture
def browser(client):
    client.write("A memory that makes the workspace")
    return sign_in(client)


def goals(client):
    return client.get("/v1/goals").get_json()["items"]


def goal(client, title="Ship the importer", **fields):
    answer = client.post("/v1/goals", {"title": title, **fields})
    assert answer.status_code == 201
    return answer.get_json()["id"]


def test_a_goal_is_set_and_taken_back(client, browser):
    page = browser.submit(GOALS, "Add goal", title=" Ship the importer ", due_at="2126-01-31")
    (item,) = goals(client)
    assert (item["title"], item["status"], item["due_at"]) == ("Ship the importer", "open", "2126-01-31T00:00:00.000Z")
    assert "due 2126-01-31" in page
    assert "archived" in browser.submit_in(page, "Undo")
    assert goals(client) == []


def test_a_long_goal_is_changed_back_too(client, browser):
    title = "Ship the importer of every format " * 250
    goal_id = goal(client, title=title.strip())
    answer = browser.post(f"{GOALS}/{goal_id}", {"title": title.strip(), "progress": "40", "due_at": ""})
    assert goals(client)[0]["progress"] == 0.4
    # Browsers keep no cookie that is larger.
    assert all(len(cookie) < 4096 for cookie in answer.headers.getlist("Set-Cookie"))
    browser.submit_in(browser.page(answer.headers["Location"]), "Undo")
    assert (goals(client)[0]["progress"], goals(client)[0]["title"]) == (0.0, title.strip())


def test_a_goal_that_is_known_is_not_set_twice(client, browser):
    goal(client)
    page = browser.submit(GOALS, "Add goal", title="Ship the importer", due_at="2126-01-31")
    assert "already exists" in page
    (item,) = goals(client)
    assert item["due_at"] == "2126-01-31T00:00:00.000Z"


def test_finished_goal_added_again_is_reopened(client, browser):
    goal(client, status="done", progress=1.0, due_at="2020-01-01T00:00:00Z")
    assert "is open again" in browser.submit(GOALS, "Add goal", title="Ship the importer")
    (item,) = goals(client)
    assert (item["status"], item["progress"], item["due_at"]) == ("open", 0.0, None)


def test_goal_with_the_text_of_another_memory_is_a_conflict(client, browser):
    client.write("Ship the importer")
    browser.page(GOALS)
    assert browser.post(GOALS, {"title": "Ship the importer"}).status_code == 409
    assert goals(client) == []


@pytest.mark.parametrize("fields", [{"title": " "}, {"title": "x", "due_at": "soon"}, {}])
def test_a_goal_that_cannot_be_is_refused(client, browser, fields):
    assert browser.post(GOALS, fields).status_code == 422
    assert goals(client) == []


def test_a_goal_is_changed_and_changed_back(client, browser):
    identity = goal(client, due_at="2026-05-01T15:30:00Z", progress=0.333)
    (before,) = goals(client)
    page = browser.submit(f"{GOALS}/{identity}", "Save", title="Ship it", progress="60", due_at="")
    (item,) = goals(client)
    assert (item["title"], item["progress"], item["due_at"]) == ("Ship it", 0.6, None)
    browser.submit_in(page, "Undo")
    (item,) = goals(client)
    assert (item["title"], item["due_at"]) == (before["title"], before["due_at"])
    assert item["progress"] == pytest.approx(before["progress"], abs=0.005)


def test_goal_saved_unchanged_keeps_its_exact_values(client, browser):
    identity = goal(client, due_at="2026-05-01T15:30:00Z", progress=0.333)
    before = goals(client)
    browser.submit(f"{GOALS}/{identity}", "Save", title="Ship the importer", progress="33", due_at="2026-05-01")
    assert [{**item, "updated_at": None} for item in goals(client)] == [{**item, "updated_at": None} for item in before]


def test_goal_forms_reject_memories_of_other_kinds(client, browser):
    identity = client.write("A plain fact")
    assert browser.get(f"{GOALS}/{identity}").status_code == 404
    for path in ("", "/archive", "/status"):
        fields = {"title": "x", "progress": "1", "status": "done"}
        assert browser.post(f"{GOALS}/{identity}{path}", fields).status_code == 404
    assert client.get(f"/v1/memories/{identity}").get_json()["content"] == "A plain fact"


@pytest.mark.parametrize(
    ("due_at", "status", "words"),
    [
        (None, "open", ("", False)),
        ("2026-03-09T23:59:00.000Z", "open", ("overdue by 1 day, was due 2026-03-09", True)),
        ("2026-02-10T00:00:00.000Z", "in_progress", ("overdue by 28 days, was due 2026-02-10", True)),
        ("2026-03-10T00:00:00.000Z", "open", ("due today", False)),
        ("2026-03-11T00:00:00.000Z", "open", ("due in 1 day", False)),
        ("2026-06-01T00:00:00.000Z", "open", ("due 2026-06-01", False)),
        ("2026-02-10T00:00:00.000Z", "done", ("was due 2026-02-10", False)),
        ("2026-06-10T00:00:00.000Z", "dropped", ("was due 2026-06-10", False)),
    ],
)
def test_due_date_is_shown_in_words(due_at, status, words):
    details = {"status": status} | ({} if due_at is None else {"due_at": due_at})
    assert due_in_words(SimpleNamespace(details=details), NOW) == words


def test_overdue_goal_shows_the_delay(client, browser):
    past = (datetime.now(UTC) - timedelta(days=3)).isoformat()
    goal(client, due_at=past)
    assert "overdue by 3 days" in browser.page(GOALS)


def test_every_goal_is_listed_exactly_once_across_pages(client, browser):
    ids = [goal(client, f"Reach number {number} of many") for number in range(PAGE_SIZE + 2)]
    first = browser.page(GOALS)
    second = browser.follow(first, "Older")
    assert [i for page in (second, first) for i in ids if f"/memories/{i}" in page] == ids


def test_without_a_goal_it_says_how_to_set_one(browser):
    assert "reverie goals add" in browser.page(GOALS)
