"""Past sessions are found by what was said in them, below the memories, and by nobody but their person."""

import pytest

from pipeline.kernel.store import index_state, meta, turns
from pipeline.kernel.store.turns import Message, Role
from pipeline.sessions.search_usecases import make_turns_searchable, search_sessions
from tests.fakes.people import PersonClient, add_person
from web.http.contract import CALLER_HEADER, MCP

AT = "2026-03-04T12:00:00.000Z"
ASKED = "How often does the deploy key of the staging CDN rotate?"
ANSWER = "The deploy key of the staging CDN rotates every ninety days."
TEAM = "team"


def keep(container, session_id, *texts, workspace="default"):
    """Store turns of a session, alternately of the person and the agent; return their row numbers."""
    roles = (Role.USER, Role.ASSISTANT)
    messages = [Message(session_id, roles[number % 2], text, AT) for number, text in enumerate(texts)]
    with container.databases.get(workspace, create=True).write() as db:
        return turns.add(db, messages)


def search(client, text, **query):
    response = client.get("/v1/sessions/search", query_string={"query": text, **query})
    assert response.status_code == 200, response.get_data(as_text=True)
    return response.get_json()["items"]


@pytest.fixture
def archive(container):
    keep(container, "keys", ASKED, ANSWER)
    keep(container, "cats", "My cat is ill", "Take it to the vet.")


def test_a_search_quotes_the_message_that_says_most(client, archive):
    (found,) = search(client, "deploy key rotates every ninety days")
    assert (found["session_id"], found["role"], found["quote"], found["at"]) == ("keys", "assistant", ANSWER, AT)
    assert (found["agent"], found["title"]) == (None, None)
    assert 0 < found["relevance"] <= 1
    assert search(client, "kubernetes") == []
    assert len(search(client, "cat key", limit=1)) == 1


@pytest.mark.parametrize(
    "query", [{}, {"query": ""}, {"query": " "}, {"query": "x" * 5000}, {"query": "x", "limit": 0}]
)
def test_a_search_without_words_or_with_a_wrong_limit_is_rejected(client, archive, query):
    assert client.get("/v1/sessions/search", query_string=query).status_code == 422


def test_session_search_is_empty_without_sessions_or_not_found(client):
    assert client.get("/v1/sessions/search", query_string={"query": "anything"}).status_code == 404
    client.write("The staging CDN is in Frankfurt")
    assert search(client, "anything") == []


@pytest.mark.parametrize("state", ["archived", "candidate"])
def test_agents_and_recall_quote_nothing_that_does_not_hold(container, client, state):
    """A turn of which a memory was made that was archived, or waits in the inbox."""
    (seq,) = keep(container, "rotation", ANSWER)
    assert [session["session_id"] for session in client.recall(ASKED)["sessions"]] == ["rotation"]
    memory_id = client.write(ANSWER, session_id="rotation", metadata={"turn": seq})
    if state == "archived":
        client.delete(f"/v1/memories/{memory_id}")
    else:
        with container.databases.get("default").write() as db:
            db.execute("UPDATE memory SET candidate = 1 WHERE id = ?", (memory_id,))
    assert not client.recall(ASKED).get("sessions")
    asked = {"query_string": {"query": ASKED}}
    assert client.get("/v1/sessions/search", **asked, headers={CALLER_HEADER: MCP}).get_json()["items"] == []
    assert [session["session_id"] for session in search(client, ASKED)] == ["rotation"]


def test_recall_adds_matching_sessions_below_the_memories(client, archive):
    client.write("The staging CDN is in Frankfurt")
    answer = client.recall(ASKED)
    assert [session["session_id"] for session in answer["sessions"]] == ["keys"]
    assert all("session_id" in result and "content" in result for result in answer["results"])


def test_recall_leaves_out_sessions_that_repeat_a_memory_or_are_unrelated(client, archive):
    assert "sessions" in client.recall(ASKED)
    client.write("How often the deploy key of the staging CDN must rotate: every ninety days")
    client.write(ANSWER)
    assert "sessions" not in client.recall(ASKED)
    assert "sessions" not in client.recall("What is the capital of France?")
    assert "sessions" not in client.recall("thanks, that looks great")
    assert "sessions" not in client.recall("")


@pytest.mark.parametrize(
    "filters",
    [
        {"kinds": ["fact"]},
        {"tags": ["ops"]},
        {"as_of": AT},
        {"since": AT},
        {"session_id": "keys"},
        {"branch": "main"},
        {"group": "session"},
        {"viewer": {"session": "keys"}},
    ],
)
def test_recall_with_a_filter_and_from_the_session_itself_has_no_sessions(client, archive, filters):
    assert "sessions" not in client.recall(ASKED, **filters)


def test_a_purged_memory_takes_the_turn_and_its_words_along(client, container, worker):
    keep(container, "noise", *(f"Filler number {number}" for number in range(600)))
    (seq, _) = keep(container, "secret", "The zebra vault opens with 4711", "Noted")
    with container.databases.get("default").read() as db:
        assert meta.get(db, meta.TURN_SEGMENT) is None
    context = worker.context("default")
    assert context.is_needed("segment")
    assert context.rebuild_turn_segment() == 602
    memory_id = client.write("The zebra vault opens with 4711", metadata={"turn": seq})
    assert [found["session_id"] for found in search(client, "zebra vault")] == ["secret"]
    assert client.delete(f"/v1/memories/{memory_id}?hard=true").get_json()["purged"] is True
    assert search(client, "zebra vault") == []
    context.rebuild_segments()
    names = [file for file in context.paths.turn_segments.rglob("*") if file.is_file()]
    assert names
    assert not any(b"zebra" in file.read_bytes() for file in names)


def test_a_damaged_index_is_reported_and_built_again(client, container, worker):
    keep(container, "keys", ASKED, *(f"Filler number {number}" for number in range(600)))
    context = worker.context("default")
    context.rebuild_turn_segment()
    for file in context.paths.turn_segments.rglob("*.npy"):
        file.write_bytes(b"")
    assert search(client, ASKED) == []
    assert search(client, ASKED) == []
    errors = client.get("/v1/errors").get_json()["items"]
    assert [error["component"] for error in errors] == ["sessions"]
    assert context.is_needed("segment")
    assert context.rebuild_turn_segment() == 601
    assert [found["session_id"] for found in search(client, ASKED)] == ["keys"]


def test_an_agent_gets_no_quote_that_a_private_memory_was_made_of(client, container, archive):
    (seq, _) = keep(container, "private", "My salary is 4711 zebra crowns", "I see")
    client.write("The user's salary", sensitivity="private", session_id="private", metadata={"turn": seq})
    assert [found["session_id"] for found in search(client, "salary zebra crowns")] == ["private"]
    response = client.get(
        "/v1/sessions/search", query_string={"query": "salary zebra crowns"}, headers={CALLER_HEADER: MCP}
    )
    assert all("4711" not in found["quote"] for found in response.get_json()["items"])
    found = search_sessions(container.workspace("default"), container.contexts, "salary zebra crowns")
    assert all("4711" not in hit.quote for hit in found)


def test_an_incognito_session_is_never_found(client, archive):
    client.post("/v1/incognito", {"session_id": "keys", "on": True})
    assert search(client, ASKED) == []
    assert "sessions" not in client.recall(ASKED)


def test_sessions_of_another_person_are_not_found(app, client, container):
    client.write("The team meets at noon", workspace=TEAM)
    people = {
        name: PersonClient(app, container, add_person(container, name, **{TEAM: "writer"}), TEAM)
        for name in ("Ada", "Bob")
    }
    said = {
        "session_id": "s1",
        "messages": [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWER}],
    }
    assert people["Ada"].post("/v1/turns", said).status_code == 202
    assert [found["session_id"] for found in search(people["Ada"], ASKED)] == ["s1"]
    assert search(people["Bob"], ASKED) == []
    body = {"query": ASKED, "k": 10}
    assert "sessions" not in people["Bob"].post("/v1/recall", body).get_json()
    assert "sessions" in people["Ada"].post("/v1/recall", body).get_json()
    assert client.get("/v1/sessions/search", query_string={"query": ASKED}, workspace=TEAM).get_json()["items"] == []
    with container.databases.get(TEAM).write() as db:
        db.execute("DELETE FROM work")


def test_imported_turns_beyond_the_tail_are_found_once_the_import_ends(client, container, monkeypatch):
    monkeypatch.setattr(index_state, "MOST_TAIL_TURNS", 4)
    keep(container, "cats", *(f"My cat is ill, visit {number}" for number in range(6)))
    keep(container, "keys", ASKED, ANSWER)
    assert search(client, "deploy key rotates ninety") == []
    make_turns_searchable(container.workspace("default"))
    (found,) = search(client, "deploy key rotates ninety")
    assert found["session_id"] == "keys"


def test_a_server_that_searches_during_an_import_finds_everything_at_its_end(client, container, monkeypatch):
    monkeypatch.setattr(index_state, "MOST_TAIL_TURNS", 4)
    workspace = container.workspace("default")
    keep(container, "dogs", *(f"My dog is well, visit {number}" for number in range(6)))
    make_turns_searchable(workspace)
    assert search(client, "deploy key rotates ninety") == []
    keep(container, "cats", *(f"My cat is ill, visit {number}" for number in range(6)))
    keep(container, "keys", ASKED, ANSWER)
    assert search(client, "deploy key rotates ninety") == [], "the server has the segment before the import in memory"
    make_turns_searchable(workspace)
    (found,) = search(client, "deploy key rotates ninety")
    assert found["session_id"] == "keys"
