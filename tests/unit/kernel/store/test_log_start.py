"""A store logs operations from its first exchange on, and the log then covers everything that was there before."""

import contextlib
import shutil
import threading
from contextlib import closing

import pytest

from pipeline.features.sync.merge import merge
from pipeline.kernel.records import Draft, EdgeDraft, EdgeKind, Kind, Revision
from pipeline.kernel.store import driver, log_start, meta, oplog
from pipeline.kernel.store.log_start import list_differences, start_log
from pipeline.kernel.store.oplog import is_complete
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import PROFILE, scratch_database
from tests.fakes.machines import Machine, close_all, exchange_all


@pytest.fixture
def database():
    with scratch_database() as opened:
        yield opened


def fill(database):
    """Write a record of each kind that the log covers."""
    one = accept(database, Draft("The build uses make", tags=("build",)))
    other = accept(database, Draft("Tests need 2 GB"))
    revise.edit(database, one.id, Revision(content="The build uses just", importance=0.9))
    revise.add_edge(database, one.id, EdgeDraft(EdgeKind.SUPPORTS, other.id))
    revise.archive(database, other.id)
    details = {"subject": "shop", "attribute": "port", "value": 1}
    accept(database, Draft("The shop listens on 1", kind=Kind.KEYED_FACT, details=details))
    revise.purge(database, accept(database, Draft("the flumadiddle")).id)
    return one.id


def count_rows(database, table):
    with database.read() as db:
        return db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def list_operations(database):
    with database.read() as db:
        return sorted(one.id for _, one in oplog.after(db, 0, 1000, oplog.ALL_SCOPES))


def list_triggers(file):
    with closing(driver.connect(file)) as db:
        return [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]


def check_log(database):
    with database.read() as db:
        assert is_complete(db)
        assert list_differences(db) == []


def test_a_store_that_never_exchanged_logs_nothing(database):
    fill(database)
    assert (count_rows(database, "operation"), count_rows(database, "touched")) == (0, 0)
    with database.read() as db:
        assert not is_complete(db)
        assert list_differences(db) == []


@pytest.mark.files
def test_triggers_exist_only_once_the_log_was_started(tmp_path):
    file = tmp_path / "events.sqlite"
    with closing(SqliteDatabase(file, PROFILE, create=True)) as database:
        assert list_triggers(file) == []
        start_log(database)
        assert len(list_triggers(file)) == 17


def test_log_covers_existing_and_later_memories(database):
    memory = fill(database)
    start_log(database)
    check_log(database)
    before = list_operations(database)
    revise.edit(database, memory, Revision(pinned=True))
    assert len(list_operations(database)) == len(before) + 1
    check_log(database)


def test_starting_again_changes_nothing(database):
    fill(database)
    start_log(database)
    before = list_operations(database)
    start_log(database)
    assert list_operations(database) == before


@pytest.mark.files
def test_peer_receives_memories_from_before_the_log_start(tmp_path):
    machines = [Machine(number, tmp_path / str(number) / "events.sqlite") for number in range(2)]
    fill(machines[0].database)
    exchange_all(machines)
    assert machines[0].dump() == machines[1].dump()
    assert len(machines[0].ids()) == len(machines[1].ids()) == 3
    close_all(machines)


@pytest.mark.files
def test_purge_before_the_log_start_prevents_the_memorys_return(database):
    start_log(database)
    purged = accept(database, Draft("the flumadiddle")).id
    with database.read() as db:
        operations = [one for _, one in oplog.after(db, 0, 1000, oplog.ALL_SCOPES)]
    with scratch_database() as other:
        accept(other, Draft("something else"))
        merge(other, operations)
        revise.purge(other, purged)
        forget_log(other)
        start_log(other)
        with other.read() as db:
            assert oplog.list_purged(db, [purged])
        assert merge(other, operations).applied == 0


def forget_log(database):
    """Leave a store as one that purged a memory before its log started."""
    with database.write() as db:
        db.execute("DELETE FROM operation")
        meta.drop(db, meta.OPERATION_LOG)
        for name in [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]:
            db.execute(f"DROP TRIGGER {name}")


def test_purge_during_the_log_start_leaves_a_tombstone_without_text(database, monkeypatch):
    monkeypatch.setattr(oplog, "AT_ONCE", 1)
    kept, purged = accept(database, Draft("one thing")).id, accept(database, Draft("the flumadiddle")).id
    log_rows = log_start._log_rows

    def purge_first(db, keys):
        log_rows(db, keys)
        monkeypatch.setattr(log_start, "_log_rows", log_rows)
        purge.start()

    purge = threading.Thread(target=revise.purge, args=(database, purged))
    monkeypatch.setattr(log_start, "_log_rows", purge_first)
    start_log(database)
    purge.join()
    check_log(database)
    with database.read() as db:
        assert oplog.list_purged(db, [purged])
        assert not oplog.list_purged(db, [kept])
        assert "flumadiddle" not in str(db.execute("SELECT fields FROM operation").fetchall())


def test_writes_during_the_start_are_not_lost(database, monkeypatch):
    monkeypatch.setattr(oplog, "AT_ONCE", 3)
    ids = [accept(database, Draft(f"note number {number}")).id for number in range(40)]
    done = threading.Event()

    def write():
        for number, memory in enumerate(ids * 3):
            revise.edit(database, memory, Revision(content=f"note {memory} says {number}"))
            accept(database, Draft(f"another note, number {number}"))
            if done.is_set():
                break

    writers = [threading.Thread(target=write) for _ in range(2)]
    starters = [threading.Thread(target=start_log, args=(database,)) for _ in range(2)]
    for thread in (*writers, *starters):
        thread.start()
    for thread in starters:
        thread.join()
    done.set()
    for thread in writers:
        thread.join()
    check_log(database)


class KilledError(Exception):
    """Stand for the end of the process."""


@pytest.mark.files
def test_killed_log_start_is_completed_with_the_same_operations(tmp_path, monkeypatch):
    monkeypatch.setattr(oplog, "AT_ONCE", 2)
    with closing(SqliteDatabase(tmp_path / "events.sqlite", PROFILE, create=True)) as database:
        fill(database)
        database.complete_file()
    results = []
    for survived in range(20):
        shutil.copy(tmp_path / "events.sqlite", tmp_path / f"{survived}.sqlite")
        with closing(SqliteDatabase(tmp_path / f"{survived}.sqlite", PROFILE, create=False)) as database:
            write, calls = database.write, iter(range(survived))

            @contextlib.contextmanager
            def killed_later(write=write, calls=calls):
                with write() as db:
                    yield db
                    if next(calls, None) is None:
                        raise KilledError

            monkeypatch.setattr(database, "write", killed_later)
            with contextlib.suppress(KilledError):
                start_log(database)
                results.append("whole")
            monkeypatch.setattr(database, "write", write)
            start_log(database)
            check_log(database)
            results.append(list_operations(database))
    assert results.count("whole") > 5
    assert results.index("whole") > 4
    listed = [one for one in results if one != "whole"]
    assert all(one == listed[0] for one in listed)
