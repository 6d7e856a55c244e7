"""Recall over HTTP: what is found, what is kept back, and in what time."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pipeline.kernel.errors import IndexUnavailable
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import open_web
from tests.fakes.reranker import WordReranker
from web.http.app import create_app


def test_a_write_is_found_by_the_very_next_recall(client):
    for number in range(20):
        written = client.write(f"Service unit{number} listens on port {8000 + number}")
        assert client.find_ids(f"unit{number} port")[0] == written


def test_identifier_is_found_entire_and_by_its_parts(client):
    written = client.write("LoadGuard reads src/config/verdict-policy.ts (see ABC-123)")
    client.write("The lunch menu changes on Mondays")
    for query in (
        "verdict-policy.ts",
        "verdict policy",
        "LoadGuard",
        "load guard",
        "ABC-123",
        "src/config/verdict-policy.ts",
    ):
        assert client.find_ids(query)[0] == written


def test_results_below_min_relevance_are_left_out(client, digested):
    port = client.write("The billing service listens on port 8123")
    lunch = client.write("The lunch service changes its menus on Mondays", session_id="another")
    digested()
    question = "billing service port"
    found = {hit["id"]: hit["relevance"] for hit in client.recall(question, min_relevance=0)["results"]}
    assert list(found) == [port, lunch]
    between = (found[port] + found[lunch]) / 2
    assert client.find_ids(question, min_relevance=between) == [port]
    why = client.post("/v1/recall/why", {"query": question, "id": lunch, "min_relevance": between}).json
    assert why["reasons"] == [f"left out: its relevance is {found[lunch]:.4f}, and {between:.4f} is asked for"]


@pytest.mark.parametrize("least", [-0.1, 1.1, "much"])
def test_a_relevance_is_a_probability(client, least):
    answer = client.post("/v1/recall", {"query": "port", "min_relevance": least})
    assert answer.status_code == 422
    assert "min_relevance" in answer.get_data(as_text=True)


def test_dense_channel_finds_digested_memories(client, digested):
    written = client.write("The billing service listens on port 8123")
    digested()
    answer = client.recall("billing service", explain=True)
    assert answer["channels"]["dense"]["state"] == "ok"
    assert answer["degraded"] is False
    assert answer["results"][0]["id"] == written
    assert answer["results"][0]["signals"]["channels"]["dense"]["score"] > 0.5


def test_without_an_encoder_recall_is_lexical_and_degraded(home):
    container = open_web(home)
    container.encoders._encoder = None
    client = CheckedClient(create_app(container), container.token)
    written = client.write("The billing service listens on port 8123")
    answer = client.recall("billing port")
    container.close()
    assert [hit["id"] for hit in answer["results"]] == [written]
    assert answer["channels"]["dense"]["state"] == "cold"
    assert answer["degraded"] is True


def test_configured_reranker_is_reported_until_loaded_and_then_reorders(home):
    container = open_web(replace(home, reranker="absent"))
    client = CheckedClient(create_app(container), container.token)
    first = client.write("The billing service listens on port 8123")
    other = client.write("The billing service listens on a port that was decided")
    before = client.recall("billing service port 8123")
    container.rerankers = SimpleNamespace(get=lambda _name: WordReranker("decided"), stop=lambda: None)
    after = client.recall("billing service port 8123", explain=True, min_relevance=0)
    container.close()
    assert (before["results"][0]["id"], before["channels"]["reranker"]["state"]) == (first, "cold")
    assert before["degraded"] is True
    assert after["channels"]["reranker"]["state"] == "ok"
    assert {hit["id"]: hit["signals"]["parts"].get("reranker", 0) for hit in after["results"]} == {
        first: 0,
        other: 0.25,
    }


@pytest.mark.parametrize("fold", [False, True])
def test_an_edit_is_found_by_the_new_text_and_not_by_the_old(client, worker, fold):
    written = client.write("The billing service listens on zebra")
    if fold:
        worker.context("default").rebuild_segment()
    client.patch(f"/v1/memories/{written}", {"content": "The billing service listens on giraffe"})
    results = client.recall("zebra", explain=True)["results"]
    assert not any(hit["signals"]["channels"]["lexical"]["score"] > 0 for hit in results)
    assert client.find_ids("giraffe") == [written]


def test_an_answer_of_nothing_does_not_hide_a_later_write(client):
    client.write("Something else entirely")
    assert client.find_ids("aardvark") == []
    written = client.write("The aardvark eats ants")
    assert client.find_ids("aardvark") == [written]


def test_filters_choose_before_the_ranking_does(client):
    early = client.write("The port is one", kind="decision", session_id="a", occurred_at="2026-01-01T00:00:00Z")
    late = client.write("The port is two", kind="lesson", session_id="b", occurred_at="2026-02-01T00:00:00Z")
    for number in range(150):
        client.write(f"The port port port is also {number}")
    assert client.find_ids("port", kinds=["decision"]) == [early]
    assert client.find_ids("port", kinds=["decision", "lesson"], until="2026-01-15T00:00:00Z") == [early]
    assert client.find_ids("port", session_id="b") == [late]
    assert client.find_ids("port", since="2026-01-01T00:00:00Z", until="2026-02-01T00:00:00Z") == [early]
    assert client.find_ids("port", since="2026-02-01T01:00:00+01:00", until="2026-03-01T00:00:00Z") == [late]
    assert client.find_ids("port", kinds=["goal"]) == []


def test_scoped_memory_is_found_only_within_its_scope(client):
    workspace = client.write("The port is open to all")
    agent = client.write("The port is an agent's", scope={"kind": "agent", "id": "a1"})
    own = client.write("The port is a session's", scope={"kind": "session"}, session_id="s1")
    assert client.find_ids("port") == [workspace]
    assert client.find_ids("port", session_id="s1") == [own]
    assert client.find_ids("port", session_id="s1", viewer={"session": "s2"}) == []
    assert client.find_ids("port", scope={"kind": "agent", "id": "a1"}) == [agent]
    assert client.find_ids("port", scope={"kind": "agent", "id": "a2"}) == []
    assert client.find_ids("port", scope={"kind": "session"}, session_id="s1") == [own]


@pytest.mark.parametrize(
    "session", ["s1", " s1 ", "s\u200b1", "cafe\u0301", "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"]
)
def test_a_session_is_found_by_the_name_it_was_written_under(client, session):
    written = client.write("The port is 8123", session_id=session, scope={"kind": "session", "id": session})
    assert client.find_ids("port", session_id=session) == [written]
    assert client.find_ids("port", scope={"kind": "session", "id": session}) == [written]
    listed = client.get("/v1/memories", query_string={"session_id": session}).get_json()["items"]
    assert [memory["id"] for memory in listed] == [written]


def test_sessions_are_answered_as_groups(client):
    for session in ("a", "b", "c"):
        for number in range(5):
            client.write(f"Session {session} talked of port {number}", session_id=session)
    client.write("A port without a session")
    results = client.recall("session a port", group="session", k=2, explain=True)["results"]
    assert len(results) == 2
    assert results[0]["session_id"] == "a"
    assert all(1 <= len(group["best"]) <= 3 for group in results)
    assert all(hit["session_id"] == group["session_id"] for group in results for hit in group["best"])
    assert results[0]["score"] >= results[1]["score"]


def test_an_empty_query_lists_by_pin_importance_and_recency(client):
    low = client.write("Low", importance=0.1)
    old = client.write("Old", importance=0.9, occurred_at="2025-01-01T00:00:00Z")
    new = client.write("New", importance=0.9, occurred_at="2026-01-01T00:00:00Z")
    pinned = client.write("Pinned", importance=0.0)
    client.patch(f"/v1/memories/{pinned}", {"pinned": True})
    answer = client.recall("", k=3)
    assert [hit["id"] for hit in answer["results"]] == [pinned, new, old]
    assert {report["state"] for report in answer["channels"].values()} == {"off"}
    assert client.find_ids("", kinds=["fact"])[-1] == low


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": " \n"},
        {"query": "x" * 4001},
        {"query": "x", "k": 0},
        {"query": "x", "k": 101},
        {"query": "x", "k": "3"},
        {"query": "x", "kinds": ["rumour"]},
        {"query": "x", "scope": {"kind": "agent"}},
        {"query": "x", "group": "topic"},
        {"query": "x", "budget_ms": 0},
        {"query": "x", "since": "yesterday"},
        {"query": "x", "surprise": True},
    ],
)
def test_an_invalid_recall_names_its_field(shared, body):
    answer = shared.post("/v1/recall", body)
    assert answer.status_code == 422
    assert answer.get_json()["errors"]


@pytest.mark.parametrize(
    "query", ["'", '"', "*", "NEAR(a b)", "a OR", "col:x", "-x", "^x", "\x00", "%_", "(((", "日本", "ß"]
)
def test_no_query_breaks_the_search(shared, query):
    shared.recall(query)


def test_a_channel_past_its_budget_is_late_and_left_out(client, container, monkeypatch):
    written = client.write("The port is 8123")
    release = threading.Event()
    encoder = container.encoders.get()
    monkeypatch.setattr(encoder, "encode_query", lambda _text: release.wait(60))
    answer = client.recall("port", budget_ms=50)
    release.set()
    assert answer["channels"]["dense"]["state"] == "late"
    assert answer["degraded"] is True
    assert [hit["id"] for hit in answer["results"]] in ([written], [])


def test_a_millisecond_is_enough_for_an_answer(client, container, monkeypatch):
    client.write("The port is 8123")
    release = threading.Event()
    monkeypatch.setattr("pipeline.index.lexical.LexicalIndex.search", lambda *_: release.wait(60))
    monkeypatch.setattr(container.encoders.get(), "encode_query", lambda _text: release.wait(60))
    answer = client.recall("port", budget_ms=1)
    release.set()
    assert answer["results"] == []
    assert {answer["channels"][name]["state"] for name in ("lexical", "dense")} == {"late"}


def test_a_broken_segment_is_cold_reported_and_asked_for_again(client, container, worker):
    client.write("The port is 8123")
    worker.context("default").rebuild_segment()
    for file in container.settings.paths.workspace("default").lexical.rglob("*.npy"):
        file.write_bytes(b"")
    answer = client.recall("port")
    assert answer["channels"]["lexical"]["state"] == "cold"
    container.feedback.submit(lambda: None).result(timeout=10)
    assert "segment" in worker.context("default").list_needed_jobs()
    assert any(e["component"] == "recall.lexical" for e in client.get("/v1/errors").get_json()["items"])
    worker.context("default").rebuild_segment()
    assert len(client.find_ids("port")) == 1


def test_a_broken_vector_index_does_not_silence_the_words(client, container, monkeypatch):
    written = client.write("The port is 8123")

    def broken(*_args):
        raise IndexUnavailable("vectors: cut")

    monkeypatch.setattr("pipeline.index.dense.DenseIndex.search", broken)
    answer = client.recall("port")
    assert [hit["id"] for hit in answer["results"]] == [written]
    assert answer["channels"]["dense"]["state"] == "cold"
    container.feedback.submit(lambda: None).result(timeout=10)
    assert "vectors: cut" in client.get("/v1/errors").get_data(as_text=True)


def test_the_same_question_gets_the_same_answer(client, digested):
    for number in range(30):
        client.write(f"Note {number % 7} on port {number}", session_id=f"s{number % 4}")
    digested()
    answers = [client.recall("note on port 3", k=30)["results"] for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]


def test_the_explained_parts_add_up_to_the_score(client, digested):
    for number in range(12):
        client.write(f"Note {number} on port {number}", session_id="s", importance=number / 12)
    digested()
    for hit in client.recall("note on port 3", explain=True)["results"]:
        signals = hit["signals"]
        parts = signals["parts"].values()
        assert sum(parts) == pytest.approx(hit["score"], abs=1e-5)


def test_signals_are_shown_on_demand_only(client):
    client.write("The port is 8123")
    assert "signals" not in client.recall("port")["results"][0]


def test_a_workspace_may_set_its_own_budget(client, container):
    written = client.write("The port is 8123")
    container.settings.paths.workspace("default").config.write_text("recall_budget_ms = 4000\n")
    assert container.workspace("default").settings.recall_budget_ms == 4000
    container.settings.paths.workspace("default").config.write_text("port = 1\n")
    assert client.find_ids("port") == [written]
    assert "port cannot differ between workspaces" in client.get("/v1/errors").get_data(as_text=True)


def test_recall_why_explains_excluded_memories(client):
    wanted = client.write("The billing service listens on port 8123", kind="fact")
    archived = client.write("The billing service listened on port 8000")
    client.delete(f"/v1/memories/{archived}")

    def reasons(memory_id: str, **question) -> list[str]:
        answer = client.post("/v1/recall/why", {"query": "billing port", "id": memory_id, **question})
        assert answer.status_code == 200
        return answer.get_json()["reasons"]

    assert reasons(wanted) == ["found: number 1 of the results"]
    assert reasons(wanted, kinds=["lesson"]) == ["filtered by kinds: it is a fact"]
    assert reasons(wanted, since="2100-01-01T00:00:00Z")[0].startswith("filtered by since")
    assert reasons(archived)[0].startswith("filtered: archived at")
    assert client.post("/v1/recall/why", {"query": "x", "id": "unknown"}).status_code == 404
    assert client.post("/v1/recall/why", {"query": "", "id": wanted}).get_json()["errors"][0]["loc"] == "query"


def test_a_neighbour_that_lifted_a_result_is_named(client, digested):
    question = client.write("Ada: which port does billing use?", session_id="s")
    answer = client.write("Bob: 8123, since the move", session_id="s")
    for number in range(12):
        client.write(f"Unrelated note {number} about gardening", session_id=f"other-{number}")
    digested()
    hits = {hit["id"]: hit for hit in client.recall("billing port", explain=True)["results"]}
    lifts = hits[answer]["signals"]["lifted_by"]
    assert {"part": "adjacent_turn", "id": question} in [{"part": lift["part"], "id": lift["id"]} for lift in lifts]


def test_why_takes_the_short_id_that_lists_show(client):
    wanted = client.write("The billing service listens on port 8123")
    full = client.post("/v1/recall/why", {"query": "billing port", "id": wanted}).get_json()
    for short in (wanted[-8:], wanted[-8:].lower()):
        assert client.post("/v1/recall/why", {"query": "billing port", "id": short}).get_json()["rank"] == full["rank"]
    assert client.post("/v1/recall/why", {"query": "billing port", "id": "ZZZZZZZZ"}).status_code == 404
