"""A purge after a memory was shown through every door: no file of the data directory contains a word of it any more."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from pipeline.features.snapshots.job import take_snapshot
from tests.fakes.in_process import flush_notes

SECRET = "Always ask Xylander before zubrowkating the qwyjibofier_handler at night."
WORDS = ("zubrowkating", "qwyjibofier", "xylander")
OTHERS = ("The billing service listens on port 8123.", "Never deploy the billing service on a Friday evening.")
USER = {"kind": "user"}


def list_traces(home, words=WORDS):
    """List (file, word) for every file of the data directory that contains a word in some case."""
    found = []
    for file in sorted(home.paths.root.rglob("*")):
        if file.is_file() and home.paths.models not in file.parents:
            text = file.read_bytes().lower()
            found += [(str(file.relative_to(home.paths.root)), word) for word in words if word.encode() in text]
    return found


def hook(client, event, workspace="default", **fields):
    body = {"hook_event_name": event, "session_id": "s1", "cwd": "", **fields}
    return client.post("/hooks/claude-code", body, workspace=workspace).get_data(as_text=True)


def show_everywhere(client, memory_id, workspace="default"):
    """Put a memory before agents and people in every way that leaves a note."""
    question = "who must be asked before zubrowkating the qwyjibofier_handler at night?"
    told = hook(client, "UserPromptSubmit", workspace, prompt=question)
    told += hook(client, "SessionStart", workspace, source="startup")
    guarded = {"tool_name": "Bash", "tool_input": {"command": "make qwyjibofier_handler"}}
    hook(client, "PreToolUse", workspace, **guarded)
    for options in ({}, {"trace": True}, {"explain": True}):
        client.post("/v1/recall", {"query": question, **options}, workspace=workspace)
    client.post("/v1/prepare", {"message": question}, workspace=workspace)
    for path in ("/v1/memories", f"/v1/memories/{memory_id}", "/v1/timeline", "/v1/export", "/v1/lessons"):
        client.get(path, workspace=workspace)
    # A session tells of what its tools answered; some answers quote without a list of ids.
    for text, ids in ((f"- [{memory_id[-8:]}] {SECRET}", [memory_id]), (f"Brief:\n{SECRET}", [])):
        run = {"event": "mcp:recall", "host": "codex", "session_id": "s2", "took_ms": 1, "outcome": "told"}
        client.post("/v1/hook-runs", {**run, "memory_ids": ids, "text": text}, workspace=workspace)
    say = {"session_id": "s3", "messages": [{"role": "user", "content": f"As noted: {SECRET.lower()} Is that right?"}]}
    client.post("/v1/turns", say, workspace=workspace)
    return told


def purge(client, memory_id, workspace="default"):
    reply = client.delete(f"/v1/memories/{memory_id}?hard=true", workspace=workspace)
    assert (reply.status_code, reply.get_json()["purged"]) == (200, True)


@pytest.mark.files
@pytest.mark.parametrize("kind", ["fact", "lesson"])
def test_purge_erases_shown_text_from_every_file(client, container, home, digested, kind):
    others = [client.write(text) for text in OTHERS]
    memory_id = client.write(SECRET, kind=kind, tags=["critical"])
    digested()
    assert SECRET in show_everywhere(client, memory_id)
    container.operations.record_error("digest.embed", f"memory 3, embed: ValueError: {SECRET}", workspace="default")
    log = home.paths.logs / "reverie.log"
    log.write_text(f"INFO started\nERROR {SECRET}\nINFO go on\n", encoding="utf-8")
    take_snapshot(container.workspace("default").paths, datetime.now(UTC))
    flush_notes(container)
    assert {word for _, word in list_traces(home)} == set(WORDS)
    purge(client, memory_id)
    digested()
    assert list_traces(home) == []
    assert log.read_text(encoding="utf-8").splitlines()[::2] == ["INFO started", "INFO go on"]
    assert {one["id"] for one in client.get("/v1/memories").get_json()["items"]} == set(others)
    assert client.get("/v1/queue").get_json()["pending"]["purge"] == 0


@pytest.mark.files
def test_purge_of_a_personal_memory_erases_its_shown_text_from_every_file(client, container, home, digested):
    client.write(OTHERS[0], workspace="alpha")
    memory_id = client.write(SECRET, scope=USER, workspace="alpha")
    digested("me")
    for workspace in ("alpha", "beta"):
        show_everywhere(client, memory_id, workspace)
    flush_notes(container)
    purge(client, memory_id, "beta")
    for workspace in ("me", "alpha", "beta"):
        digested(workspace)
    assert list_traces(home) == []


@pytest.mark.files
def test_purge_erases_text_shown_in_unwritten_hook_runs(client, container, home, digested):
    """A run is noted in its turn: what waits to be written when a memory is purged is found too."""
    memory_id = client.write(SECRET)
    digested()
    show_everywhere(client, memory_id)
    purge(client, memory_id)
    client.post(
        "/v1/hook-runs",
        {"event": "mcp:get", "host": "codex", "took_ms": 1, "outcome": "told", "text": f"It says: {SECRET}"},
    )
    flush_notes(container)
    digested()
    assert list_traces(home) == []


@pytest.mark.files
def test_a_reader_of_the_journal_puts_the_purge_off(client, container, home, digested, worker):
    memory_id = client.write(SECRET)
    digested()
    show_everywhere(client, memory_id)
    flush_notes(container)
    with closing(sqlite3.connect(home.paths.home, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM hook_run").fetchone()
        purge(client, memory_id)
        assert client.get("/v1/queue").get_json()["pending"]["purge"] == 1
    digested()
    assert list_traces(home) == []
    assert client.get("/v1/queue").get_json()["pending"]["purge"] == 0


def test_runs_and_turns_of_other_memories_stay(client, container, digested):
    memory_id = client.write(SECRET)
    client.write(OTHERS[0])
    digested()
    hook(client, "UserPromptSubmit", prompt="which port does the billing service listen on?")
    say = {"session_id": "s3", "messages": [{"role": "user", "content": "Ask the team before the release at night."}]}
    client.post("/v1/turns", say)
    flush_notes(container)
    purge(client, memory_id)
    digested()
    (run,) = client.get("/v1/hook-runs").get_json()["items"]
    assert OTHERS[0] in client.get(f"/v1/hook-runs/{run['id']}").get_json()["text"]
    assert client.get("/v1/sessions/s3").status_code == 200


def test_purging_twice_changes_nothing(client, digested):
    memory_id = client.write(SECRET)
    for _ in range(2):
        purge(client, memory_id)
    digested()
    purge(client, memory_id)
    assert client.delete("/v1/memories/01ARZ3NDEKTSV4RRFFQ69G5FAV?hard=true").status_code == 404
    assert client.delete(f"/v1/memories/{memory_id}").status_code == 404
    personal = client.write(SECRET, scope=USER, workspace="alpha")
    client.write(OTHERS[0], workspace="alpha")
    for _ in range(2):
        purge(client, personal, "alpha")
