"""The inbox on the dashboard: every kind of entry judged, taken back, and gone on from."""

import re

import pytest
import tomlkit

from pipeline.features.review import store as review
from pipeline.kernel.records import EdgeKind, Stage
from pipeline.kernel.store import audit, duplicates, edges, memories
from pipeline.kernel.times import utc_now
from tests.fakes.dashboard import sign_in
from web.features.review.page import PAGE

INBOX = "/w/default/inbox"
ONE = "The build runs nightly on the small server."
SAME = "the build runs nightly on the small server"
MORE = "The build runs nightly on the small server together."
DENIAL = "The build does not run nightly on the small server."


@pytest.fixture
def browser(client):
    return sign_in(client)


@pytest.fixture
def reviewing(container):
    paths = container.settings.paths.workspace("default")
    paths.config.parent.mkdir(parents=True, exist_ok=True)
    paths.config.write_text(tomlkit.dumps({"review": True}))


def candidates(client, *names):
    bodies = [{"content": f"Deploys of the {name} wait for the tests", "source": "ambient"} for name in names]
    return [client.post("/v1/memories", body).get_json()["id"] for body in bodies]


def pair_up(container, client, count):
    """Write pairs that wait, each of two texts of its own."""
    written = [[client.write(f"Crane {n} {verb} on Mondays") for verb in ("lifts", "rests")] for n in range(count)]
    with container.databases.get("default").write() as db:
        for older, newer in written:
            first, second = memories.get(db, older), memories.get(db, newer)
            duplicates.add(db, first.seq, second.seq, 0.9, ["a word differs"], utc_now())
    return written


def deny(container, client, count):
    written = [
        [client.write(f"Crane {n} {verb} on Mondays") for verb in ("lifts", "never lifts")] for n in range(count)
    ]
    with container.databases.get("default").write() as db:
        for older, newer in written:
            first, second = memories.get(db, older), memories.get(db, newer)
            edges.add(db, second.seq, EdgeKind.CONTRADICTS, first.seq, "edges-job", utc_now())
    return written


def read(client, memory_id):
    return client.get(f"/v1/memories/{memory_id}").get_json()


def count_waiting(container):
    with container.databases.get("default").read() as db:
        return review.count_waiting(db)


def test_an_empty_inbox_says_how_each_kind_gets_there(client, browser):
    client.write(ONE)
    for kind, text in (
        ("", "No candidates"),
        ("?kind=duplicates", "No duplicates"),
        ("?kind=contradictions", "No contradictions"),
        ("?kind=done", "No automatic changes"),
    ):
        assert text in browser.page(f"{INBOX}{kind}")


@pytest.mark.parametrize("query", ["kind=spam", "before=x", "before=1.2.3", "status=open"])
def test_a_query_that_cannot_be_is_refused(client, browser, query):
    client.write(ONE)
    assert browser.get(f"{INBOX}?{query}").status_code == 422


def test_the_first_kind_of_which_something_waits_is_shown(client, browser, container, digested):
    client.write(ONE)
    client.write(SAME)
    digested()
    assert "Undo this change" in browser.page(INBOX)
    deny(container, client, 1)
    assert "Keep both" in browser.page(INBOX)


def test_accepted_candidate_can_be_returned_to_review(client, browser, reviewing, container):
    first, second = candidates(client, "shop", "portal")
    page = browser.page(f"{INBOX}?kind=candidates")
    assert "captured automatically" in page
    done = browser.submit_in(page, "Accept")
    assert not read(client, second)["candidate"]
    assert ("default", Stage.DEDUP) in container.notify.sent
    # The next one is where the page goes on.
    assert browser._at.endswith(f"#e-{first}")
    undone = browser.submit_in(done, "Undo")
    assert "waits for review again" in undone
    assert browser._at.endswith(f"#e-{second}")
    assert read(client, second)["candidate"]
    assert count_waiting(container).candidates == 2
    assert client.find_ids("portal deploys") == []


def test_rejected_candidate_can_be_restored(client, browser, reviewing, container):
    [memory_id] = candidates(client, "shop")
    done = browser.submit(INBOX, "Reject")
    assert read(client, memory_id)["archived_at"] is not None
    browser.submit_in(done, "Undo")
    assert read(client, memory_id)["archived_at"] is None
    assert count_waiting(container).candidates == 1


def test_a_pair_is_shown_side_by_side_merged_and_taken_apart(client, browser, digested, container):
    older, newer = client.write(ONE, tags=["ci"]), client.write(MORE)
    before = [read(client, one) for one in (older, newer)]
    digested()
    page = browser.page(f"{INBOX}?kind=duplicates")
    assert "<mark>together</mark>" in page
    assert "one contains more" in page
    done = browser.submit_in(page, "Merge")
    assert read(client, older)["archived_at"] is not None
    undone = browser.submit_in(done, "Undo")
    assert "<mark>together</mark>" in undone
    assert count_waiting(container).pairs == 1
    for old in before:
        now = read(client, old["id"])
        changed = ("updated_at", "entities", "edges")
        assert {k: v for k, v in now.items() if k not in changed} == {k: v for k, v in old.items() if k not in changed}


def test_candidate_accepted_by_a_merge_waits_again_after_undo(client, browser, reviewing, container):
    [older] = candidates(client, "shop")
    newer = client.write(MORE, occurred_at="2024-01-01T00:00:00Z")
    with container.databases.get("default").write() as db:
        first, second = memories.get(db, older), memories.get(db, newer)
        duplicates.add(db, first.seq, second.seq, 0.9, ["a word differs"], utc_now())
    assert read(client, older)["candidate"]
    done = browser.submit(f"{INBOX}?kind=duplicates", "Merge")
    assert not read(client, older)["candidate"]
    browser.submit_in(done, "Undo")
    assert read(client, older)["candidate"]
    assert (count_waiting(container).candidates, count_waiting(container).pairs) == (1, 1)
    assert older not in client.find_ids("shop deploys")


def test_both_of_a_pair_are_kept_and_wait_again(client, browser, container):
    pair_up(container, client, 2)
    done = browser.submit(f"{INBOX}?kind=duplicates", "Keep both")
    assert count_waiting(container).pairs == 1
    browser.submit_in(done, "Undo")
    assert count_waiting(container).pairs == 2


@pytest.mark.parametrize(("button", "archived"), [("Keep the newer", 0), ("Keep the older", 1)])
def test_of_a_contradiction_one_is_archived_and_comes_back(client, browser, container, button, archived):
    [ids] = deny(container, client, 1)
    page = browser.page(f"{INBOX}?kind=contradictions")
    assert "The newer contradicts the older" in page
    assert "<mark>never</mark>" in page
    done = browser.submit_in(page, button)
    assert [read(client, one)["archived_at"] is not None for one in ids] == [archived == 0, archived == 1]
    browser.submit_in(done, "Undo")
    assert count_waiting(container).contradictions == 1


def test_a_contradiction_shows_origin_and_precedence_of_both(client, browser, container):
    deny(container, client, 1)
    page = browser.page(f"{INBOX}?kind=contradictions")
    assert page.count("stated by the user · user") == 2
    assert "The newer leads." in page
    browser.submit_in(page, "Keep the newer")
    assert "Archived by a person" in browser.page(f"{INBOX}?kind=done")


def test_both_of_a_contradiction_are_kept_and_contradict_each_other_again(client, browser, container):
    [(older, newer)] = deny(container, client, 1)
    before = read(client, newer)["edges"]
    done = browser.submit(f"{INBOX}?kind=contradictions", "Keep both")
    assert [edge["kind"] for edge in read(client, newer)["edges"]] == []
    assert read(client, older)["archived_at"] is None
    browser.submit_in(done, "Undo")
    after = read(client, newer)["edges"]
    assert [(e["kind"], e["id"], e["made_by"]) for e in after] == [(e["kind"], e["id"], e["made_by"]) for e in before]
    assert read(client, newer)["history"] == []


def test_of_two_that_deny_each_other_both_do_again(client, browser, container):
    [(older, newer)] = deny(container, client, 1)
    with container.databases.get("default").write() as db:
        first, second = memories.get(db, older), memories.get(db, newer)
        edges.add(db, first.seq, EdgeKind.CONTRADICTS, second.seq, "caller", utc_now())
    done = browser.submit(f"{INBOX}?kind=contradictions", "Keep both")
    assert read(client, older)["edges"] == []
    browser.submit_in(done, "Undo")
    for one, other, makers in ((older, newer, ["caller", "edges-job"]), (newer, older, ["edges-job", "caller"])):
        found = sorted(read(client, one)["edges"], key=lambda edge: edge["direction"], reverse=True)
        assert [(edge["id"], edge["made_by"]) for edge in found] == [(other, maker) for maker in makers]
        assert read(client, one)["history"] == []


def test_memory_written_later_about_an_earlier_day_counts_as_the_older(client, browser, container):
    late = client.write("Crane 1 lifts on Mondays", occurred_at="2026-03-01T00:00:00Z")
    early = client.write("Crane 1 never lifts on Mondays", occurred_at="2026-02-01T00:00:00Z")
    with container.databases.get("default").write() as db:
        first, second = memories.get(db, early), memories.get(db, late)
        edges.add(db, first.seq, EdgeKind.CONTRADICTS, second.seq, "caller", utc_now())
    page = browser.page(f"{INBOX}?kind=contradictions")
    assert "The older contradicts the newer" in page
    browser.submit_in(page, "Keep the newer")
    assert (read(client, early)["archived_at"] is None, read(client, late)["archived_at"] is None) == (False, True)


def test_automatic_merge_can_be_undone_from_the_inbox(client, browser, digested):
    older, newer = client.write(ONE), client.write(SAME)
    digested()
    page = browser.page(f"{INBOX}?kind=done")
    assert "Merged by dedup" in page
    done = browser.submit_in(page, "Undo this change")
    assert read(client, newer)["archived_at"] is None
    assert "undone" in done
    assert "Undo this change" not in done
    assert read(client, older)["merge_count"] == 0


def test_automatic_archive_shows_its_reason_and_can_be_undone(client, browser, container):
    memory_id = client.write(ONE)
    with container.databases.get("default").write() as db:
        memory = memories.get(db, memory_id)
        memories.archive(db, memory.seq, utc_now())
        detail = {"unused_days": 190, "importance": 0.12, "recalls": 0}
        audit.add(db, utc_now(), "archive", audit.AuditAction.ARCHIVE, memory_id, detail=detail)
    page = browser.page(f"{INBOX}?kind=done")
    assert "Unused for 190 days" in page
    browser.submit_in(page, "Undo this change")
    assert client.find_ids(ONE) == [memory_id]


def test_audit_entry_of_a_purged_memory_shows_only_its_id(client, browser, digested):
    older, newer = client.write(ONE), client.write(SAME)
    digested()
    client.delete(f"/v1/memories/{older}?hard=true")
    page = browser.page(f"{INBOX}?kind=done")
    assert "was purged" in page
    assert "Undo this change" not in page
    assert "nightly" not in page
    assert newer[-6:] in page


def test_late_inbox_decision_reports_no_change_and_continues(client, browser, container):
    [(_, newer), (_, other)] = pair_up(container, client, 2)
    page = browser.page(f"{INBOX}?kind=duplicates")
    client.delete(f"/v1/memories/{other}")
    left = browser.submit_in(page, "Merge")
    assert "Nothing changed: this pair is settled." in left
    assert "Undo" not in left
    assert read(client, newer)["archived_at"] is None
    for path in ("pairs/nobody", "candidates/nobody", "contradictions/nobody/no-one"):
        action = {"pairs": "keep", "candidates": "accept", "contradictions": "both"}[path.split("/")[0]]
        answer = browser.post(f"{INBOX}/{path}", {"action": action, "kind": "duplicates"})
        assert answer.status_code == 303
    assert browser.post(f"{INBOX}/pairs/nobody", {"action": "burn"}).status_code == 422


@pytest.mark.parametrize(
    ("kind", "fill"), [("duplicates", pair_up), ("contradictions", deny)], ids=["duplicates", "contradictions"]
)
def test_long_lists_come_in_pages_and_a_judgement_stays_on_its_page(client, browser, container, kind, fill):
    fill(container, client, PAGE + 3)
    first = browser.page(f"{INBOX}?kind={kind}")
    assert first.count('class="card entry"') == PAGE
    second = browser.follow(first, "Older")
    assert second.count('class="card entry"') == 3
    at = browser._at
    browser.submit_in(second, "Keep both")
    assert browser._at.partition("#")[0] == at


def test_many_candidates_come_in_pages(client, browser, reviewing, container):
    candidates(client, *(f"shop {chr(97 + n)}{chr(97 + n)}lkin" for n in range(PAGE + 2)))
    first = browser.page(INBOX)
    assert first.count('class="card entry"') == PAGE
    assert browser.follow(first, "Older").count('class="card entry"') == 2


def test_the_longest_texts_make_no_endless_page(client, browser, container):
    for number in range(PAGE):
        ids = [client.write(f"{sign}{number} " * 1200) for sign in ("lifts", "rests")]
        with container.databases.get("default").write() as db:
            first, second = (memories.get(db, one) for one in ids)
            duplicates.add(db, first.seq, second.seq, 0.9, [], utc_now())
    assert len(browser.page(f"{INBOX}?kind=duplicates")) < 100_000


def test_memory_text_is_escaped_in_the_inbox(client, browser, container):
    ids = [client.write(f"<script>alert({n})</script> on Mondays") for n in range(2)]
    with container.databases.get("default").write() as db:
        first, second = (memories.get(db, one) for one in ids)
        duplicates.add(db, first.seq, second.seq, 0.9, ["<b>bold</b>"], utc_now())
    page = browser.page(f"{INBOX}?kind=duplicates")
    assert "<script>alert" not in page
    assert "<b>bold" not in page


def test_inbox_redirect_target_is_validated(client, browser, container):
    pair_up(container, client, 1)
    with container.databases.get("default").read() as db:
        [(pair_id,)] = db.execute("SELECT id FROM pair").fetchall()
    for next_ in ("https://example.org", "//example.org", 'e-"><script>', "main"):
        fields = {"action": "keep", "kind": "duplicates", "next": next_}
        assert browser.post(f"{INBOX}/pairs/{pair_id}", fields).status_code == 422


def test_a_later_page_that_is_judged_empty_leads_to_the_first(client, browser, reviewing, container):
    ids = candidates(client, *(f"shop {chr(97 + n)}{chr(97 + n)}lkin" for n in range(PAGE + 1)))
    first = browser.page(f"{INBOX}?kind=candidates")
    last = browser.follow(first, "Older")
    assert ids[0] in last
    answer = browser.post(f"{INBOX}/candidates/{ids[0]}", {"action": "reject", **_place(last)})
    moved = browser.get(answer.headers["Location"])
    assert moved.status_code == 303
    page = browser.page(moved.headers["Location"])
    assert "Candidate rejected and archived." in page
    assert "Nobody waits" not in page
    assert page.count('data-key="m"') == PAGE
    # Where it is taken back, it stands again.
    undone = browser.submit_in(page, "Undo")
    assert ids[0] in undone
    assert count_waiting(container).candidates == PAGE + 1


def _place(page):
    return {"kind": "candidates", "before": re.search(r'name="before" value="([^"]+)"', page)[1]}
