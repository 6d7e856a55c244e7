"""Writing, reading, changing and forgetting over HTTP."""

import pytest

from pipeline.kernel.records import MAX_CONTENT_CHARS, Kind, Outcome
from tests.fakes.client import CheckedClient

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def read(client: CheckedClient, memory_id: str) -> dict:
    return client.get(f"/v1/memories/{memory_id}").get_json()


def test_written_memory_is_read_back_with_every_field(client):
    fields = {
        "kind": "decision",
        "importance": 0.75,
        "tags": ["db", "ops", "db"],
        "metadata": {"pr": 12, "deep": {"list": [1, None, "ü"]}},
        "session_id": "session-1",
        "source": "agent",
        "occurred_at": "2026-01-02T03:04:05+02:00",
    }
    memory = read(client, client.write("  PostgreSQL\r\nruns on port 5433  ", **fields))
    assert memory["content"] == "PostgreSQL\nruns on port 5433"
    assert memory["tags"] == ["db", "ops"]
    assert memory["occurred_at"] == "2026-01-02T01:04:05.000Z"
    assert memory["scope"] == {"kind": "workspace", "id": None}
    same = ("kind", "importance", "metadata", "session_id", "source")
    assert {name: memory[name] for name in same} == {name: fields[name] for name in same}
    assert memory["provenance"]["written_at"] == memory["created_at"] == memory["updated_at"]
    assert memory["history"] == []


def test_the_least_that_can_be_said_gets_defaults(client):
    memory = read(client, client.write("Just a text"))
    assert (memory["kind"], memory["source"], memory["trust"], memory["pinned"]) == ("fact", "user", "trusted", False)
    assert memory["occurred_at"] == memory["created_at"]
    assert memory["archived_at"] is None


@pytest.mark.parametrize(
    ("source", "trust"), [("user", "trusted"), ("agent", "trusted"), ("ambient", "evidence"), ("import", "evidence")]
)
def test_memory_from_an_untrusted_source_is_evidence(shared, source, trust):
    memory_id = shared.write(f"The deploy of {source} failed because the migration lock was held", source=source)
    assert read(shared, memory_id)["trust"] == trust


def test_extractor_fields_are_stored_and_redacted(client):
    known = {"value": 8123, "evidence": f"run it on 8123, the token is {SECRET}", "confidence": 0.9}
    memory = read(
        client, client.write("Billing listens on port 8123", metadata={"pr": 1}, disposition="store", **known)
    )
    extraction = memory["metadata"]["extraction"]
    assert (memory["metadata"]["pr"], extraction["value"], extraction["confidence"]) == (1, 8123, 0.9)
    assert extraction["disposition"] == "store"
    assert SECRET not in extraction["evidence"]
    assert "8123" in extraction["evidence"]


@pytest.mark.parametrize(
    ("known", "outcome", "reason"),
    [
        ({"confidence": 0.2}, "rejected", "the extractor is not sure"),
        ({"disposition": "review", "confidence": 0.9}, "candidate", "the extractor asks for a review"),
        ({"disposition": "drop"}, "rejected", "the extractor advises against it"),
        ({"disposition": "store", "confidence": 0.6, "value": True}, "created", None),
    ],
)
def test_an_extractors_doubt_counts_from_any_source(shared, known, outcome, reason):
    content = f"Invoices are rounded to ten cents, {known}"
    receipt = shared.post("/v1/memories", {"content": content, **known}).get_json()
    assert (receipt["outcome"], (receipt.get("reason") or "").split("; ")[0] or None) == (outcome, reason)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("value", ""), ("value", ["tabs"]), ("evidence", " "), ("evidence", "x" * 2001), ("evidence", 3)),
        *(("confidence", 1.01), ("confidence", "high"), ("confidence", True), ("disposition", "keep")),
    ],
)
def test_invalid_extractor_fields_are_rejected_by_name(shared, field, value):
    answer = shared.post("/v1/memories", {"content": "Indent with tabs", field: value})
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["loc"].split(".")[-1] == field


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_can_be_written(shared, kind):
    key = {"details": {"subject": "billing", "attribute": "port", "value": "8123"}} if kind is Kind.KEYED_FACT else {}
    assert read(shared, shared.write(f"A text of kind {kind}", kind=kind, **key))["kind"] == kind


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", ""),
        ("content", " \n\t"),
        ("content", "\u200b"),
        ("content", "x" * (MAX_CONTENT_CHARS + 1)),
        ("content", 7),
        ("kind", "rumour"),
        ("importance", 1.01),
        ("importance", -0.01),
        ("importance", "0.5"),
        ("importance", True),
        ("tags", ["!"]),
        ("tags", [f"tag-{n}" for n in range(21)]),
        ("tags", "db"),
        ("metadata", []),
        ("metadata", {"big": "x" * 17_000}),
        ("session_id", ""),
        ("session_id", "s" * 257),
        ("source", "gossip"),
        ("occurred_at", "2026-01-02T03:04:05"),
        ("occurred_at", "yesterday"),
        ("occurred_at", "0001-01-01T00:00:00+14:00"),
        ("scope", {"kind": "planet"}),
        ("scope", {"kind": "agent"}),
        ("scope", {"kind": "task"}),
        ("scope", {"kind": "session"}),
        ("surprise", 1),
    ],
)
def test_an_invalid_field_is_named_and_its_value_is_not_repeated(shared, field, value):
    answer = shared.post("/v1/memories", {"content": "A text", field: value})
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["loc"].split(".")[0] == field
    assert isinstance(value, int) or str(value).strip() == "" or str(value) not in answer.get_data(as_text=True)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_cannot_carry_are_refused(shared, number):
    for body in (f'{{"content": "x", "importance": {number}}}', f'{{"content": "x", "metadata": {{"a": [{number}]}}}}'):
        assert shared.post("/v1/memories", data=body.encode()).status_code in (400, 422)


def test_an_exact_repeat_merges_into_the_first(client):
    first = client.write("Deploys run on   Fridays", tags=["ops"], importance=0.2)
    answer = client.post("/v1/memories", {"content": "Deploys run on Fridays", "tags": ["ci"], "importance": 0.9})
    assert answer.status_code == 201
    assert answer.get_json() == {"id": first, "outcome": Outcome.MERGED, "duplicate_of": first}
    memory = read(client, first)
    assert (memory["merge_count"], memory["tags"], memory["importance"]) == (1, ["ops", "ci"], 0.9)
    assert [entry["event"] for entry in memory["history"]] == ["merged"]


def test_the_same_text_in_another_scope_is_another_memory(client):
    ids = {
        client.write("Deploys run on Fridays"),
        client.write("Deploys run on Fridays", scope={"kind": "user"}),
        client.write("Deploys run on Fridays", scope={"kind": "agent", "id": "a1"}),
        client.write("Deploys run on Fridays", scope={"kind": "agent", "id": "a2"}),
        client.write("Deploys run on Fridays", scope={"kind": "session"}, session_id="s1"),
    }
    assert len(ids) == 5


def test_a_batch_answers_in_its_order(client):
    contents = ["One", "Two", "One", "Three"]
    answer = client.post("/v1/memories/batch", {"items": [{"content": c} for c in contents]})
    results = answer.get_json()["results"]
    assert [r["outcome"] for r in results] == ["created", "created", "merged", "created"]
    assert results[2]["duplicate_of"] == results[0]["id"]
    assert [read(client, r["id"])["content"] for r in results] == contents


def test_invalid_item_rejects_the_entire_batch(client, container):
    items = [{"content": "Good"}, {"content": "Fine"}, {"content": "\u200b"}]
    answer = client.post("/v1/memories/batch", {"items": items})
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["loc"] == "items.2.content"
    assert container.settings.paths.workspace_ids() == []


def test_a_batch_has_at_most_a_thousand_items(client):
    items = [{"content": f"Memory {n}"} for n in range(1001)]
    assert client.post("/v1/memories/batch", {"items": items}).status_code == 422
    assert client.post("/v1/memories/batch", {"items": items[:1000]}).status_code == 200


def test_listing_pages_through_everything_once_newest_first(client):
    written = [client.write(f"Memory number {n}") for n in range(7)]
    seen, cursor = [], ""
    while cursor is not None:
        page = client.get(f"/v1/memories?limit=3{cursor and f'&cursor={cursor}'}").get_json()
        seen += [memory["id"] for memory in page["items"]]
        cursor = page["next_cursor"]
    assert seen == written[::-1]


def test_listing_narrows_by_kind_session_scope_and_archive(client):
    plain = client.write("A plain fact")
    lesson = client.write("A lesson", kind="lesson", session_id="s1")
    agent = client.write("An agent's own", scope={"kind": "agent", "id": "bot:1"})
    own = client.write("For this session only", scope={"kind": "session"}, session_id="s1")
    gone = client.write("An old fact")
    client.delete(f"/v1/memories/{gone}")

    def list_ids(query: str) -> list[str]:
        return [memory["id"] for memory in client.get(f"/v1/memories?{query}").get_json()["items"]]

    assert list_ids("") == [lesson, plain]
    assert list_ids("kind=lesson") == [lesson]
    assert list_ids("session_id=s1") == [own, lesson]
    assert list_ids("scope=workspace") == [lesson, plain]
    assert list_ids("scope=agent:bot:1") == [agent]
    assert list_ids("scope=session:s1") == [own]
    assert list_ids("scope=session&session_id=s1") == [own]
    assert list_ids("archived=true") == [gone]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=x", "cursor=x", "kind=rumour", "scope=planet", "scope=agent", "colour=red"]
)
def test_unknown_listing_filters_are_rejected(shared, query):
    assert shared.get(f"/v1/memories?{query}").status_code == 422


def test_an_edit_keeps_the_old_text_in_the_history(client, container):
    written = client.write("The port is 8123")
    container.notify.sent.clear()
    answer = client.patch(f"/v1/memories/{written}", {"content": "The port is 9000", "pinned": True, "tags": ["net"]})
    assert answer.status_code == 200
    memory = read(client, written)
    assert (memory["content"], memory["pinned"], memory["tags"]) == ("The port is 9000", True, ["net"])
    assert [(entry["event"], entry["content"]) for entry in memory["history"]] == [("edited", "The port is 8123")]
    assert {stage for _, stage in container.notify.sent} == {"embed", "entities"}


def test_an_edit_that_changes_nothing_leaves_no_trace(client):
    written = client.write("The port is 8123", metadata={"a": 1})
    before = client.get("/v1/stats").get_json()["generation"]
    for body in ({}, {"content": "The port is 8123"}, {"content": None}):
        assert client.patch(f"/v1/memories/{written}", body).status_code == 200
    assert client.get("/v1/stats").get_json()["generation"] == before
    assert read(client, written)["history"] == []


def test_an_edit_into_the_words_of_another_memory_is_a_conflict(client):
    client.write("The port is 8123")
    written = client.write("The port is 9000")
    assert client.patch(f"/v1/memories/{written}", {"content": "The port  is 8123"}).status_code == 409
    assert read(client, written)["content"] == "The port is 9000"


@pytest.mark.parametrize(
    "body", [{"content": " "}, {"importance": 2}, {"tags": ["!"]}, {"metadata": {"a": "x" * 17_000}}, {"kind": "qa"}]
)
def test_an_invalid_edit_is_refused(client, body):
    written = client.write("The port is 8123")
    assert client.patch(f"/v1/memories/{written}", body).status_code == 422


def test_archive_and_restore_undo_each_other(client):
    written = client.write("The port is 8123")
    archived = client.delete(f"/v1/memories/{written}").get_json()
    assert archived["archived_at"] is not None
    assert client.delete(f"/v1/memories/{written}").get_json() == archived
    assert client.find_ids("port 8123") == []
    assert read(client, written)["archived_at"] == archived["archived_at"]
    assert client.post(f"/v1/memories/{written}/restore").get_json()["archived_at"] is None
    assert client.find_ids("port 8123") == [written]


def test_restoring_a_rewritten_memory_is_a_conflict(client):
    written = client.write("The port is 8123")
    client.delete(f"/v1/memories/{written}")
    client.write("The port is 8123")
    assert client.post(f"/v1/memories/{written}/restore").status_code == 409


def test_a_purge_leaves_no_trace_in_any_file(client, container, digested, worker):
    kept = client.write("The gateway runs near Zurich")
    written = client.write("The codeword is xylophonic with Ada Byron")
    client.patch(f"/v1/memories/{written}", {"content": "The codeword is quixotically with Ada Byron"})
    digested()
    worker.context("default").rebuild_segment()
    assert client.delete(f"/v1/memories/{written}?hard=true").get_json()["purged"] is True
    assert client.get(f"/v1/memories/{written}").status_code == 404
    assert client.find_ids("codeword") == [kept]
    digested()
    folder = container.settings.paths.workspace("default").root
    stored = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()).lower()
    for trace in (b"xylophon", b"quixotic", b"ada byron"):
        assert trace not in stored
    assert client.find_ids("gateway") == [kept]
    assert client.get("/v1/stats").get_json()["index"]["passages"] == 1


def test_unknown_memory_is_not_found(client):
    client.write("Something")
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("DELETE", "?hard=true"), ("POST", "/restore")):
        body = {"json": {}} if method == "PATCH" else {}
        assert client.call(method, f"/v1/memories/01ARZ3NDEKTSV4RRFFQ69G5FAV{path}", **body).status_code == 404
    assert client.delete("/v1/memories/01ARZ3NDEKTSV4RRFFQ69G5FAV?hard=perhaps").status_code == 422


def test_secrets_never_come_back(client, container):
    written = client.write(
        f"The token is {SECRET}, keep it",
        metadata={"env": {"key": SECRET}, SECRET: 1},
        session_id=f"session {SECRET}",
        scope={"kind": "agent", "id": f"agent {SECRET}"},
    )
    other = client.write("Nothing to see")
    client.patch(f"/v1/memories/{other}", {"content": f"Now {SECRET} is here", "metadata": {"k": [SECRET]}})
    shown = [
        client.get(path).get_data(as_text=True)
        for path in (f"/v1/memories/{written}", f"/v1/memories/{other}", "/v1/memories", "/v1/errors")
    ]
    shown.append(client.post("/v1/recall", {"query": "token keep"}).get_data(as_text=True))
    assert not any(SECRET in text for text in shown)
    folder = container.settings.paths.root
    assert not any(SECRET.encode() in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_a_write_rings_for_its_stages_and_a_merge_for_none(client, container):
    client.write("The port is 8123")
    assert set(container.notify.sent) == {("default", "embed"), ("default", "entities")}
    container.notify.sent.clear()
    client.write("The port is 8123")
    assert container.notify.sent == []
