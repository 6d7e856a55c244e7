"""Sync and export on the command line, on homes of which nothing runs."""

import json

import pyrage
import pytest

from pipeline.kernel.records import Revision
from pipeline.write import revise
from tests.fakes.command_line import run, run_json
from tests.fakes.homes import Home
from tests.fakes.passphrases import QuickPassphrases


@pytest.fixture
def shared(tmp_path):
    return f"dir:{tmp_path}/shared"


@pytest.fixture
def elsewhere(tmp_path):
    made = Home(tmp_path / "elsewhere")
    yield made
    made.close()


@pytest.fixture
def here(home):
    made = Home(home.paths.root)
    made.settings = home
    yield made
    made.close()


def test_two_homes_come_to_share_by_a_code_and_a_folder(here, elsewhere, shared):
    here.say("The build uses port 8123")
    added = run_json("sync", "add", "disk", shared)
    assert (added["ahead"], added["last_ok_at"], added["error"]) == (1, None, None)
    assert run_json("sync", "now")["disk"]["sent"] == 1
    shown = run("sync", "invite").stdout.splitlines()
    elsewhere.sync.join(shown[-1])
    elsewhere.sync.add("disk", shared)
    elsewhere.sync.now()
    assert elsewhere.texts() == ["The build uses port 8123"]
    elsewhere.say("Deploys run on Fridays")
    elsewhere.sync.now()
    assert run_json("sync", "status")[0]["behind"] == 1
    assert "1 received, 0 sent" in run("sync", "now", "disk").stdout
    assert here.texts() == ["Deploys run on Fridays", "The build uses port 8123"]
    [status] = run_json("sync", "status")
    assert {"name", "url", "ahead", "behind", "last_ok_at", "error"} <= set(status)
    assert (status["name"], status["url"], status["ahead"], status["behind"], status["error"]) == (
        "disk",
        shared,
        0,
        0,
        None,
    )
    assert len(run_json("sync", "devices")) == 2
    assert any("received" in event["says"] for event in run_json("sync", "log")["items"])


def test_a_folder_may_be_named_as_in_a_shell(here, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run_json("sync", "add", "one", "dir:~/Sync")["url"] == f"dir:{tmp_path}/Sync"
    assert run_json("sync", "add", "two", "dir:here")["url"] == f"dir:{tmp_path}/here"


def test_joined_device_receives_memories_and_joins_no_second_circle(here, elsewhere, shared):
    elsewhere.say("known there")
    elsewhere.sync.add("disk", shared)
    elsewhere.sync.now()
    run("sync", "join", elsewhere.sync.invite())
    run("sync", "add", "disk", shared)
    run("sync", "now")
    assert here.texts() == ["known there"]
    # A second circle would give what is known here to others.
    code = Home(elsewhere.root.parent / "third").sync.invite()
    assert "already syncs with" in run("sync", "join", code, code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("join", "AAAA-BBBB"), "mistyped"),
        (("add", "disk", "ftp://host/x"), "dir:PATH"),
        (("add", "disk", "http://example.org"), "https://"),
        (("add", "disk", "https://me:secret@example.org"), "neither a password nor a query"),
        (("add", "../x", "dir:/tmp/x"), "a-z"),
        (("now", "nowhere"), "no remote nowhere"),
        (("remove", "nowhere"), "no remote nowhere"),
        (("revoke", "nobody"), "no other device"),
        (("conflicts", "--restore", "3"), "no conflict 3"),
    ],
)
def test_invalid_sync_commands_are_reported_plainly(home, arguments, says):
    assert says in run("sync", *arguments, code=1).stderr


def test_sync_status_without_remotes_is_empty(home):
    assert run_json("sync", "status") == []
    assert "There is no remote yet" in run("sync", "status").stderr
    assert run_json("sync", "now") == {}
    assert not home.paths.home.exists()


def test_unreachable_remote_is_an_error_in_the_status(here, tmp_path, shared):
    run("sync", "add", "disk", shared)
    (tmp_path / "shared").rmdir()
    assert "cannot be used" in run("sync", "now", code=1).stderr
    assert run_json("sync", "status")[0]["error"]
    run("sync", "remove", "disk")
    assert run_json("sync", "status") == []


def test_conflicts_are_shown_and_the_lost_value_comes_back(here, elsewhere, shared):
    memory = here.say("port 1")
    run("sync", "add", "disk", shared)
    elsewhere.sync.join(here.sync.invite())
    elsewhere.sync.add("disk", shared)
    run("sync", "now")
    elsewhere.sync.now()
    revise.edit(elsewhere.database(), memory, Revision(content="port 2"))
    revise.edit(here.database(), memory, Revision(content="port 3"))
    elsewhere.sync.now()
    run("sync", "now")
    [conflict] = run_json("sync", "conflicts")["items"]
    assert (conflict["field"], conflict["won"], conflict["lost"]) == ("content", "port 3", "port 2")
    assert "overwritten  port 2" in run("sync", "conflicts").stdout
    run("sync", "conflicts", "--restore", "1")
    assert here.get(memory).content == "port 2"
    assert run_json("sync", "conflicts")["items"] == []


def test_sync_repair_restores_missing_data(here, elsewhere, shared):
    elsewhere.say("known there")
    elsewhere.sync.add("disk", shared)
    elsewhere.sync.now()
    run("sync", "join", elsewhere.sync.invite())
    run("sync", "add", "disk", shared)
    run("sync", "now")
    with here.database().write() as db:
        db.execute("UPDATE memory SET content = 'spoilt'")
        db.execute("DELETE FROM touched")
    assert run_json("sync", "repair")["workspace default"] == 1
    assert here.texts() == ["known there"]


def test_export_and_import_by_command(here, tmp_path, monkeypatch):
    monkeypatch.setattr(pyrage, "passphrase", QuickPassphrases())
    here.say("The build uses make")
    here.say("I like tea", workspace="me")
    bundle = tmp_path / "home.bundle"
    told = run_json("export", str(bundle), "--all")
    assert told["memories"] == {"default": 1, "me": 1}
    phrase = tmp_path / "phrase"
    phrase.write_text("correct horse\n", "utf-8")
    locked = tmp_path / "locked.bundle"
    assert run_json("export", str(locked), "--passphrase-file", str(phrase))["encrypted"]
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "fresh"))
    assert "passphrase" in run("import", "bundle", str(locked), code=1).stderr
    assert run_json("import", "bundle", str(locked), "--passphrase-file", str(phrase))["applied"] == {"default": 1}
    assert run_json("import", "bundle", str(bundle))["applied"] == {"default": 0, "me": 1}
    notes = tmp_path / "notes"
    run("export", str(notes), "--format", "markdown")
    [note] = notes.rglob("*.md")
    note.write_text(note.read_text("utf-8").replace("uses make", "uses just"), "utf-8")
    assert run_json("import", "markdown", str(notes))["edited"] == 1
    lines = tmp_path / "lines.jsonl"
    run("export", str(lines), "--format", "jsonl")
    assert json.loads(lines.read_text("utf-8"))["content"] == "The build uses just"
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "third"))
    told = run_json("import", "jsonl", str(lines))
    assert (told["restored"], told["known"], told["refused"]) == (1, 0, [])
    assert run_json("import", "jsonl", str(lines))["known"] == 1
    assert run_json("import", "markdown", str(notes))["same"] == 1
    assert run_json("-w", "copy", "import", "markdown", str(notes))["created"] == 1
    lines.write_text(lines.read_text("utf-8").replace('"kind": "fact"', '"kind": "hunch"'), "utf-8")
    assert "not imported: line 1: " in run("-w", "else", "import", "jsonl", str(lines), code=1).stderr
    (tmp_path / "foreign.jsonl").write_text('{"content": "x"}', "utf-8")
    run("import", "jsonl", str(tmp_path / "foreign.jsonl"), "--trusted", code=2)
    run("import", "jsonl", str(lines), "--dry-run", code=2)
    (tmp_path / "other.bundle").write_bytes(b"nothing of ours")
    assert "no bundle" in run("import", "bundle", str(tmp_path / "other.bundle"), code=1).stderr
