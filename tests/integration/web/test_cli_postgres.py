"""Commands of a home whose store is on a server."""

import psycopg
import pytest

from pipeline.features.workspaces.config import edit_config, explain_workspace
from pipeline.kernel.errors import Conflict
from pipeline.kernel.records import Draft
from tests.fakes.command_line import remember, run, run_json, serve_app
from tests.fakes.in_process import accept_batch, digest_all, open_web, open_worker
from web.stack import processes


@pytest.fixture
def served_at(store_url):
    """Where the store of the home is."""
    return store_url


@pytest.fixture
def stack(home, container, monkeypatch):
    """A server that answers."""
    monkeypatch.setattr(processes, "list_running", lambda _settings: [])
    with serve_app(container) as number:
        monkeypatch.setenv("REVERIE_PORT", str(number))
        yield container


def test_memories_are_stored_on_the_postgres_server_and_not_in_files(home, stack):
    found = remember("Staging listens on port 6543")
    worker = open_worker(home)
    digest_all(worker, "default")
    worker.close()
    assert run_json("recall", "which port does staging listen on")["results"][0]["id"] == found
    assert list(home.paths.root.rglob("events.sqlite*")) == []
    assert list(home.paths.root.rglob("home.sqlite*")) == []


def test_workspaces_are_listed_and_looked_at_without_a_stack(home):
    container = open_web(home)
    accept_batch(container.workspace("alpha").create(), [Draft("Staging listens on port 6543")])
    container.close()
    assert [one["id"] for one in run_json("workspace", "list")["items"]] == ["alpha"]
    checks = {one["check"]: one for one in run_json("doctor")["checks"]}
    assert checks["store"]["says"] == f"1 workspaces in {home.store_place}"
    assert checks["alpha: indexes"]["state"] == "ok"
    assert "alpha: snapshots" not in checks


def test_a_workspace_is_exported_from_the_server_and_imported_again(home, tmp_path, store_url):
    container = open_web(home)
    accept_batch(container.workspace("alpha").create(), [Draft("Staging listens on port 6543")])
    container.close()
    assert run_json("-w", "alpha", "export", str(tmp_path / "all.reverie"))["memories"] == {"alpha": 1}
    with psycopg.connect(store_url) as db:
        db.execute("SELECT set_config('reverie.workspace', 'alpha', true)")
        db.execute("DELETE FROM memory")
        db.execute("DELETE FROM operation")
    run("import", "bundle", str(tmp_path / "all.reverie"))
    with psycopg.connect(store_url) as db:
        db.execute("SELECT set_config('reverie.workspace', 'alpha', true)")
        assert db.execute("SELECT content FROM memory").fetchall() == [("Staging listens on port 6543",)]


def test_workspace_settings_on_the_server_are_shown_edited_and_checked(home, tmp_path, monkeypatch):
    container = open_web(home)
    accept_batch(container.workspace("alpha").create(), [Draft("Staging listens on port 6543")])
    container.stores.configs.edit("alpha", lambda _text: "incognito = yes\n")
    place = f"config.toml of alpha at {home.store_place}"
    checks = {one["check"]: one for one in run_json("doctor", code=1)["checks"]}
    assert (checks["alpha: settings"]["state"], place in checks["alpha: settings"]["says"]) == ("fail", True)
    (tmp_path / "written").write_text("capture = 'off'\n")
    monkeypatch.setenv("VISUAL", f"cp '{tmp_path / 'written'}'")
    assert run_json("-w", "alpha", "config", "--edit") == {"place": place, "changed": True}
    found = {one["name"]: one for one in run_json("-w", "alpha", "config")["settings"]}
    assert (found["capture"]["value"], found["capture"]["origin"]) == ("off", place)
    assert run_json("-w", "alpha", "status")["here"]["switches"]["capture"] == "off"
    checks = {one["check"]: one for one in run_json("doctor")["checks"]}
    assert (checks["alpha: settings"]["state"], checks["alpha: settings"]["says"]) == ("ok", place)
    assert not home.paths.workspace("alpha").config.exists()
    container.close()


def test_concurrent_config_edit_is_a_conflict(home):
    def write(text):
        edit_config(home, "alpha", lambda _text: "review = true\n")
        return f"{text}incognito = true\n"

    with pytest.raises(Conflict, match="was changed while you edited it"):
        edit_config(home, "alpha", write)
    assert {one.name: one.value for one in explain_workspace(home, "alpha")}["review"] is True


@pytest.mark.parametrize(
    "words",
    [
        ("store", "snapshot", "take"),
        ("store", "snapshot", "restore", "latest"),
        ("store", "snapshot", "take", "--people"),
        ("store", "snapshot", "restore", "latest", "--people"),
        ("store", "encrypt"),
    ],
)
def test_file_commands_are_rejected_with_the_server_named(home, words):
    result = run(*words, code=1)
    assert ": the store is at postgresql://127.0.0.1" in result.stderr


def test_a_server_that_is_gone_fails_the_check_and_no_other(home, monkeypatch):
    monkeypatch.setenv("REVERIE_STORE", "postgresql://me:hush@127.0.0.1:1/nothing")
    result = run("--json", "doctor", code=1)
    assert "hush" not in result.output
    checks = {one["check"]: one for one in run_json("doctor", code=1)["checks"]}
    assert [name for name, one in checks.items() if one["state"] == "fail"] == ["store"]
