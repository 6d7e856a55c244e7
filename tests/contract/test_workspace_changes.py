"""Workspaces are renamed, merged and deleted in files and on a PostgreSQL server."""

import psutil
import psycopg
import pytest

from pipeline.errors import Conflict, InvalidField
from pipeline.identity import identify
from pipeline.records import Draft, Kind
from pipeline.services.workspace_changes import (
    count_memories,
    delete_workspace,
    find_by_prefix,
    merge_workspaces,
    rename_workspace,
)
from pipeline.services.workspace_listing import list_workspaces
from pipeline.services.workspaces import choose_workspace
from pipeline.store import memories
from tests.fakes.command_line import run, run_json
from tests.fakes.in_process import accept_batch, open_web
from web.cli import processes

PORT = Draft("Staging listens on port 6543", tags=("staging",))
QUEUE = Draft("The job queue runs on SQLite", kind=Kind.DECISION)


@pytest.fixture(params=["files", "postgresql"])
def served_at(request):
    return "" if request.param == "files" else request.getfixturevalue("store_url")


@pytest.fixture
def project(tmp_path):
    (tmp_path / "shop/.git").mkdir(parents=True)
    return tmp_path / "shop"


@pytest.fixture
def fill(home):
    """Store memories in workspaces and stop."""

    def fill(**drafts):
        container = open_web(home)
        for name, batch in drafts.items():
            accept_batch(container.workspace(name.replace("_", "-")).create(), batch)
        container.close()

    return fill


@pytest.fixture
def read(home):
    """Read the contents of a workspace's memories."""

    def read(name):
        container = open_web(home)
        try:
            with container.workspace(name).database.read() as db:
                return sorted(memory.content for memory in memories.by_seqs(db, memories.all_seqs(db)).values())
        finally:
            container.close()

    return read


def choose(home, folder):
    return choose_workspace(folder, home, explicit=None, environment=None).workspace


def test_a_renamed_workspace_keeps_its_memories_and_its_project(home, project, fill, read):
    own = identify(project).id
    fill(**{own.replace("-", "_"): [PORT, QUEUE], "other": [QUEUE]})
    rename_workspace(home, own, "shop")
    assert list_workspaces(home) == ["other", "shop"]
    assert read("shop") == [PORT.content, QUEUE.content]
    assert choose(home, project) == "shop"
    rename_workspace(home, "shop", "webshop")
    assert choose(home, project) == "webshop"
    rename_workspace(home, "webshop", own)
    assert choose(home, project) == own
    assert read(own) == [PORT.content, QUEUE.content]


def test_merging_a_workspace_adds_no_duplicates(home, project, fill, read):
    own = identify(project).id
    fill(**{own.replace("-", "_"): [PORT, QUEUE], "other": [QUEUE, Draft("Tea is served at four")]})
    assert count_memories(home, own) == 2
    merge_workspaces(home, own, "other")
    assert list_workspaces(home) == ["other"]
    assert read("other").count(PORT.content) == 1
    assert choose(home, project) == "other"
    assert not home.paths.workspace(own).root.exists()
    assert list(home.paths.root.glob(".merge-*")) == []
    container = open_web(home)
    with container.workspace("other").database.read() as db:
        active = [memory for memory in memories.by_seqs(db, memories.all_seqs(db)).values() if not memory.archived_at]
    container.close()
    assert sorted(memory.content for memory in active) == [PORT.content, "Tea is served at four", QUEUE.content]
    assert [memory.tags for memory in active if memory.content == PORT.content] == [PORT.tags]


def test_nothing_of_a_deleted_workspace_is_left(home, project, fill, read, served_at):
    own = identify(project).id
    fill(**{own.replace("-", "_"): [PORT], "other": [QUEUE]})
    container = open_web(home)
    container.operations.record_error("hooks", "port 6543 was refused", workspace=own)
    container.stores.configs.edit(own, lambda _text: "incognito = true\n")
    container.close()
    delete_workspace(home, own)
    assert list_workspaces(home) == ["other"]
    assert read("other") == [QUEUE.content]
    assert not home.paths.workspace(own).root.exists()
    for file in (file for file in home.paths.root.rglob("*.sqlite") if file.is_file()):
        assert own.encode() not in file.read_bytes()
    if served_at:
        with psycopg.connect(served_at) as db:
            db.execute("SELECT set_config('reverie.workspace', %s, true)", (own,))
            assert db.execute("SELECT count(*) FROM memory").fetchone() == (0,)
            assert db.execute("SELECT count(*) FROM error WHERE workspace = %s", (own,)).fetchone() == (0,)
            assert db.execute("SELECT count(*) FROM home_value WHERE value LIKE '%incognito%'").fetchone() == (0,)
    fill(**{own.replace("-", "_"): [QUEUE]})
    assert read(own) == [QUEUE.content]


def test_names_that_are_reserved_or_taken_are_refused(home, fill, read):
    fill(shop=[PORT], other=[QUEUE], default=[QUEUE], me=[QUEUE])
    for name in ("default", "me", "me.ann", "../x", "A"):
        with pytest.raises(InvalidField):
            rename_workspace(home, "shop", name)
    with pytest.raises(Conflict, match="reverie workspace merge"):
        rename_workspace(home, "shop", "other")
    for name in ("default", "me"):
        with pytest.raises(Conflict):
            rename_workspace(home, name, "new")
        with pytest.raises(Conflict):
            merge_workspaces(home, name, "shop")
    with pytest.raises(Conflict):
        delete_workspace(home, "me")
    assert list_workspaces(home) == ["default", "me", "other", "shop"]
    assert read("shop") == [PORT.content]


KNOWN = ["default", "healthchecks-0d1a25a8", "shop", "shop-0c2afda7"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("healthchecks", KNOWN[1]), ("he", KNOWN[1]), ("shop", "shop"), ("shop-", KNOWN[3]), ("default", "default")],
)
def test_a_workspace_is_found_by_a_unique_prefix(name, expected):
    assert find_by_prefix(name, KNOWN) == expected


@pytest.mark.parametrize(("name", "said"), [("healtcheck", "The workspaces are: default"), ("sho", "several")])
def test_an_unknown_or_ambiguous_name_is_refused(name, said):
    with pytest.raises(InvalidField, match=said):
        find_by_prefix(name, KNOWN)
    with pytest.raises(InvalidField, match="no workspaces yet"):
        find_by_prefix(name, [])


def test_the_command_line_asks_before_it_changes_a_workspace(home, fill, read):
    fill(shop_0c2afda7=[PORT], other=[QUEUE])
    asked = run("workspace", "delete", "shop", stdin="n\n", code=1).stderr
    assert "Delete workspace shop-0c2afda7 with 1 memory and all snapshots?" in asked
    assert "nothing was deleted" in asked
    run("--json", "workspace", "delete", "shop", code=2)
    assert "and delete shop-0c2afda7" in run("workspace", "merge", "shop", "other", stdin="n\n", code=1).stderr
    assert run_json("workspace", "rename", "shop", "webshop") == {"from": "shop-0c2afda7", "to": "webshop"}
    assert read("webshop") == [PORT.content]
    assert run_json("workspace", "merge", "web", "other", "--yes")["memories"] == 1
    assert read("other") == [PORT.content, QUEUE.content]
    run("workspace", "delete", "nowhere", "--yes", code=2)
    run("workspace", "delete", "other", "--yes")
    assert list_workspaces(home) == []


@pytest.fixture
def running(monkeypatch):
    """Let Reverie seem to run."""
    process = processes.Running("web", psutil.Process())
    monkeypatch.setattr(processes, "list_running", lambda _settings: [process])


@pytest.mark.usefixtures("running")
def test_a_workspace_is_not_changed_while_reverie_runs(home, fill):
    fill(shop=[PORT], other=[QUEUE])
    for command in (("delete", "shop", "--yes"), ("rename", "shop", "new"), ("merge", "shop", "other", "--yes")):
        assert "Stop it with `reverie down`" in run("workspace", *command, code=1).stderr
    assert list_workspaces(home) == ["other", "shop"]


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (("delete", "quayside-9", "--yes"), 2, "there is no workspace quayside-9"),
        (("rename", "quayside-9", "new"), 2, "there is no workspace quayside-9"),
        (("merge", "quayside-9", "shop", "--yes"), 2, "there is no workspace quayside-9"),
        (("merge", "shop", "quayside-9", "--yes"), 2, "there is no workspace quayside-9"),
        (("use", "quayside-9"), 2, "there is no workspace quayside-9"),
        (("delete", "s", "--yes"), 2, "several workspaces start with s"),
        (("delete", "me", "--yes"), 1, "reverie me"),
        (("rename", "shop", "A b"), 1, "cannot be the name of a workspace"),
        (("rename", "shop", "stock"), 1, "There is a workspace stock already"),
        (("merge", "shop", "shop", "--yes"), 1, "names the same workspace twice"),
    ],
)
def test_a_wrong_name_is_refused_before_reverie_has_to_stop(home, fill, command, code, said):
    fill(shop=[PORT], stock=[QUEUE], me=[QUEUE])
    error = " ".join(run("workspace", *command, code=code).stderr.split())
    assert said in error
    assert "reverie down" not in error
    assert list_workspaces(home) == ["me", "shop", "stock"]
