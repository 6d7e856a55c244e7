"""Lessons on the dashboard: their order, their records, and what a person says about them."""

from urllib.parse import quote

import pytest
from ulid import ULID

from pipeline.kernel.store import memories
from pipeline.kernel.store.impressions import Impression
from pipeline.kernel.times import utc_now
from pipeline.recall.feedback_usecases import answer_impression
from tests.fakes.dashboard import sign_in
from web.dashboard.view import PAGE_SIZE


@pytest.fixture
def browser(client):
    return sign_in(client)


@pytest.fixture
def lesson(client, container):
    """Keep a lesson that was put before agents so often, and answered so."""

    def keep(text: str, shown: int = 0, followed: int = 0, ignored: int = 0, **fields: object) -> str:
        identity = client.write(text, kind="lesson", **fields)
        workspace = container.workspace("default")
        with workspace.database.read() as db:
            memory = memories.get(db, identity)
        times = [Impression(str(ULID()), memory.seq, f"s{number}", utc_now()) for number in range(shown)]
        container.feedback.record_impressions(workspace, times)
        container.feedback.submit(lambda: None).result(timeout=20)
        for number, one in enumerate(times[: followed + ignored]):
            answer_impression(workspace, container.feedback, one.id, None, followed=number < followed)
        return identity

    return keep


def positions(page: str, *texts: str) -> list[int]:
    return [page.index(text) for text in texts]


def test_lessons_are_sorted_by_the_requested_order(browser, lesson):
    lesson("Quote every zebra path before deleting", shown=3, ignored=3)
    lesson("Take the walrus lock before counting", shown=5, followed=4, ignored=1)
    lesson("Never heard of by any octopus")
    newest = browser.page("/w/default/lessons")
    assert positions(newest, "octopus", "walrus", "zebra") == sorted(positions(newest, "octopus", "walrus", "zebra"))
    ignored = browser.page("/w/default/lessons?order=ignored")
    assert ignored.index("zebra") < ignored.index("walrus")
    assert "octopus" not in ignored
    followed = browser.page("/w/default/lessons?order=followed")
    assert "zebra" not in followed
    assert "80%" in followed


def test_lesson_outcome_set_by_a_person_can_be_undone(client, browser, lesson):
    identity = lesson("Take the walrus lock before counting", shown=1, ignored=1)

    def tally() -> tuple[int, int]:
        (item,) = client.get("/v1/lessons").get_json()["items"]
        return item["followed"], item["ignored"]

    assert tally() == (0, 1)
    page = browser.submit(f"/w/default/lessons/{identity}", "Mark as followed")
    assert tally() == (1, 0)
    assert "Marked as followed." in page
    browser.submit_in(page, "Undo")
    assert tally() == (0, 1)


def test_a_lesson_is_archived_and_comes_back(client, browser, lesson):
    identity = lesson("Take the walrus lock before counting")
    page = browser.submit("/w/default/lessons", "Archive")
    assert client.get(f"/v1/memories/{identity}").get_json()["archived_at"] is not None
    browser.submit_in(page, "Undo")
    assert client.get(f"/v1/memories/{identity}").get_json()["archived_at"] is None


def test_lesson_page_does_not_archive_memories_of_other_kinds(client, browser):
    identity = client.write("A plain fact")
    assert browser.post(f"/w/default/lessons/{identity}/archive").status_code == 404
    assert client.get(f"/v1/memories/{identity}").get_json()["archived_at"] is None


@pytest.mark.parametrize("order", ["newest", "shown"])
def test_every_lesson_is_listed_exactly_once_across_pages(client, browser, container, order):
    texts = [f"Lesson number {number} of many" for number in range(PAGE_SIZE + 3)]
    ids = [client.write(text, kind="lesson") for text in texts]
    with container.databases.get("default").write() as db:
        db.execute("INSERT INTO impression (id, memory_seq, at) SELECT id, seq, created_at FROM memory")
    first = browser.page(f"/w/default/lessons?order={order}")
    second = browser.follow(first, "Older")
    shown = [identity for page in (first, second) for identity in ids if f"/memories/{identity}" in page]
    assert sorted(shown) == sorted(ids)
    assert 'rel="next"' not in second


def test_useful_lessons_are_sorted_by_the_evidence_of_their_answers(browser, lesson):
    lesson("Take the walrus lock before counting", shown=1, followed=1)
    lesson("Quote every zebra path before deleting", shown=9, followed=8, ignored=1)
    lesson("Close the octopus tank", shown=4, ignored=4)
    page = browser.page("/w/default/lessons?order=useful")
    assert page.index("zebra") < page.index("walrus")
    assert "octopus" not in page
    assert "useful</span>" in page


@pytest.mark.parametrize("order", ["newest", "shown"])
@pytest.mark.parametrize("words", ["walrus", "WALRUS counting", "hurry", "ever 100%"])
def test_a_lesson_is_found_by_its_words(browser, lesson, words, order):
    lesson("Quote every zebra path before deleting", shown=2)
    details = {"rule": "never 100%", "applies_when": "in a hurry"}
    identity = lesson("Take the walrus lock before counting", shown=1, details=details)
    page = browser.page(f"/w/default/lessons?q={quote(words)}&order={order}")
    assert f"/memories/{identity}" in page
    assert "zebra" not in page


@pytest.mark.parametrize("words", ["rule", "_", "%%", "walrus zebra"])
def test_lesson_search_without_matches_shows_no_results(browser, lesson, words):
    lesson("Quote every zebra path before deleting", shown=1)
    lesson("Take the walrus lock before counting", shown=1)
    assert "No lesson contains all search words" in browser.page(f"/w/default/lessons?q={quote(words)}")
    assert "No shown lesson contains" in browser.page(f"/w/default/lessons?q={quote(words)}&order=shown")


def test_undo_of_a_first_lesson_outcome_removes_it(client, browser, lesson):
    identity = lesson("Take the walrus lock before counting", shown=1)
    page = browser.submit(f"/w/default/lessons/{identity}", "Mark as ignored")
    assert "ignored</b>" in page
    page = browser.submit_in(page, "Undo")
    assert "no answer yet</b>" in page
    (item,) = client.get("/v1/lessons").get_json()["items"]
    assert (item["shown"], item["followed"], item["ignored"]) == (1, 0, 0)


def test_undo_of_a_lesson_outcome_restores_the_earlier_note(client, browser, container, lesson):
    identity = lesson("Take the walrus lock before counting", shown=1)
    with container.databases.get("default").read() as db:
        (surface_id,) = db.execute("SELECT id FROM impression").fetchone()
    client.post(f"/v1/lessons/surfaces/{surface_id}", {"followed": False, "note": "there was no time"})
    page = browser.page(f"/w/default/lessons/{identity}")
    assert "there was no time" in page
    page = browser.submit_in(page, "Mark as followed")
    assert "there was no time" not in page.partition("Recent uses")[2]
    page = browser.submit_in(page, "Undo")
    assert "there was no time" in page.partition("Recent uses")[2]


def test_lesson_page_shows_the_evidence_for_its_use(browser, lesson):
    unproven = browser.page(f"/w/default/lessons/{lesson('Take the walrus lock', shown=2, followed=1)}")
    assert "Unproven: at least" in unproven
    useful = browser.page(f"/w/default/lessons/{lesson('Quote every zebra path', shown=9, followed=9)}")
    assert "Agents usually follow it" in useful
    ignored = browser.page(f"/w/default/lessons/{lesson('Close the octopus tank', shown=9, ignored=9)}")
    assert "Agents usually ignore it" in ignored
    assert "interval: 0% to 30%" in ignored


def test_an_answer_that_cannot_be_is_refused(browser, lesson):
    lesson("Take the walrus lock before counting", shown=1)
    assert browser.post("/w/default/lessons/surfaces/none", {"followed": "true"}).status_code == 404
    assert browser.post("/w/default/lessons/surfaces/none", {"followed": "perhaps"}).status_code == 422


@pytest.mark.parametrize("order", ["shown", "followed", "ignored"])
def test_lessons_that_were_shown_very_often_have_a_second_page(client, browser, container, order):
    often = 500
    ids = [client.write(f"Lesson number {number} of many", kind="lesson") for number in range(PAGE_SIZE + 1)]
    with container.databases.get("default").write() as db:
        db.execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?) "
            "INSERT INTO impression (id, memory_seq, at, followed) SELECT id || n, seq, created_at, ? FROM memory, n",
            (often, None if order == "shown" else order == "followed"),
        )
    first = browser.page(f"/w/default/lessons?order={order}")
    second = browser.follow(first, "Older")
    shown = [identity for page in (first, second) for identity in ids if f"/memories/{identity}" in page]
    assert sorted(shown) == sorted(ids)
