"""Workspaces are moved to others and deleted, in files and on a PostgreSQL server."""

import psutil
import psycopg
import pytest

from pipeline.features.workspaces.changes import count_memories, delete_workspace, find_by_prefix, move_workspace
from pipeline.features.workspaces.config import list_workspaces
from pipeline.features.workspaces.identify import identify
from pipeline.features.workspaces.usecases import choose_workspace
from pipeline.kernel.errors import Conflict, InvalidField, NotFound, ReadOnly
from pipeline.kernel.records import Draft, EdgeKind, Kind
from pipeline.kernel.store import edges, memories
from tests.fakes.command_line import run, run_json, serve_app
from tests.fakes.in_process import accept_batch, open_web
from web.stack import processes

AT = "2026-11-26T00:00:00.000Z"
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
    """Read the contents of a workspace's memories that are not archived."""

    def read(name):
        container = open_web(home)
        try:
            with container.workspace(name).database.read() as db:
                found = memories.by_seqs(db, memories.all_seqs(db)).values()
                return sorted(memory.content for memory in found if not memory.archived_at)
        finally:
            container.close()

    return read


@pytest.fixture
def move(home):
    """Move a workspace to another one."""

    def move(name, target):
        container = open_web(home)
        try:
            workspaces = container.workspace(name), container.workspace(target)
            return move_workspace(home, container.stores, *workspaces)
        finally:
            container.close()

    return move


def choose(home, folder):
    return choose_workspace(folder, home, explicit=None, environment=None).workspace


def test_a_workspace_is_moved_to_a_new_name_and_back(home, project, fill, read, move):
    own = identify(project).id
    fill(**{own.replace("-", "_"): [PORT, QUEUE], "other": [QUEUE]})
    assert move(own, "shop") == 2
    assert (read("shop"), read(own)) == ([PORT.content, QUEUE.content], [])
    assert choose(home, project) == "shop"
    move("shop", "webshop")
    assert choose(home, project) == "webshop"
    move("webshop", own)
    assert choose(home, project) == own
    assert (read(own), read("shop"), read("webshop")) == ([PORT.content, QUEUE.content], [], [])


def test_a_move_to_another_workspace_adds_no_duplicates(home, project, fill, read, move):
    own = identify(project).id
    fill(**{own.replace("-", "_"): [PORT, QUEUE], "other": [QUEUE, Draft("Tea is served at four")]})
    assert count_memories(home, own) == 2
    move(own, "other")
    assert (read(own), choose(home, project)) == ([], "other")
    assert read("other") == [PORT.content, "Tea is served at four", QUEUE.content]
    assert list(home.paths.root.glob(".move-*")) == []
    container = open_web(home)
    with container.workspace("other").database.read() as db:
        found = memories.by_seqs(db, memories.all_seqs(db)).values()
        assert [memory.tags for memory in found if memory.content == PORT.content] == [PORT.tags]
    container.close()


def test_relations_and_archived_memories_are_moved_too(home, fill, read, move):
    fill(shop=[PORT, QUEUE, Draft("Staging listened on port 1")])
    container = open_web(home)
    with container.workspace("shop").database.write() as db:
        found = memories.by_seqs(db, memories.all_seqs(db)).values()
        old, port, queue = sorted(found, key=lambda memory: memory.content)
        edges.add(db, port.seq, EdgeKind.SUPERSEDES, old.seq, "user", AT)
        memories.archive(db, queue.seq, AT)
    container.close()
    assert move("shop", "stock") == 2
    container = open_web(home)
    with container.workspace("stock").database.read() as db:
        found = {memory.id: memory for memory in memories.by_seqs(db, memories.all_seqs(db)).values()}
        assert found[queue.id].archived_at is not None
        assert edges.list_superseding(db, [found[old.id].seq])
    container.close()
    assert read("stock") == ["Staging listened on port 1", PORT.content]


def test_a_new_workspace_gets_the_settings_of_the_moved_one(home, fill, move):
    fill(shop=[PORT])
    container = open_web(home)
    container.stores.configs.edit("shop", lambda _text: 'capture = "off"\n')
    container.close()
    move("shop", "stock")
    container = open_web(home)
    assert container.workspace("stock").settings.capture == "off"
    container.close()


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


def test_invalid_workspace_moves_and_deletions_are_rejected(home, fill, read, move):
    fill(shop=[PORT], me=[QUEUE])
    with pytest.raises(InvalidField):
        move("shop", "shop")
    for names in (("me", "shop"), ("shop", "me")):
        with pytest.raises(Conflict, match="memories about you"):
            move(*names)
    with pytest.raises(NotFound):
        move("nowhere", "shop")
    with pytest.raises(Conflict):
        delete_workspace(home, "me")
    assert read("shop") == [PORT.content]
    assert list_workspaces(home) == ["me", "shop"]


def test_nothing_is_moved_to_or_from_a_read_only_workspace(home, fill, read, move):
    fill(shop=[PORT], stock=[QUEUE])
    container = open_web(home)
    container.stores.configs.edit("stock", lambda _text: "read_only = true\n")
    container.close()
    for names in (("shop", "stock"), ("stock", "shop")):
        with pytest.raises(ReadOnly):
            move(*names)
    assert (read("shop"), read("stock")) == ([PORT.content], [QUEUE.content])


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


def test_the_command_line_asks_before_it_deletes_a_workspace(home, fill):
    fill(shop_0c2afda7=[PORT], other=[QUEUE])
    asked = run("workspace", "delete", "shop", stdin="n\n", code=1).stderr
    assert "Delete workspace shop-0c2afda7 with 1 memory and all snapshots?" in asked
    assert "nothing was deleted" in asked
    run("--json", "workspace", "delete", "shop", code=2)
    run("workspace", "delete", "nowhere", "--yes", code=2)
    run("workspace", "delete", "other", "--yes")
    assert list_workspaces(home) == ["shop-0c2afda7"]


def test_the_command_moves_a_workspace_or_a_memory_while_the_server_runs(home, fill, read, monkeypatch):
    fill(shop_0c2afda7=[PORT], other=[QUEUE])
    container = open_web(home)
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        asked = run("workspace", "move", "shop", "webshop", stdin="n\n", code=1).stderr
        assert "Move all memories of workspace shop-0c2afda7 to webshop?" in asked
        moved = run_json("workspace", "move", "shop", "webshop", "--yes")
        assert moved == {"from": "shop-0c2afda7", "to": "webshop", "memories": 1}
        assert "6543" in run("recall", "which port does staging use", "-w", "webshop").stdout
        memory_id = run_json("list", "-w", "webshop")["items"][0]["id"]
        assert run_json("workspace", "move", memory_id, "other", "-w", "webshop")["id"] == memory_id
        run("workspace", "move", "webshop", "A b", "--yes", code=1)
    container.close()
    assert (read("webshop"), read("other")) == ([], [PORT.content, QUEUE.content])


@pytest.fixture
def running(monkeypatch):
    """Let Reverie seem to run."""
    process = processes.Running("web", psutil.Process())
    monkeypatch.setattr(processes, "list_running", lambda _settings: [process])


@pytest.mark.usefixtures("running")
def test_a_workspace_is_not_deleted_while_reverie_runs(home, fill):
    fill(shop=[PORT], other=[QUEUE])
    assert "Stop it with `reverie down`" in run("workspace", "delete", "shop", "--yes", code=1).stderr
    assert list_workspaces(home) == ["other", "shop"]


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (("delete", "quayside-9", "--yes"), 2, "there is no workspace quayside-9"),
        (("use", "quayside-9"), 2, "there is no workspace quayside-9"),
        (("delete", "s", "--yes"), 2, "several workspaces start with s"),
        (("delete", "me", "--yes"), 1, "reverie me"),
    ],
)
def test_a_wrong_name_is_refused_before_reverie_has_to_stop(home, fill, command, code, said):
    fill(shop=[PORT], stock=[QUEUE], me=[QUEUE])
    error = " ".join(run("workspace", *command, code=code).stderr.split())
    assert said in error
    assert "reverie down" not in error
    assert list_workspaces(home) == ["me", "shop", "stock"]
