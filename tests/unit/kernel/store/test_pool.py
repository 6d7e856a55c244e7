"""Databases whose connections are closed while they rest: few files are open, and nobody notices."""

import itertools
import threading
from pathlib import Path

import pytest

from config.paths import HomePaths
from pipeline.kernel.errors import NotFound, StoreUnavailable
from pipeline.kernel.store import meta
from pipeline.kernel.store.pool import MOST_IDLE, ConnectionPool
from pipeline.kernel.store.sqlite import SqliteDatabase, SqliteDatabases
from tests.fakes.in_process import PROFILE

pytestmark = pytest.mark.usefixtures("either_home")


@pytest.fixture
def paths(tmp_path):
    return HomePaths(tmp_path / "home")


@pytest.fixture
def databases(paths):
    databases = SqliteDatabases(paths, PROFILE)
    yield databases
    databases.close()


def open_files(folder):
    """List the files of SQLite's that this process has open below a folder."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:
            continue
        if target.startswith(str(folder)) and "events.sqlite" in target:
            found.append(target)
    return found


def put(database, value):
    with database.write() as db:
        meta.put(db, "value", value)


def read(database):
    with database.read() as db:
        return meta.get(db, "value")


def in_threads(count, run):
    """Run something in threads at once; return what went wrong."""
    failures, start = [], threading.Barrier(count)

    def guarded(number):
        start.wait()
        try:
            run(number)
        except Exception as error:  # noqa: BLE001 - shown by the test
            failures.append(repr(error))

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_many_databases_keep_few_files_open_and_lose_nothing(databases, paths):
    names = [f"w{number}" for number in range(MOST_IDLE + 8)]
    for name in names:
        put(databases.get(name, create=True), name)
        assert read(databases.get(name)) == name
    assert len(open_files(paths.root)) <= 3 * MOST_IDLE
    assert [read(databases.get(name)) for name in names] == names
    assert len(open_files(paths.root)) <= 3 * MOST_IDLE


def test_threads_that_come_and_go_keep_no_file_open(databases, paths):
    database = databases.get("alpha", create=True)
    put(database, "1")
    for _ in range(30):
        assert in_threads(1, lambda _number: read(database)) == []
    assert len(open_files(paths.root)) <= 5


def test_databases_alternate_in_a_pool_of_a_single_connection(tmp_path):
    pool = ConnectionPool(most=1)
    one, other = (SqliteDatabase(tmp_path / name / "events.sqlite", PROFILE, create=True, pool=pool) for name in "ab")
    for number in range(5):
        put(one, f"one {number}")
        put(other, f"other {number}")
        assert (read(one), read(other)) == (f"one {number}", f"other {number}")
    assert len(open_files(tmp_path)) <= 3
    one.close()
    other.close()
    assert open_files(tmp_path) == []


def test_open_transaction_survives_pool_eviction(tmp_path):
    pool = ConnectionPool(most=1)
    one, other = (SqliteDatabase(tmp_path / name / "events.sqlite", PROFILE, create=True, pool=pool) for name in "ab")
    with one.write() as writing, one.read() as reading:
        meta.put(writing, "value", "mine")
        for number in range(5):
            put(other, str(number))
            assert read(other) == str(number)
        assert meta.get(reading, "value") is None
    assert read(one) == "mine"


def test_readers_and_writers_never_notice_that_connections_are_closed(tmp_path):
    pool = ConnectionPool(most=2)
    held = [SqliteDatabase(tmp_path / str(n) / "events.sqlite", PROFILE, create=True, pool=pool) for n in range(6)]

    def use(number):
        for turn in range(15):
            database = held[(number + turn) % len(held)]
            with database.write() as db:
                meta.put(db, f"{number}.{turn}", "written")
            with database.read() as db, database.read() as inner:
                assert inner is db
                assert meta.get(db, f"{number}.{turn}") == "written"

    assert in_threads(8, use) == []
    for number, turn in itertools.product(range(8), range(15)):
        with held[(number + turn) % len(held)].read() as db:
            assert meta.get(db, f"{number}.{turn}") == "written"


def test_a_store_that_was_replaced_is_another_one(databases, paths):
    old = databases.get("alpha", create=True)
    put(old, "old")
    draft = SqliteDatabase(paths.root / "draft" / "events.sqlite", PROFILE, create=True)
    put(draft, "new")
    draft.complete_file()
    draft.close()
    old.close()
    draft.file.replace(paths.workspace("alpha").events)
    assert read(databases.get("alpha")) == "new"
    # Whoever holds the old one must not write half of something into the new one.
    with pytest.raises(StoreUnavailable):
        read(old)


def test_a_store_that_was_deleted_is_not_made_again(databases, paths):
    held = databases.get("alpha", create=True)
    held.close()
    paths.workspace("alpha").events.unlink()
    with pytest.raises(NotFound):
        put(held, "1")
    with pytest.raises(NotFound):
        databases.get("alpha")
    assert not paths.workspace("alpha").events.exists()
