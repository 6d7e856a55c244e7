"""A commit wakes the workers of what it queued; nothing else does."""

import pytest

from pipeline.kernel.records import Draft, Stage
from pipeline.kernel.store import runs, work
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write.accept import accept
from pipeline.write.revise import archive, purge, restore


@pytest.fixture
def wake_ups():
    return []


@pytest.fixture
def database(tmp_path, wake_ups):
    profile = WriterProfile("NORMAL", 1000, 20)
    database = SqliteDatabase(tmp_path / "events.sqlite", profile, create=True, on_commit=wake_ups.append)
    yield database
    database.close()


def test_commit_notifies_the_stages_of_the_written_work(database, wake_ups):
    accept(database, Draft("The staging database listens on port 6543"))
    assert wake_ups == [{Stage.EMBED, Stage.ENTITIES}]


def test_notified_workers_find_the_committed_work(database, wake_ups):
    def look(stages):
        with database.read() as db:
            wake_ups.append(set(work.list_due_stages(db, 2**40)) == set(stages))

    database._on_commit = look
    accept(database, Draft("The staging database listens on port 6543"))
    assert wake_ups == [True]


def test_write_without_new_work_sends_no_wake_up(database, wake_ups):
    first = accept(database, Draft("The staging database listens on port 6543"))
    wake_ups.clear()
    accept(database, Draft("The staging database listens on port 6543"))
    archive(database, first.id)
    assert wake_ups == []


def test_a_restored_memory_is_checked_and_a_purged_one_erased(database, wake_ups):
    memory_id = accept(database, Draft("The staging database listens on port 6543")).id
    archive(database, memory_id)
    wake_ups.clear()
    restore(database, memory_id)
    purge(database, memory_id)
    assert wake_ups == [{Stage.DEDUP}, {Stage.PURGE}]


def test_requested_job_wakes_a_worker_and_a_started_job_does_not(database, wake_ups):
    with database.write() as db:
        runs.request(db, "decay", "2026-01-01T00:00:00.000Z")
    with database.write() as db:
        runs.begin(db, "decay", "2026-01-01T00:00:01.000Z", 0)
    assert wake_ups == [{None}]


def test_failed_transaction_sends_no_wake_up(database, wake_ups):
    with pytest.raises(RuntimeError), database.write() as db:  # noqa: PT012 - both belong to the transaction
        work.add(db, [1], [Stage.EMBED], 0.0)
        raise RuntimeError
    with database.write() as db:
        assert db.wake_ups == set()
    assert wake_ups == []
