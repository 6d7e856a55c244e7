"""What a shell says of its requests travels with each of them, and decides nothing for others.

From field reports of the kind "the daemon keeps the environment of whichever terminal started it".
"""
# Reported of comparable tools: Tencent/teamai-cli#264

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pipeline.index.encoder import ENGLISH
from tests.support.encoders import link_models
from tests.support.served import serve_home
from tests.support.stack import free_port, wait_until
from web.hooks import client as hooks
from web.http.contract import INCOGNITO_HEADER

SAID = "The qwyjibofier listens on port 5433"
CLI = [sys.executable, "-I", "-m", "web.cli"]
HOOK = [sys.executable, "-I", "-m", "web.hooks.client", "claude-code"]
INCOGNITO = {INCOGNITO_HEADER: "true"}


def files_with(folder, word):
    return [
        file.name for file in sorted(folder.rglob("*")) if file.is_file() and word.encode() in file.read_bytes().lower()
    ]


def event(cwd, name="UserPromptSubmit", **fields):
    return {"hook_event_name": name, "session_id": "s1", "cwd": str(cwd), **fields}


# On the server.


def test_nothing_of_an_incognito_request_is_stored(client, container, digested):
    client.write("The flumadiddle listens on port 5434")
    answers = [
        client.post("/v1/memories", {"content": SAID}, headers=INCOGNITO).get_json(),
        *client.post("/v1/memories/batch", {"items": [{"content": SAID}]}, headers=INCOGNITO).get_json()["results"],
        client.put("/v1/facts/qwyjibofier/port", {"value": "5433"}, headers=INCOGNITO).get_json(),
    ]
    client.post("/v1/recall", {"query": "qwyjibofier"}, headers=INCOGNITO)
    for name, fields in (
        ("UserPromptSubmit", {"prompt": f"Remember that: {SAID}"}),
        ("PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "make qwyjibofier"}, "tool_response": {}}),
        ("Stop", {}),
    ):
        client.post("/hooks/claude-code", event("", name, **fields), headers=INCOGNITO)
    digested()
    container.stores.close()
    assert [one["outcome"] for one in answers] == ["rejected"] * 3
    assert files_with(container.settings.paths.root, "qwyjibofier") == []


def test_the_next_request_is_not_incognito(client):
    client.post("/v1/memories", {"content": SAID}, headers=INCOGNITO)
    assert client.write(SAID)


@pytest.mark.parametrize(("value", "status"), [("true", 200), ("1", 200), ("false", 200), ("", 400), ("maybe", 400)])
def test_an_unknown_word_in_the_header_is_named(client, value, status):
    answer = client.get("/v1/switches", headers={INCOGNITO_HEADER: value})
    assert answer.status_code == status
    if status == 400:
        assert INCOGNITO_HEADER in answer.get_json()["detail"]
    else:
        assert answer.get_json()["incognito"] is (value in ("true", "1"))


def test_header_cannot_disable_incognito_of_the_workspace(client, container):
    file = container.settings.paths.workspace("default").config
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("incognito = true\n")
    assert client.get("/v1/switches", headers={INCOGNITO_HEADER: "false"}).get_json()["incognito"] is True


# From the programs.


def run(command, home, port, *words, stdin="", cwd=None, **variables):
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd or home),
        "REVERIE_HOME": str(home),
        "REVERIE_PORT": str(port),
    }
    return subprocess.run(
        [*command, *words],
        input=stdin,
        env=environment | variables,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def served(home):
    with serve_home(home) as port:
        yield home, port


def send(served, cwd, *, prompt, **variables):
    home, port = served
    done = run(HOOK, home.home, port, stdin=json.dumps(event(cwd, prompt=prompt)), cwd=cwd, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_hooks_use_the_workspace_from_their_hosts_environment(served, tmp_path):
    home, port = served
    done = run(CLI, home.home, port, "remember", SAID, cwd=tmp_path, REVERIE_WORKSPACE="client-a")
    assert done.returncode == 0, done.stderr
    question = "On which port does the qwyjibofier listen?"
    assert "5433" in send(served, tmp_path, prompt=question, REVERIE_WORKSPACE="client-a")
    assert send(served, tmp_path, prompt=question, REVERIE_WORKSPACE="client-b") == ""
    assert send(served, tmp_path, prompt=question) == ""


@pytest.mark.parametrize("value", ["client-a\r\nX-Reverie-Caller: mcp", "Not an id", "ä", "client\x00"[:-1] + "\x7f"])
def test_a_workspace_that_cannot_be_one_reaches_no_other(served, tmp_path, value):
    home, port = served
    run(CLI, home.home, port, "remember", SAID, cwd=tmp_path)
    assert send(served, tmp_path, prompt="On which port does the qwyjibofier listen?", REVERIE_WORKSPACE=value) == ""


@pytest.mark.parametrize("command", [["remember", SAID], ["facts", "set", "qwyjibofier", "port", "5433"]])
def test_commands_in_an_incognito_shell_store_nothing(served, tmp_path, command):
    home, port = served
    done = run(CLI, home.home, port, *command, cwd=tmp_path, REVERIE_INCOGNITO="true")
    assert "incognito" in done.stdout + done.stderr
    assert files_with(home.home, "5433") == []


def test_status_shows_the_switches_of_the_server(served, tmp_path):
    home, port = served

    def switches(**variables):
        done = run(CLI, home.home, port, "status", "--json", cwd=tmp_path, **variables)
        return json.loads(done.stdout)["here"]["switches"]

    plain = switches()
    assert plain["incognito"] is False
    # These hold in this shell alone; the server does not know of them.
    assert switches(REVERIE_CAPTURE="off", REVERIE_ENABLED="false") == plain
    # These travel along.
    assert switches(REVERIE_INCOGNITO="true") == plain | {"incognito": True}
    assert switches(REVERIE_READ_ONLY="true") == plain | {"read_only": True}


def test_the_headers_of_hooks_are_those_that_the_server_reads():
    from config.paths import READ_ONLY_HEADER, WORKSPACE_HEADER

    headers = {WORKSPACE_HEADER, INCOGNITO_HEADER, READ_ONLY_HEADER}
    assert set(hooks.REQUEST_VARIABLES.values()) == headers


# A server that a hook starts.


def test_the_shell_of_the_first_hook_decides_nothing_for_others(tmp_path, models):
    home, port = tmp_path / "home", free_port()
    link_models(home, models)
    first, other = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    other.mkdir()
    (first / "web").mkdir()
    (first / "web" / "__init__.py").write_text("raise SystemExit('code of the project')")
    sticky = {
        "REVERIE_WORKSPACE": "client-a",
        "REVERIE_INCOGNITO": "true",
        "REVERIE_CAPTURE": "off",
        "PYTHONPATH": str(first),
        "GIT_DIR": str(first / "nowhere"),
        "REVERIE_EMBEDDING_MODEL": ENGLISH,
    }
    try:
        assert (
            run(HOOK, home, port, stdin=json.dumps(event(first, "SessionStart")), cwd=first, **sticky).returncode == 0
        )
        wait_until("the server answers", lambda: status(home, port, other)["answers"], 120)
        for one in status(home, port, other)["processes"]:
            found = psutil.Process(one["pid"]).environ()
            assert set(found) & set(sticky) == {"REVERIE_EMBEDDING_MODEL"}
            assert psutil.Process(one["pid"]).cmdline()[1:3] in (["-u", "-I"], ["-I", "-u"])
        assert status(home, port, other)["here"]["switches"]["incognito"] is False
        assert status(home, port, other)["here"]["switches"]["capture"] == "on"
        stored = run(CLI, home, port, "remember", SAID, cwd=other)
        assert stored.returncode == 0, stored.stdout + stored.stderr
        assert [one["id"] for one in status(home, port, other)["workspaces"]] == ["default"]
    finally:
        run(CLI, home, port, "down", cwd=other)


def status(home, port, cwd):
    return json.loads(run(CLI, home, port, "status", "--json", cwd=Path(cwd)).stdout)
