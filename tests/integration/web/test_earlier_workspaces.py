"""A project that is not recognized shows which workspace may have its memories; one command moves them."""

import re
import shutil
import subprocess

import pytest

from pipeline.features.workspaces.identify import identify
from tests.fakes.command_line import run, run_json, serve_app


@pytest.fixture(autouse=True)
def server(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A git project of which an earlier version took the files into `default`."""
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "README.md").write_text("# Lock shop\n\nThe shop sells tea at the upper lock, from nine on.\n")
    run("index", "project", str(folder), "-w", "default")
    monkeypatch.chdir(folder)
    return folder


def test_empty_recall_names_other_workspaces_with_memories(project):
    run("remember", "Boats pass at dawn", "-w", "default")
    run("remember", "Tea is sold by the cup")
    told = run("recall", "zeppelin airfield mooring").stderr
    assert f"Searched workspace {identify(project).id}. Workspace default has 2 memories; add `-w default`" in told


def test_status_says_which_workspace_answers_here_and_why(project):
    run("remember", "Tea is sold by the cup")
    here = run_json("status")["here"]
    assert here["workspace"] == identify(project).id
    assert here["rule"] == "git"
    assert "commands and hooks use it" in here["detail"]
    assert re.search(rf"^here +{here['workspace']}: ", run("status").stdout, re.MULTILINE)


def git(folder, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """A repository with a commit and a memory."""
    folder = tmp_path / "ledger"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "Start")
    monkeypatch.chdir(folder)
    run("remember", "the ledger service listens on port 6543")
    return folder


def ask(client, folder):
    body = {"hook_event_name": "UserPromptSubmit", "session_id": "later", "cwd": str(folder)}
    prompt = "Which port does the ledger service use?"
    return client.post("/hooks/claude-code", body | {"prompt": prompt}).get_data(as_text=True)


def start_session(client, folder):
    body = {"hook_event_name": "SessionStart", "session_id": "later", "source": "startup", "cwd": str(folder)}
    return client.post("/hooks/claude-code", body).get_data(as_text=True)


def test_a_published_and_moved_project_still_answers(ledger, monkeypatch, client, digested):
    digested(run_json("workspace", "current")["workspace"])
    git(ledger, "remote", "add", "origin", "git@git.example.org:acme/ledger.git")
    assert "6543" in run("recall", "which port does the ledger service use").stdout
    assert "6543" in ask(client, ledger)
    ledger.rename(ledger.with_name("books"))
    monkeypatch.chdir(ledger.with_name("books"))
    assert "6543" in run("recall", "which port does the ledger service use").stdout
    git(".", "remote", "set-url", "origin", "https://git.example.org/globex/books")
    assert "6543" in run("recall", "which port does the ledger service use").stdout
    assert "used it before" in run("workspace", "why").stdout


def test_unrecognized_project_names_its_old_workspace_and_can_move_it(ledger, monkeypatch, client):
    workspace = run_json("workspace", "current")["workspace"]
    # Another disk: every file is new.
    other = ledger.with_name("other-disk")
    shutil.copytree(ledger, other)
    shutil.rmtree(ledger)
    monkeypatch.chdir(other)
    current = run_json("workspace", "current")["workspace"]
    command = f"reverie workspace move {workspace} {current}"
    says = f"may be in workspace {workspace} (1 memory). If so, run `{command}`"
    assert says in run("status").stdout
    assert run_json("status")["here"]["earlier"] == [{"workspace": workspace, "memories": 1}]
    [check] = [check for check in run_json("doctor", code=1)["checks"] if check["check"] == "project memory"]
    assert (check["state"], command in check["hint"]) == ("warn", True)
    assert says in start_session(client, other)
    moved = run("workspace", "move", workspace[:12], current, "--yes").stdout
    assert moved == f"moved 1 memory from {workspace} to {current}\n"
    assert "6543" in run("recall", "which port does the ledger service use").stdout
    assert "workspace move" not in run("status").stdout
    assert "workspace move" not in start_session(client, other)


def test_a_folder_that_becomes_a_repository_says_where_its_memory_is(tmp_path, monkeypatch, client):
    folder = tmp_path / "notes"
    (folder / "part").mkdir(parents=True)
    monkeypatch.chdir(folder / "part")
    run("remember", "the tide table is printed on Mondays")
    git(folder, "init", "-q")
    monkeypatch.chdir(folder)
    assert "in workspace default (1 memory)" in start_session(client, folder)
    current = run_json("workspace", "current")["workspace"]
    assert f"workspace move default {current}" in run("status").stdout
    run("workspace", "move", "default", current, "--yes")
    assert "Mondays" in run("recall", "when is the tide table printed").stdout
    assert "workspace move" not in run("status").stdout
    # All folders outside git still share `default`.
    monkeypatch.chdir(tmp_path)
    assert run_json("workspace", "current")["workspace"] == "default"
