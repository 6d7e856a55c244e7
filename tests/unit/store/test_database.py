import sqlite3
import threading

import pytest

from pipeline.errors import NotFound, StoreBusy, StoreUnavailable
from pipeline.store import driver, meta
from pipeline.store.database import WriterProfile
from pipeline.store.sqlite import SqliteDatabase

pytestmark = pytest.mark.usefixtures("either_home")

IMPATIENT = WriterProfile("FULL", 1000, 20)


@pytest.fixture
def database(tmp_path):
    database = SqliteDatabase(tmp_path / "w" / "events.sqlite", IMPATIENT, create=True)
    yield database
    database.close()


def test_a_missing_file_is_not_found_and_not_made(tmp_path):
    with pytest.raises(NotFound):
        SqliteDatabase(tmp_path / "events.sqlite", IMPATIENT, create=False)
    assert list(tmp_path.iterdir()) == []


def test_what_is_acknowledged_is_synced(database):
    with database.write() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA secure_delete").fetchone()[0]


def test_an_error_rolls_everything_back(database):
    with pytest.raises(sqlite3.OperationalError), database.write() as db:  # noqa: PT012 - both belong to the transaction
        meta.put(db, "a", "1")
        db.execute("no such statement")
    with database.read() as db:
        assert meta.get(db, "a") is None
    with database.write() as db:
        meta.put(db, "a", "2")


def test_a_reader_keeps_its_snapshot_and_nested_reads_share_it(database):
    with database.read() as db:
        assert meta.get(db, "a") is None
        with database.write() as writer:
            meta.put(writer, "a", "1")
        with database.read() as inner:
            assert inner is db
            assert meta.get(inner, "a") is None
    with database.read() as db:
        assert meta.get(db, "a") == "1"


def test_a_reader_cannot_write(database):
    with pytest.raises((sqlite3.OperationalError, StoreUnavailable)), database.read() as db:
        meta.put(db, "a", "1")


def test_another_process_that_writes_makes_the_store_busy(database):
    other = driver.connect(database.file)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy), database.write():
        pass
    other.close()
    with database.write() as db:
        meta.put(db, "a", "1")


def test_another_thread_that_writes_makes_the_store_busy(database):
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with database.write():
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(30)
    with pytest.raises(StoreBusy), database.write():
        pass
    leave.set()
    thread.join()
    with database.write() as db:
        meta.put(db, "a", "1")


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100])
def test_a_file_that_is_no_database_is_unavailable_and_left_alone(tmp_path, damage):
    file = tmp_path / "events.sqlite"
    file.write_bytes(damage)
    if damage:
        with pytest.raises(StoreUnavailable):
            SqliteDatabase(file, IMPATIENT, create=False)
        assert file.read_bytes() == damage
    else:
        SqliteDatabase(file, IMPATIENT, create=False).close()


def test_two_first_openings_at_once_agree_on_the_schema(tmp_path):
    file = tmp_path / "events.sqlite"
    start = threading.Barrier(4)
    nodes, failures = [], []

    def open_it():
        start.wait()
        try:
            database = SqliteDatabase(file, WriterProfile("NORMAL", 1000, 5000), create=True)
            with database.read() as db:
                nodes.append(meta.get(db, "node"))
            database.close()
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(nodes) == 4
    assert len(set(nodes)) == 1
