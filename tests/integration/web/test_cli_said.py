"""Sessions, runs of hooks, lessons' effect, what was refused, and what is known about you, on the command line."""

import json

import pytest

from tests.fakes.command_line import remember, run, run_json, serve_app
from web.http.client import Client

FACT = "The billing service uses port 8123"


@pytest.fixture(autouse=True)
def server(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield port


@pytest.fixture
def client(home, server):
    with Client(f"http://127.0.0.1:{server}", home.paths.token()) as client:
        yield client


def say(client, *messages, session="s1"):
    body = {"session_id": session, "messages": [{"role": role, "content": said} for role, said in messages]}
    client.call("POST", "/v1/turns", body)


def test_personal_memories_can_be_added_listed_edited_and_purged(digested):
    added = run_json("me", "add", "I like tabs")
    remember(FACT)
    assert "I like tabs" in run("me").stdout
    assert FACT not in run("me", "list").stdout
    run("me", "edit", added["id"], "I like spaces")
    assert [one["content"] for one in run_json("me", "list")["items"]] == ["I like spaces"]
    run("me", "purge", code=2)
    assert run("me", "purge", "--all", "--yes").stdout == "purged 1\n"
    assert run_json("me", "list")["items"] == []
    digested("me")


def test_sessions_are_listed_shown_and_named(client):
    remember(FACT, "--session", "s1")
    say(client, ("assistant", "Which port?"))
    head, row = (line.split() for line in run("sessions").stdout.splitlines())
    assert (head[-3:], row[-3:]) == (["messages", "actions", "memories"], ["1", "0", "1"])
    run("sessions", "rename", "s1", "The port")
    shown = run("sessions", "show", "s1").stdout
    for told in ("The port", "assistant: Which port?", FACT, "actions: none"):
        assert told in shown
    run("sessions", "show", "nobody", code=1)


def test_sessions_are_searched_and_recall_prints_them_below_the_memories(client):
    question = "How often does the deploy key of the staging CDN rotate?"
    # An agent's words alone are not surely about a question (decision 0099).
    say(client, ("user", "The deploy key of the staging CDN rotates every ninety days"))
    found = run("sessions", "search", "deploy", "key").stdout
    assert "s1" in found
    assert "user: The deploy key of the staging CDN rotates every ninety days" in " ".join(found.split())
    assert [one["session_id"] for one in run_json("sessions", "search", "deploy key")["items"]] == ["s1"]
    assert "No session contains these words" in run("sessions", "search", "zebra").stderr
    remember("The staging CDN is in Frankfurt")
    recalled = run("recall", question).stdout
    assert recalled.index("Frankfurt") < recalled.index("Said in past sessions:") < recalled.index("ninety days")
    assert "relevance 0." in run("recall", question, "--explain").stdout.rpartition("Said in past sessions:")[2] + (
        run("recall", question, "--explain").stdout
    )


def test_a_session_is_distilled(client, container):
    say(client, ("assistant", "I ran npm install."), ("user", "No, use pnpm instead of npm."))
    assert run("lessons", "distill", "s1").stdout.startswith("1 proposed")
    assert run("lessons", "distill", "s1").stdout.startswith("0 proposed")
    with container.databases.get("default").write() as db:
        db.execute("DELETE FROM work")


def test_hook_log_lists_runs_and_shows_their_text(client):
    assert "No hook has run" in run("logs", "hooks").stderr
    remember(FACT)
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": "", "prompt": "which port is billing?"}
    client.call("POST", "/hooks/claude-code", prompt)
    (one,) = run_json("logs", "hooks", "log")["items"]
    assert "UserPromptSubmit" in run("logs", "hooks", "log", "--session", "s1").stdout
    assert FACT in run("logs", "hooks", "log", one["id"]).stdout


def test_hook_log_shows_a_runs_prompt_and_omitted_memories(client, container):
    remember(FACT)
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": "", "prompt": "which port is billing?"}
    client.call("POST", "/hooks/claude-code", prompt)
    say(client, ("user", "which port is billing?"))
    (one,) = run_json("logs", "hooks", "log")["items"]
    line = {"key": "memory:1", "source": "memory", "text": "Staging uses 5433", "score": 0.21, "reason": "too weak"}
    with container.operations.tables.write() as db:
        db.execute("UPDATE hook_run SET trace = ?", (json.dumps({"left_out": [line]}),))
    shown = run("logs", "hooks", "log", one["id"]).stdout
    assert shown.index("which port is billing?") < shown.index(FACT) < shown.index("left out:")
    assert "0.21  memory  Staging uses 5433  too weak" in shown


def test_refused_memory_is_listed_and_can_be_accepted():
    memory_id = remember(FACT)
    run("forget", memory_id)
    run("remember", FACT, "--source", "agent")
    assert run("review", "refused").stdout.splitlines()[1].split()[1:3] == ["archived", "1"]
    assert "active again" in run("review", "refused", memory_id).stdout
    assert run_json("review", "refused")["items"] == []


def test_goal_is_shown_with_its_progress_events():
    goal = run_json("goals", "add", "Ship the importer")["id"]
    run("goals", "set", goal, "--progress", "0.5")
    assert "progress 0.0 → 0.5" in run("goals", "show", goal).stdout


def test_get_shows_expiry_and_sensitivity():
    memory_id = remember(FACT, "--expires-at", "2999-01-31", "--sensitivity", "private")
    shown = run("get", memory_id).stdout
    assert "expires" in shown
    assert "only when you search for it (private)" in shown


def test_status_shows_the_switches():
    remember(FACT)
    assert "capture on" in run("status").stdout
    assert run_json("status")["here"]["switches"]["read_only"] is False
