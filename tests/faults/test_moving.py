"""Moving a store is killed anywhere, its server dies, or a disk is full: nothing is lost, and the next run ends it."""

import contextlib
import signal
from pathlib import Path

import pytest

from config.declared import Secret
from config.paths import HomePaths
from pipeline.kernel.records import Draft
from pipeline.kernel.store import backup
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.postgres.moves import PostgresTables
from pipeline.kernel.store.stores import open_stores
from pipeline.write.accept import accept
from tests.fakes.command_line import run_json
from tests.fakes.homes import Home
from tests.fakes.in_process import fast_settings
from tests.fakes.rows import fill_all, read_all
from tests.support.disks import mounted
from tests.support.killed import run_until_killed
from tests.support.postgres import find_programs, serve_postgres

pytestmark = pytest.mark.timeout(600)

KILLED = """
import sys, threading
from config.settings import load_settings
from pipeline.features.postgres import usecases as moving
from pipeline.kernel.store import backup, copying, moves
from pipeline.kernel.store.postgres.connection import PostgresConnection
from pipeline.kernel.store.postgres.moves import PostgresTables

target, place, when, skipped = sys.argv[1:]
owner, name = {
    "fill on the server": (PostgresTables, "fill"),
    "clear on the server": (PostgresTables, "clear"),
    "fill a file": (copying.SqliteTables, "fill"),
    "set_counters": (PostgresTables, "set_counters"),
    "compare": (copying, "compare"),
    "note": (moves.HomeFiles, "note"),
    "run_script": (PostgresConnection, "run_script"),
    "verify": (backup, "verify"),
    "put_aside": (backup, "put_aside"),
    "replace_store_file": (backup, "replace_store_file"),
    "finish": (moving, "finish"),
}[place]
real, left = getattr(owner, name), int(skipped)

def hang(*given, **named):
    global left
    if name == "run_script" and "COMMIT" not in given[1] or (left := left - 1) >= 0:
        return real(*given, **named)
    if when == "after":
        real(*given, **named)
    print("here", flush=True)
    threading.Event().wait()

setattr(owner, name, hang)
with moving.open_move(load_settings(), target) as move:
    assert all(one.problem is None for one in moving.move_parts(move))
    moving.finish(move, print)
"""

THERE = [
    ("fill on the server", "before", 0),
    ("fill on the server", "after", 60),
    ("clear on the server", "after", 2),
    ("set_counters", "before", 2),
    ("compare", "after", 2),
    ("run_script", "before", 2),
    ("run_script", "after", 2),
]
BACK = [
    ("fill a file", "before", 0),
    ("fill a file", "after", 60),
    ("note", "after", 2),
    ("verify", "before", 2),
    ("put_aside", "after", 0),
    ("replace_store_file", "before", 1),
    ("replace_store_file", "after", 1),
    ("finish", "before", 0),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    paths = HomePaths(tmp_path_factory.mktemp("made") / "home")
    with contextlib.closing(Home(paths.root)) as home:
        for workspace in ("default", "other"):
            for number in range(40):
                home.say(f"Quaggas graze at dawn, says {workspace} for the {number}th time", workspace)
        home.sync.invite()
        home.database("rows")
    fill_all(paths.workspace("rows").events)
    return paths


@pytest.fixture
def before(made):
    return dump(made)


@pytest.fixture
def paths(made, tmp_path, monkeypatch, before):
    """A copy of a home, in force for this process and those that it starts."""
    copied = HomePaths(tmp_path / "home")
    for file in files_of(made):
        target = copied.root / file.relative_to(made.root)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    monkeypatch.setenv("REVERIE_HOME", str(copied.root))
    return copied


def files_of(paths):
    files = [paths.home, *(paths.workspace(name).events for name in paths.workspace_ids())]
    return [file for file in files if file.is_file()]


def dump(paths):
    """Return the content of each store, and of each table of the data directory."""
    stores = {file.relative_to(paths.root): read_all(file) for file in files_of(paths)}
    return stores | stores.pop(Path(paths.home.name), {})


def outcomes(told):
    return {one["outcome"] for one in told["parts"] if one["name"] != "operations"}


def kill(target, place, when, skipped):
    """Move a store until a place is reached, and end that process there."""
    run_until_killed(KILLED, target, place, when, str(skipped))


@pytest.mark.parametrize(("place", "when", "skipped"), THERE)
def test_migration_to_the_server_resumes_after_a_kill(paths, before, store_url, monkeypatch, place, when, skipped):
    kill(store_url, place, when, skipped)
    assert dump(paths) == before
    told = run_json("store", "migrate", "--to", store_url)
    # Each part is there whole or not at all: there is nothing else that a part could be.
    assert outcomes(told) <= {"moved", "the same already"}
    assert ("the same already" in outcomes(told)) is (skipped > 1)
    assert dump(paths) == before
    monkeypatch.setenv("REVERIE_STORE", store_url)
    assert outcomes(run_json("store", "migrate", "--to", "sqlite")) == {"the same already"}


@pytest.mark.parametrize(("place", "when", "skipped"), BACK)
def test_migration_back_from_the_server_resumes_after_a_kill(
    paths, before, store_url, tmp_path, monkeypatch, place, when, skipped
):
    run_json("store", "migrate", "--to", store_url)
    write_on_server(paths, store_url)
    monkeypatch.setenv("REVERIE_STORE", store_url)
    returned = HomePaths(tmp_path / "returned")
    run_json("store", "migrate", "--to", "sqlite", "--home", str(returned.root))
    wanted = dump(returned)
    paths.home.unlink()
    kill("sqlite", place, when, skipped)
    assert [name for name, rows in dump(paths).items() if rows not in (before[name], wanted[name], [])] == []
    assert outcomes(run_json("store", "migrate", "--to", "sqlite")) <= {"moved", "the same already"}
    assert dump(paths) == wanted
    assert not list(paths.root.rglob("*partial*"))
    kept = [one.file for name in ("default", "other") for one in backup.snapshots(paths.workspace(name).snapshots)]
    assert [file.stat().st_mode & 0o777 for file in kept] == [0o600] * len(kept)
    assert len(kept) >= 2
    monkeypatch.delenv("REVERIE_STORE")
    assert outcomes(run_json("store", "migrate", "--to", store_url)) == {"the same already"}


def write_on_server(paths, url):
    settings = fast_settings(paths.root, store=Secret(url))
    with contextlib.closing(open_stores(settings, WriterProfile("FULL", 0, 5000), str)) as stores:
        for name in ("default", "other"):
            accept(stores.databases.get(name), Draft(f"Written on the server in {name}"))


def test_interrupted_server_migration_is_reported_and_resumed(paths, before, tmp_path, monkeypatch):
    if find_programs() is None:
        pytest.skip("there is no PostgreSQL on this machine")
    with serve_postgres(tmp_path / "postgres") as server:
        real, left = PostgresTables.fill, iter(range(60))

        def fill(self, table, rows):
            if next(left, None) is None:
                server.stop(signal.SIGKILL)
            real(self, table, rows)

        with monkeypatch.context() as patch:
            patch.setattr(PostgresTables, "fill", fill)
            error = run_json("store", "migrate", "--to", server.url, code=4)["error"]
        assert error["type"] == "StoreUnavailable"
        assert dump(paths) == before
        server.start()
        assert outcomes(run_json("store", "migrate", "--to", server.url)) == {"moved", "the same already"}
        monkeypatch.setenv("REVERIE_STORE", server.url)
        assert outcomes(run_json("store", "migrate", "--to", "sqlite")) == {"the same already"}


def test_full_disk_during_store_migration_keeps_existing_data(paths, before, store_url, tmp_path, monkeypatch):
    run_json("store", "migrate", "--to", store_url)
    monkeypatch.setenv("REVERIE_STORE", store_url)
    returned = HomePaths(tmp_path / "returned")
    returned.root.mkdir()
    with mounted(returned.root, "size=300k,mode=700"):
        error = run_json("store", "migrate", "--to", "sqlite", "--home", str(returned.root), code=4)["error"]
        assert error["type"] == "StoreFull"
        assert not [file for file in returned.workspaces.rglob("*") if file.is_file()]
        assert dump(paths) == before
        returned.home.unlink(missing_ok=True)
    assert outcomes(run_json("store", "migrate", "--to", "sqlite", "--home", str(returned.root))) == {"moved"}
    assert dump(returned) == before
