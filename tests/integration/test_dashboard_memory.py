"""One memory on the dashboard: what is told of it, and what may be done with it and taken back."""

import re

import pytest

from pipeline.kernel.records import Stage
from pipeline.kernel.store import impressions, memories
from pipeline.kernel.store.impressions import Impression
from pipeline.kernel.times import utc_now
from tests.fakes.dashboard import sign_in
from tests.fakes.job_runs import count_accesses
from web.features.memories.page import HISTORY

ONE = "The build runs nightly on the small server."
SAME = "the build runs nightly on the small server"
MORE = "The build runs nightly on the small server together."


@pytest.fixture
def browser(client):
    return sign_in(client)


def path(memory_id):
    return f"/w/default/memories/{memory_id}"


def read(client, memory_id):
    return client.get(f"/v1/memories/{memory_id}").get_json()


def seq_of(container, memory_id):
    with container.databases.get("default").read() as db:
        return memories.get(db, memory_id).seq


def list_seen_fields(page):
    """Return what the edit form of a page says that it showed."""
    return dict(re.findall(r'name="(seen_\w+)" value="([^"]*)"', page.partition('id="edit"')[2]))


def fade(container, importance, given):
    """Let the importance of every memory fade, as the decay job does."""
    with container.databases.get("default").write() as db:
        db.execute("UPDATE memory SET importance = ?, given_importance = ?", (importance, given))


def importances(container):
    with container.databases.get("default").read() as db:
        return db.execute("SELECT importance, given_importance FROM memory").fetchall()


def card(page, title):
    """Return a section of the page without its tags."""
    found = re.search(rf"<h2[^>]*>{re.escape(title)}</h2>(.*?)</section>", page, re.DOTALL)
    assert found, title
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


def test_memory_page_shows_every_field_of_the_record(client, browser, digested):
    memory_id = client.write(
        "Use LoadGuard in src/door.py",
        kind="decision",
        details={"reason": "it failed twice", "alternatives": ["a queue", "nothing"]},
        source="import",
        session_id="s-1",
        tags=["ops"],
        metadata={"author": "Ada"},
        anchor={"path": "src/door.py", "lines": [10, 24]},
        branch="main",
        scope={"kind": "agent", "id": "claude"},
    )
    digested()
    page = browser.page(path(memory_id))
    for text in ("it failed twice", "a queue; nothing", "Text shown to agents", "&#34;author&#34;: &#34;Ada&#34;"):
        assert text in page
    comes = card(page, "Origin")
    for text in ("import", "evidence", "s-1", "agent claude", "main", "accepted, score"):
        assert text in comes
    assert "10 to 24" in card(page, "Code location")
    assert "not checked" in card(page, "Code location")
    assert "src/door.py" in card(page, "Entities")
    assert "365 days" in card(page, "Decay")
    assert re.search(r'href="/w/default/entities/[0-9A-Z]{26}"', page)
    assert 'href="/w/default/timeline?tag=ops"' in page


def test_of_an_id_that_nothing_has_there_is_no_page(client, browser):
    memory_id = client.write(ONE)
    for unknown in ("nobody", memory_id[-6:], "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        answer = browser.get(path(unknown))
        assert answer.status_code == 404
        assert "no such memory" in answer.get_data(as_text=True)
        assert browser.get(f"{path(unknown)}/purge").status_code == 404


def test_changed_code_makes_a_memory_stale(client, browser, tmp_path):
    file = tmp_path / "door.py"
    file.write_text("open()\n")
    memory_id = client.write("The door opens", anchor={"path": str(file)})
    assert "unchanged" in card(browser.page(path(memory_id)), "Code location")
    file.write_text("close()\n")
    assert "stale" in card(browser.page(path(memory_id)), "Code location")


def test_edit_is_shown_as_a_word_diff_and_can_be_undone(client, browser, container):
    memory_id = client.write("It listens on port 5433, behind the proxy", tags=["ops", "db"], importance=0.4)
    page = browser.submit(
        path(memory_id), "Save", content="It listens on port 6543, behind the proxy", tags="OPS, net", importance="0.9"
    )
    changed = read(client, memory_id)
    assert (changed["content"], changed["tags"], changed["importance"]) == (
        "It listens on port 6543, behind the proxy",
        ["ops", "net"],
        0.9,
    )
    assert "<del>5433</del><ins>6543</ins>" in page
    assert ("default", Stage.EMBED) in container.notify.sent
    undone = browser.submit_in(page, "Undo")
    worker = read(client, memory_id)
    assert (worker["content"], worker["tags"], worker["importance"]) == (
        "It listens on port 5433, behind the proxy",
        ["ops", "db"],
        0.4,
    )
    assert "<del>6543</del><ins>5433</ins>" in undone


def test_saving_an_unchanged_memory_changes_nothing(client, browser):
    memory_id = client.write("Two lines\nof text", tags=["ops"])
    before = read(client, memory_id)
    page = browser.submit(path(memory_id), "Save", content="Two lines\r\nof text", tags="ops", importance="0.5")
    assert "No changes." in page
    assert read(client, memory_id) == before


def test_unchanged_importance_keeps_its_decay_base(client, browser, container):
    memory_id = client.write(ONE, importance=0.7)
    fade(container, 0.3, 0.7)
    browser.submit(path(memory_id), "Save", content=ONE, tags="ops", importance="0.3")
    assert importances(container) == [(0.3, 0.7)]


def test_undo_of_an_importance_edit_restores_value_and_decay_base(client, browser, container):
    memory_id = client.write(ONE, importance=0.9)
    fade(container, 0.3, 0.9)
    page = browser.submit(path(memory_id), "Save", content=ONE, tags="", importance="0.5")
    assert importances(container) == [(0.5, 0.5)]
    again = browser.submit_in(page, "Undo")
    assert importances(container) == [(0.3, 0.9)]
    # What was taken back can be wanted after all.
    browser.submit_in(again, "Undo")
    assert importances(container) == [(0.5, 0.5)]


def test_fields_changed_after_the_page_was_opened_are_kept(client, browser, container):
    memory_id = client.write(ONE, importance=0.9)
    opened = browser.page(path(memory_id))
    client.patch(f"/v1/memories/{memory_id}", {"content": MORE})
    fade(container, 0.6, 0.9)
    page = browser.submit_in(opened, "Save", content=ONE, tags="ops", importance="0.9")
    changed = read(client, memory_id)
    assert (changed["content"], changed["tags"]) == (MORE, ["ops"])
    assert importances(container) == [(0.6, 0.9)]
    browser.submit_in(page, "Undo")
    assert (read(client, memory_id)["content"], read(client, memory_id)["tags"]) == (MORE, [])
    assert importances(container) == [(0.6, 0.9)]


def test_that_importance_faded_is_no_conflict(client, browser, container):
    memory_id = client.write(ONE, importance=0.9)
    opened = browser.page(path(memory_id))
    fade(container, 0.6, 0.9)
    browser.submit_in(opened, "Save", content=ONE, tags="", importance="0.4")
    assert importances(container) == [(0.4, 0.4)]


@pytest.mark.parametrize(
    ("field", "theirs", "mine", "shown"),
    [
        ("content", "They say so.", "I say <b>so</b>.", ">I say &lt;b&gt;so&lt;/b&gt;.</textarea>"),
        ("tags", ["theirs"], "mine", 'id="edit-tags" value="mine"'),
        ("importance", 0.8, "0.2", 'required value="0.2"'),
    ],
)
def test_concurrent_edit_is_not_overwritten_without_confirmation(client, browser, field, theirs, mine, shown):
    memory_id = client.write(ONE)
    form = list_seen_fields(browser.page(path(memory_id))) | {"content": ONE, "tags": "", "importance": "0.5"}
    client.patch(f"/v1/memories/{memory_id}", {field: theirs})
    answer = browser.post(f"{path(memory_id)}/edit", form | {field: mine})
    page = answer.get_data(as_text=True)
    assert answer.status_code == 409
    assert f"its {field.replace('content', 'text')} changed since you opened it" in page
    assert read(client, memory_id)[field] == theirs
    assert shown in page
    # Who wants it all the same says so once more, knowing what stands there.
    kept = {"content": ONE, "tags": "", "importance": "0.5"} | {field: mine}
    browser.submit_in(page, "Save", **kept)
    assert read(client, memory_id)[field] == {"tags": ["mine"], "importance": 0.2}.get(field, mine)


def test_from_a_refused_edit_the_page_goes_on(client, browser):
    memory_id = client.write(ONE)
    client.write(MORE)
    form = list_seen_fields(browser.page(path(memory_id))) | {"tags": "", "importance": "0.5"}
    for number in range(HISTORY + 1):
        client.patch(f"/v1/memories/{memory_id}", {"content": f"text number {number}"})
    answer = browser.post(f"{path(memory_id)}/edit", form | {"content": "Mine."})
    assert answer.status_code == 409
    assert "<del>" in browser.follow(answer.get_data(as_text=True), "Older")
    # A browser that is sent back to the address of the form finds the record.
    assert browser.get(f"{path(memory_id)}/edit").headers["Location"].endswith(path(memory_id))
    form |= list_seen_fields(browser.page(path(memory_id)))
    twin = browser.post(f"{path(memory_id)}/edit", form | {"content": MORE})
    assert twin.status_code == 409
    assert f">{MORE}</textarea>" in twin.get_data(as_text=True)


def test_undo_is_rejected_after_a_later_change(client, browser):
    memory_id = client.write(ONE, tags=["ops"])
    page = browser.submit(path(memory_id), "Save", content=MORE, tags="net", importance="0.5")
    client.patch(f"/v1/memories/{memory_id}", {"content": "Somebody was faster."})
    refused = browser.submit_in(page, "Undo")
    assert "Not changed: its text changed since you opened it." in refused
    assert (read(client, memory_id)["content"], read(client, memory_id)["tags"]) == ("Somebody was faster.", ["net"])


@pytest.mark.parametrize(
    "fields",
    [{"importance": "2"}, {"importance": "nan"}, {"tags": "a !"}, {"tags": " ".join("abcdefghijklmnopqrstu")}],
)
def test_invalid_memory_edits_are_rejected(client, browser, fields):
    memory_id = client.write(ONE)
    [wrong] = fields
    form = list_seen_fields(browser.page(path(memory_id))) | {"content": ONE, "tags": "", "importance": "0.5"}
    answer = browser.post(f"{path(memory_id)}/edit", form | fields)
    assert answer.status_code == 422
    assert f"{wrong}: " in answer.get_data(as_text=True)
    assert read(client, memory_id)["tags"] == []


def test_a_secret_is_cut_from_an_edit_too(client, browser):
    memory_id = client.write(ONE)
    token = "ghp_" + "q9W8e7R6t5Y4u3I2o1P0a9S8d7F6g7H8j9K0"
    page = browser.submit(path(memory_id), "Save", content=f"The token is {token}", tags="", importance="0.5")
    assert token not in page
    assert "REDACTED" in read(client, memory_id)["content"]


def test_an_older_text_is_brought_back_from_the_history(client, browser):
    memory_id = client.write("first text")
    for text in ("second text", "third text"):
        client.patch(f"/v1/memories/{memory_id}", {"content": text})
    page = browser.page(path(memory_id))
    # The last edit stands first: the text before it is the second.
    browser.submit_in(page, "Restore this text")
    assert read(client, memory_id)["content"] == "second text"


def test_long_history_is_paged_with_diffs_between_versions(client, browser):
    memory_id = client.write("text number 0")
    for number in range(1, HISTORY + 4):
        client.patch(f"/v1/memories/{memory_id}", {"content": f"text number {number}"})
    first = browser.page(path(memory_id))
    second = browser.follow(first, "Older")
    told = [re.findall(r"<del>(\d+)</del><ins>(\d+)</ins>", page) for page in (first, second)]
    assert [len(one) for one in told] == [HISTORY, 3]
    assert told[0] + told[1] == [(str(n - 1), str(n)) for n in range(HISTORY + 3, 0, -1)]


def test_the_text_of_a_fact_is_changed_elsewhere(client, browser):
    fact = client.put("/v1/facts/staging/port", {"value": 5433}).get_json()["id"]
    page = browser.page(path(fact))
    assert 'name="content"' not in page
    assert "set a new value" in page
    assert "no end set" in card(page, "Validity")
    assert "a current fact" in card(page, "No decay")
    browser.submit_in(page, "Save", tags="net", importance="0.9")
    assert read(client, fact)["tags"] == ["net"]


def test_a_fact_of_one_scope_leads_to_the_fact_of_that_scope(client, browser):
    client.put("/v1/facts/staging/port", {"value": 1111})
    agents = {"kind": "agent", "id": "claude & co"}
    fact = client.put("/v1/facts/staging/port", {"value": 2222, "scope": agents}).get_json()["id"]
    page = browser.page(path(fact))
    for link in ("set a new value", "staging · port"):
        followed = browser.follow(page, link)
        assert "claude &amp; co" in followed
        assert "2222" in followed
        assert "1111" not in followed
    plain = client.get("/v1/facts/staging/port").get_json()["id"]
    assert "scope=" not in re.search(r'href="([^"]+)">set a new value', browser.page(path(plain)))[1]


def test_pin_and_unpin(client, browser):
    memory_id = client.write(ONE)
    page = browser.submit(path(memory_id), "Pin")
    assert read(client, memory_id)["pinned"]
    assert "The memory is pinned" in card(page, "No decay")
    assert "Unpin" in page
    browser.submit_in(page, "Undo")
    assert not read(client, memory_id)["pinned"]


def test_evidence_is_confirmed_and_that_is_undone(client, browser):
    memory_id = client.write(ONE, source="import")
    page = browser.submit(path(memory_id), "Confirm")
    assert read(client, memory_id)["trust"] == "trusted"
    browser.submit_in(page, "Undo")
    assert read(client, memory_id)["trust"] == "evidence"


def test_undo_of_a_confirmation_restores_the_previous_trust(client, browser):
    source = client.write(ONE, source="import")
    derives = [{"kind": "derived_from", "to": source}]
    trusted, doubted = client.write(MORE, edges=derives), client.write("Told of it", edges=derives)
    browser.submit(path(trusted), "Confirm")
    page = browser.submit(path(source), "Confirm")
    later = client.write("Made of it meanwhile", edges=derives)
    trusts = [read(client, one)["trust"] for one in (source, trusted, doubted, later)]
    assert trusts == ["trusted", "trusted", "evidence", "trusted"]
    browser.submit_in(page, "Undo")
    trusts = [read(client, one)["trust"] for one in (source, trusted, doubted, later)]
    # What was derived meanwhile would have been evidence without the confirmation.
    assert trusts == ["evidence", "trusted", "evidence", "evidence"]


def test_second_confirmation_offers_no_undo(client, browser):
    memory_id = client.write(ONE, source="import")
    opened = browser.page(path(memory_id))
    browser.submit_in(opened, "Confirm")
    again = browser.submit_in(opened, "Confirm")
    assert "already confirmed" in again
    assert "Undo" not in again


def test_archive_undo_and_restore(client, browser):
    memory_id = client.write(ONE)
    page = browser.submit(path(memory_id), "Archive")
    assert "was archived" in card(page, "Archived")
    assert client.find_ids(ONE) == []
    browser.submit_in(page, "Undo")
    assert client.find_ids(ONE) == [memory_id]
    browser.submit(path(memory_id), "Archive")
    browser.submit(path(memory_id), "Restore")
    assert client.find_ids(ONE) == [memory_id]


def test_merged_memory_links_to_its_survivor_and_can_be_restored(client, browser, digested):
    older, newer = client.write(ONE), client.write(SAME)
    digested()
    page = browser.page(path(newer))
    assert "as a duplicate of" in card(page, "Archived")
    assert path(older) in page
    assert "Merged" in card(page, "Origin")
    survivor = browser.page(path(older))
    assert "merged with a duplicate" in survivor
    assert "<mark>the</mark>" in survivor
    browser.submit(path(newer), "Restore")
    assert set(client.find_ids(ONE)) == {older, newer}


def test_a_pair_that_waits_is_settled_from_the_record(client, browser, digested):
    older, newer = client.write(ONE), client.write(MORE)
    digested()
    assert "Possible duplicates" in browser.page(path(newer))
    page = browser.submit(path(newer), "Keep both")
    assert browser._at == path(newer)
    assert "Possible duplicates" not in page
    browser.submit_in(page, "Undo")
    page = browser.submit(path(older), "Merge")
    assert read(client, older)["archived_at"] is not None
    page = browser.submit_in(page, "Undo")
    assert read(client, older)["archived_at"] is None
    assert "Possible duplicates" in page


def test_edges_are_shown_in_words(client, browser):
    cause = client.write("The disk was full")
    effect = client.write("The build failed", edges=[{"kind": "derived_from", "to": cause}])
    client.post(f"/v1/memories/{cause}/edges", {"kind": "cause", "to": effect})
    assert "Caused The build failed" in card(browser.page(path(cause)), "Related memories")
    assert "Source of The build failed" in card(browser.page(path(cause)), "Related memories")
    assert "Caused by The disk was full" in card(browser.page(path(effect)), "Related memories")


def test_memory_page_shows_recalls_and_lesson_use(client, browser, container):
    lesson = client.write("Quote every path", kind="lesson")
    database = container.databases.get("default")
    seq = seq_of(container, lesson)
    count_accesses(database, {seq: 4}, utc_now())
    with database.write() as db:
        impressions.add(db, [Impression("one", seq, "s1", utc_now()), Impression("two", seq, "s1", utc_now())])
        impressions.answer(db, "one", None, utc_now(), followed=True)
    page = browser.page(path(lesson))
    matters = card(page, "Importance")
    assert "4 times, last just now" in matters
    assert "2 times: followed 1, ignored 0" in matters
    assert "After the next decay job" in matters
    assert "used 4 times" in card(page, "Decay")


def test_purge_page_lists_the_affected_memories_and_purges_them(client, browser, digested, container):
    text = "The build runs nightly on the flumadiddle."
    older, newer = client.write(text), client.write(text.lower())
    digested()
    client.patch(f"/v1/memories/{older}", {"content": f"{text} Twice!"})
    assert read(client, newer)["archived_at"] is not None
    page = browser.follow(browser.page(path(older)), "Purge…")
    assert "This cannot be undone" in page
    assert "1 memory merged into it" in " ".join(page.split())
    assert "2 history entries" in " ".join(page.split())
    assert read(client, older)["content"] == f"{text} Twice!"
    left = browser.submit_in(page, "Purge permanently")
    assert "flumadiddle" not in left
    assert "purged" in left
    assert {client.get(f"/v1/memories/{one}").status_code for one in (older, newer)} == {404}
    assert ("default", Stage.PURGE) in container.notify.sent


def test_purge_page_can_archive_instead(client, browser):
    memory_id = client.write(ONE)
    page = browser.submit(f"{path(memory_id)}/purge", "Archive instead")
    assert browser._at == path(memory_id)
    assert "was archived" in card(page, "Archived")


def test_a_purge_needs_a_form_of_ours(client, browser):
    memory_id = client.write(ONE)
    answer = browser._browser.post(f"{path(memory_id)}/purge", headers={"Host": "127.0.0.1:7077"})
    assert answer.status_code == 403
    assert read(client, memory_id)["content"] == ONE


def test_memory_text_is_escaped_on_the_memory_page(client, browser):
    hostile = "</textarea><script>alert(1)</script>"
    memory_id = client.write(
        hostile, kind="document", details={"title": hostile, "uri": "javascript:alert(1)"}, metadata={hostile: hostile}
    )
    client.patch(f"/v1/memories/{memory_id}", {"content": f"{hostile} and {hostile}"})
    linked = client.write("A page", kind="document", details={"uri": "https://example.org/x"})
    page = browser.page(path(memory_id))
    assert "<script>alert" not in page
    assert 'href="javascript:' not in page
    assert 'href="https://example.org/x"' in browser.page(path(linked))


def test_the_longest_of_everything_makes_no_endless_page(client, browser):
    memory_id = client.write(
        "word " * 1999 + "end", metadata={"long": "m" * 15_000}, tags=[f"t-{n}" for n in range(20)]
    )
    for number in range(HISTORY + 5):
        client.patch(f"/v1/memories/{memory_id}", {"content": f"{number} " * 4000})
    assert len(browser.page(path(memory_id))) < 100_000


@pytest.mark.parametrize("entry", ["9223372036854775807", "-1", "0", "9" * 5000])
def test_an_entry_that_cannot_be_is_refused(client, browser, entry):
    memory_id = client.write(ONE)
    answer = browser.post(f"{path(memory_id)}/bring-back", {"entry": entry})
    assert answer.status_code == 422
    assert "entry" in answer.get_data(as_text=True)
    assert read(client, memory_id)["content"] == ONE


def test_its_life_is_one_sequence_from_the_turn_to_now(client, browser, container, digested):
    memory_id = client.write(ONE, session_id="s-1", occurred_at="2026-01-02T03:04:05Z")
    client.write(ONE, session_id="s-2")
    shown = Impression("i-1", seq_of(container, memory_id), "s-3", utc_now())
    with container.databases.get("default").write() as db:
        impressions.add(db, [shown])
        impressions.answer(db, "i-1", None, utc_now(), followed=True)
    digested()
    browser.post(f"{path(memory_id)}/archive")
    life = card(browser.page(path(memory_id)), "Events")
    steps = (
        *("event, reported by", "s-1", "written", "accepted, score", "same text stored again", "s-2"),
        *("shown to an agent", "s-3", "(followed)", "archived", "now", "processed: embedding"),
    )
    places = [life.find(step) for step in steps]
    assert -1 not in places
    assert places == sorted(places)


def test_undigested_memory_shows_pending_stages_in_its_events(client, browser):
    life = card(browser.page(path(client.write(ONE))), "Events")
    assert "pending:" in life.partition(" now ")[2]
