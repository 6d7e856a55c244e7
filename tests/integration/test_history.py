"""Questions about past sessions: over HTTP, on the command line, by a tool, and after a failed command."""

import json
import subprocess

import pytest

from config.workspace_configs import ConfigFiles, save_workspace_setting
from pipeline.kernel.records.people import OWNED
from tests.fakes.command_line import run, run_json, serve_app
from tests.fakes.in_process import flush_notes
from tests.fakes.past_sessions import store_session

PORT_TAKEN = "Bind for 0.0.0.0:5432 failed: port is already allocated"
REMEDY = "sudo systemctl stop postgresql"


def solved(number, remedy=REMEDY):
    return {
        "id": f"s{number}",
        "date": f"2026-01-{number:02}",
        "did": [
            {"run": "docker compose up -d", "fails": f"Error response from daemon: {PORT_TAKEN}"},
            {"run": remedy},
            {"run": "docker compose up -d"},
            {"edit": "deploy/compose.yml"},
        ],
    }


@pytest.fixture
def past(client, container):
    """Store three sessions with the same error, and one of another person."""
    client.write("Something")
    with container.workspace("default").database.write() as db:
        for number in (1, 2, 3):
            store_session(db, solved(number))
        store_session(db, solved(4, "their secret remedy"), owner=f"p123{OWNED}")


def ask(client, what, about="", **more):
    query = {"ask": what, "about": about} | more
    response = client.get("/v1/history", query_string=query)
    assert response.status_code == 200, response.get_data(as_text=True)
    return response.get_json()


def fail(client, session, output=PORT_TAKEN, event="PostToolUseFailure", command="docker compose up", **fields):
    body = {
        "hook_event_name": event,
        "session_id": session,
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "error": f"Exit code 1\nError response from daemon: {output}",
    }
    answer = client.post("/hooks/claude-code", body | fields).get_data(as_text=True)
    return json.loads(answer)["hookSpecificOutput"]["additionalContext"] if answer else None


@pytest.mark.usefixtures("past")
def test_the_remedy_of_an_error_is_found(client):
    answer = ask(client, "fix", f"Error response from daemon: {PORT_TAKEN}")
    [remedy] = answer["remedies"]
    assert (remedy["steps"], remedy["sessions"]) == ([{"type": "command", "target": REMEDY}], 3)
    assert (remedy["session_id"], remedy["at"][:10], remedy["confirmed"]) == ("s3", "2026-01-03", True)
    assert answer["occurrences"] == 3
    assert ask(client, "fix", "KeyError: 'NAME'")["remedies"] == []
    assert client.get("/v1/history?ask=fix").status_code == 422
    assert client.get("/v1/history?ask=why&about=x").status_code == 422


@pytest.mark.usefixtures("past")
def test_frequent_errors_are_listed_with_their_remedy(client):
    [error] = ask(client, "friction")["errors"]
    assert (error["occurrences"], error["sessions"]) == (3, 3)
    assert (error["first_at"][:10], error["last_at"][:10]) == ("2026-01-01", "2026-01-03")
    assert error["remedy"]["steps"][0]["target"] == REMEDY


@pytest.mark.usefixtures("past")
def test_a_file_is_explained_by_its_sessions(client):
    sessions = ask(client, "blame", "deploy/compose.yml", limit=2)["sessions"]
    assert [(session["session_id"], session["edits"]) for session in sessions] == [("s3", 1), ("s2", 1)]
    client.write("compose.yml pins Postgres 15 because of the extension", kind="decision", session_id="s2")
    sessions = ask(client, "blame", "compose.yml")["sessions"]
    assert [decision["text"] for session in sessions for decision in session["decisions"]] == [
        "compose.yml pins Postgres 15 because of the extension"
    ]
    assert ask(client, "blame", "other.yml")["sessions"] == []


@pytest.mark.usefixtures("past")
def test_no_session_of_another_person_is_in_an_answer(client):
    answers = [
        ask(client, "fix", f"Error response from daemon: {PORT_TAKEN}"),
        ask(client, "how", "their"),
        ask(client, "blame", "compose.yml"),
        ask(client, "friction"),
    ]
    assert "their" not in json.dumps(answers)
    assert "p123" not in json.dumps(answers)


@pytest.mark.usefixtures("past")
def test_an_agent_is_reminded_of_the_remedy_once_per_session(client, container):
    assert fail(client, "new") == f"Seen before: this error was solved by “{REMEDY}” (2026-01-03)."
    assert fail(client, "new", command="docker compose up -d --build") is None
    assert fail(client, "newer", event="PostToolUse", tool_response={"exit_code": 1}) is not None
    assert fail(client, "new", "no space left on device") is None
    flush_notes(container)
    [_, last] = [item for item in client.get("/v1/journal").get_json()["items"] if item["session_id"] == "new"][:2]
    assert not last["ok"]


@pytest.mark.usefixtures("past")
@pytest.mark.parametrize("setting", ["hook_recall", "enabled", "incognito"])
def test_an_agent_is_not_reminded_where_recall_is_off(home, client, setting):
    save_workspace_setting(ConfigFiles(home.paths), "default", setting, setting == "incognito")
    assert fail(client, "new") is None


@pytest.mark.usefixtures("past")
def test_nothing_is_taken_from_incognito_sessions(client):
    for session in ("s1", "s2", "s3"):
        client.post("/v1/incognito", {"session_id": session, "on": True})
    assert ask(client, "fix", f"Error response from daemon: {PORT_TAKEN}")["remedies"] == []
    assert ask(client, "friction")["errors"] == []
    assert fail(client, "new") is None


def test_a_failed_reading_command_and_its_success_are_recorded(client, container):
    client.write("Something")
    fail(client, "s1", command="docker ps")
    for command in ("docker ps", "ls", "docker ps"):
        event = {"hook_event_name": "PostToolUse", "session_id": "s1", "tool_name": "Bash"}
        client.post("/hooks/claude-code", event | {"tool_input": {"command": command}})
    flush_notes(container)
    items = client.get("/v1/journal").get_json()["items"]
    assert [(item["type"], item["target"], item["ok"]) for item in reversed(items)] == [
        ("read", "docker ps", False),
        ("read", "docker ps", True),
        ("read", "docker ps", True),
    ]


@pytest.mark.usefixtures("past")
def test_the_commands_answer(container, monkeypatch, tmp_path):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        lines = run("-w", "default", "fix", "Error response from daemon: " + PORT_TAKEN).stdout.splitlines()
        assert lines[0] == REMEDY
        assert lines[1].split(maxsplit=1) == ["result", "worked in 3 sessions, last 2026-01-03 in s3"]
        assert REMEDY in run("-w", "default", "fix", "-", stdin=PORT_TAKEN).stdout
        assert "did not occur before" in run("-w", "default", "fix", "KeyError: 'A'").stderr
        assert run("-w", "default", "how", "docker", "compose").stdout.startswith("docker compose up -d\n")
        assert f"fixed by  {REMEDY}" in run("-w", "default", "friction").stdout
        monkeypatch.chdir(tmp_path)
        assert "2026-01-03  s3  (1 edit)" in run("-w", "default", "blame", "deploy/compose.yml").stdout
        assert len(run_json("-w", "default", "friction")["errors"]) == 1


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.org", *words], check=True)


def test_a_line_leads_to_the_session_that_committed_it(client, container, monkeypatch, tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "app.py").write_text("a = 1\n")
    git(tmp_path, "add", ".")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2026-01-05T09:03:00Z")
    git(tmp_path, "commit", "-qm", "Start with one")
    (tmp_path / "app.py").write_text("a = 1\nb = 2\n")
    client.write("Something")
    with container.workspace("default").database.write() as db:
        did = [{"edit": "app.py"}, {"run": 'git commit -am "Start with one"'}]
        store_session(db, {"id": "first", "date": "2026-01-05", "did": did})
        store_session(db, {"id": "later", "date": "2026-02-05", "did": [{"edit": "app.py"}]})
    monkeypatch.chdir(tmp_path)
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        lines = run("-w", "default", "blame", "app.py:1").stdout.splitlines()
        assert lines[0] == "2026-01-05  first  (1 edit, made the commit of this line)"
        assert run("-w", "default", "blame", "app.py").stdout.startswith("2026-02-05  later")
        assert "not committed" in run("-w", "default", "blame", "app.py:2").stderr


@pytest.mark.usefixtures("past")
def test_an_error_in_a_prompt_is_looked_up_and_its_remedy_is_one_line(client, container):
    def ask_about(prompt, session="asks"):
        body = {"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": prompt}
        answer = client.post("/hooks/claude-code", body).get_json(silent=True)
        flush_notes(container)
        return "" if answer is None else answer["hookSpecificOutput"]["additionalContext"]

    remedy = f"Seen before: this error was solved by “{REMEDY}” (2026-01-03)."
    prompt = f"compose is broken again, what now?\n\nError response from daemon: {PORT_TAKEN}"
    assert remedy in ask_about(prompt).splitlines()
    assert remedy not in ask_about(prompt)
    assert remedy in ask_about(f"it says: Error response from daemon: {PORT_TAKEN}", "inline")
    # The failed command of the same session needs no second hint.
    assert fail(client, "inline") is None
    assert "Seen before" not in ask_about("KeyError: 'NAME'", "other")
    assert "Seen before" not in ask_about("how do I start compose?", "other")
