"""What every engine of the store keeps: one writer at a time, snapshots for readers, all or nothing, typed errors."""

import sqlite3
import threading

import pytest

from config.declared import Secret
from config.paths import HomePaths
from pipeline.kernel.errors import Conflict, InvalidField, NotFound, StoreBusy, StoreUnavailable
from pipeline.kernel.records import Draft, Stage
from pipeline.kernel.store import memories, meta, work
from pipeline.kernel.store.database import WriterProfile, savepoint
from pipeline.kernel.store.driver import sqlite_errors
from pipeline.kernel.store.peers import Remote
from pipeline.kernel.store.stores import open_stores
from pipeline.write.accept import accept
from pipeline.write.revise import archive, restore
from tests.fakes.in_process import accept_batch, fast_settings

IMPATIENT = WriterProfile("FULL", 1000, 200)
PATIENT = WriterProfile("FULL", 1000, 20_000)
SAID = "The staging database listens on port 6543"


@pytest.fixture(params=["sqlite", "encrypted", "postgresql"])
def settings(request, tmp_path, encrypt_stores):
    """Settings of a home whose store is kept by one of the engines, in files that are plain or encrypted."""
    url = request.getfixturevalue("store_url") if request.param == "postgresql" else ""
    if request.param == "encrypted":
        encrypt_stores()
    return fast_settings(tmp_path / "home", store=Secret(url))


@pytest.fixture
def open_more(settings):
    """Open the stores of the home as one more process does."""
    opened = []

    def open_one(on_commit=lambda *_: None, profile=IMPATIENT):
        opened.append(open_stores(settings, profile, str, on_commit))
        return opened[-1]

    yield open_one
    for stores in opened:
        stores.close()


@pytest.fixture
def database(open_more):
    return open_more().databases.get("default", create=True)


def test_workspace_is_created_by_the_first_write(open_more):
    one, other = open_more().databases, open_more().databases
    with pytest.raises(NotFound):
        one.get("alpha")
    assert (one.ids(), one.exists("alpha")) == ([], False)
    one.get("alpha", create=True)
    one.get("beta", create=True)
    assert (other.ids(), other.exists("alpha"), other.exists("gamma")) == (["alpha", "beta"], True, False)
    with other.get("alpha").read() as db, one.get("beta").read() as beta:
        assert meta.get(db, meta.NODE) != meta.get(beta, meta.NODE)


def test_a_name_that_is_none_opens_nothing(open_more):
    with pytest.raises(ValueError, match="workspace id"):
        open_more().databases.get("a'; DROP TABLE memory; --", create=True)


def test_workspaces_know_nothing_of_each_other(open_more):
    databases = open_more().databases
    first = accept(databases.get("alpha", create=True), Draft(SAID))
    second = accept(databases.get("beta", create=True), Draft(SAID))
    assert first.id != second.id
    with databases.get("beta").read() as db:
        assert memories.get(db, first.id) is None
        assert memories.get(db, second.id).seq == 1
        assert db.execute("SELECT count(*) FROM memory").fetchone() == (1,)


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


def test_writer_of_another_process_locks_only_its_workspace(open_more):
    one, other = open_more().databases, open_more().databases
    one.get("alpha", create=True)
    one.get("beta", create=True)
    with one.get("alpha").write() as db:
        meta.put(db, "a", "1")
        with pytest.raises(StoreBusy), other.get("alpha").write():
            pass
        with other.get("beta").write() as beta:
            meta.put(beta, "a", "2")
    with other.get("alpha").write() as db:
        assert meta.get(db, "a") == "1"


def test_a_writer_of_another_thread_makes_the_store_busy(database):
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


def test_workspace_state_changes_only_after_a_write(open_more):
    databases = open_more().databases
    alpha = databases.get("alpha", create=True)
    databases.get("beta", create=True)
    before = databases.states()
    with alpha.read() as db:
        meta.get(db, "a")
    assert databases.states() == before
    with alpha.write() as db:
        meta.put(db, "a", "1")
    after = databases.states()
    assert list(after) == ["alpha", "beta"]
    assert (after["alpha"] == before["alpha"], after["beta"]) == (False, before["beta"])


def test_transaction_continues_after_a_savepoint_failure(database):
    with database.write() as db:
        meta.put(db, "a", "1")
        with pytest.raises(sqlite_errors(sqlite3.IntegrityError)), savepoint(db):
            db.execute("INSERT INTO meta (key, value) VALUES ('a', '2')")
        meta.put(db, "b", "3")
    with database.read() as db:
        assert (meta.get(db, "a"), meta.get(db, "b")) == ("1", "3")


def test_archived_memory_is_not_restored_next_to_its_rewritten_copy(database):
    first = accept(database, Draft(SAID)).id
    archive(database, first)
    accept(database, Draft(SAID))
    with pytest.raises(Conflict):
        restore(database, first)
    assert accept(database, Draft("something else")).id


def test_nonempty_workspace_reports_its_size(database):
    accept(database, Draft(SAID))
    assert database.measure() > len(SAID)


def test_commit_notifies_the_stages_of_the_written_work(open_more):
    woken = []
    databases = open_more(lambda workspace_id, stages: woken.append((workspace_id, set(stages)))).databases
    accept(databases.get("alpha", create=True), Draft(SAID))
    with databases.get("alpha").write() as db:
        meta.put(db, "a", "1")
    assert woken == [("alpha", {Stage.EMBED, Stage.ENTITIES})]


def test_work_item_is_claimed_by_a_single_worker(open_more):
    databases = [open_more(profile=PATIENT).databases.get("alpha", create=True) for _ in range(4)]
    accept_batch(databases[0], [Draft(f"Note {number} about the staging database") for number in range(20)])
    claimed, start = [], threading.Barrier(4)

    def claim(database, owner):
        start.wait()
        for _ in range(10):
            with database.write() as db:
                claimed.extend(work.claim(db, Stage.EMBED, owner, limit=2, lease_s=100, now=2**31))

    threads = [threading.Thread(target=claim, args=(one, f"host:{n}:0")) for n, one in enumerate(databases)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(item.seq for item in claimed) == list(range(1, 21))


def test_several_first_openings_at_once_agree_on_the_schema(settings):
    start, nodes, failures = threading.Barrier(4), [], []

    def open_it():
        start.wait()
        stores = open_stores(settings, PATIENT, str)
        try:
            with stores.databases.get("default", create=True).read() as db:
                nodes.append(meta.get(db, meta.NODE))
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)
        finally:
            stores.close()

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(nodes) == 4
    assert len(set(nodes)) == 1


def test_errors_and_workers_are_visible_to_every_process(open_more):
    one, other = open_more().operations, open_more().operations
    one.record_error("embed", "no encoder", workspace="alpha")
    one.report_worker("host:1:0")
    one.report_worker("host:1:0")
    assert [error.message for error in other.errors(workspace="alpha", limit=10)] == ["no encoder"]
    assert other.errors(workspace="beta", limit=10) == []
    assert [worker.owner for worker in other.workers()] == ["host:1:0"]


def test_remotes_are_visible_to_every_process_and_exchange_is_exclusive(open_more):
    one, other = open_more().peers, open_more().peers
    assert not other.exists
    one.put_remote(Remote("disk", "dir:/shared", (), ("workspace",), sealed=True, added_at="2026-01-01T00:00:00Z"))
    assert other.exists
    assert [(remote.name, remote.scopes, remote.sealed) for remote in other.remotes()] == [
        ("disk", ("workspace",), True)
    ]
    with one.alone(1), pytest.raises(StoreBusy), other.alone(0.1):
        pass
    with other.alone(1):
        pass


def test_begin_value_returns_the_value_stored_first(tmp_path, store_url):
    stores = open_stores(fast_settings(tmp_path / "home", store=Secret(store_url)), IMPATIENT, str)
    values = stores.values
    assert (values.get("key"), values.begin("key", "one"), values.begin("key", "two")) == (None, "one", "one")
    values.put("key", "three")
    assert values.get("key") == "three"
    values.drop("key")
    assert values.get("key") is None
    stores.close()


def test_texts_come_back_as_they_went(database):
    odd = "100 % of 'it' \"said\" \\ ? :name ?1 %s %(a)s — é 漢 \U0001f600"
    with database.write() as db:
        meta.put(db, odd, odd)
    with database.read() as db:
        assert meta.get(db, odd) == odd
        assert db.execute("SELECT ?, ?, ?", (odd, None, True)).fetchone() == (odd, None, 1)


def test_a_character_that_an_engine_cannot_hold_is_refused_as_such(database):
    try:
        with database.write() as db:
            meta.put(db, "a", "nul \0 inside")
    except InvalidField:
        pass
    with database.write() as db:
        meta.put(db, "b", "afterwards")


def test_looking_at_an_empty_data_directory_creates_no_files(tmp_path):
    stores = open_stores(fast_settings(tmp_path / "home"), IMPATIENT, str)
    assert (stores.databases.ids(), stores.databases.states()) == ([], {})
    stores.close()
    assert not HomePaths(tmp_path / "home").root.exists()
