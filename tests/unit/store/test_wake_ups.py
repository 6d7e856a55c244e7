"""A commit wakes the workers of what it queued; nothing else does."""

import pytest

from pipeline.records import Draft, Stage
from pipeline.store import runs, work
from pipeline.store.database import Database, WriterProfile
from pipeline.write.accept import accept
from pipeline.write.revise import archive, purge, restore


@pytest.fixture
def heard():
    return []


@pytest.fixture
def database(tmp_path, heard):
    profile = WriterProfile("NORMAL", 1000, 20)
    database = Database(tmp_path / "events.sqlite", profile, create=True, on_commit=heard.append)
    yield database
    database.close()


def test_a_commit_wakes_whoever_digests_what_it_wrote(database, heard):
    accept(database, Draft("The staging database listens on port 6543"))
    assert heard == [{Stage.EMBED, Stage.ENTITIES}]


def test_the_workers_find_what_they_are_woken_for(database, heard):
    def look(stages):
        with database.read() as db:
            heard.append(set(work.list_due_stages(db, 2**40)) == set(stages))

    database._on_commit = look
    accept(database, Draft("The staging database listens on port 6543"))
    assert heard == [True]


def test_what_changes_nothing_for_the_workers_wakes_nobody(database, heard):
    first = accept(database, Draft("The staging database listens on port 6543"))
    heard.clear()
    accept(database, Draft("The staging database listens on port 6543"))
    archive(database, first.id)
    assert heard == []


def test_a_restored_memory_is_checked_and_a_purged_one_erased(database, heard):
    memory_id = accept(database, Draft("The staging database listens on port 6543")).id
    archive(database, memory_id)
    heard.clear()
    restore(database, memory_id)
    purge(database, memory_id)
    assert heard == [{Stage.DEDUP}, {Stage.PURGE}]


def test_a_job_that_is_asked_for_wakes_a_worker_and_one_that_begins_does_not(database, heard):
    with database.write() as db:
        runs.request(db, "decay", "2026-01-01T00:00:00.000Z")
    with database.write() as db:
        runs.begin(db, "decay", "2026-01-01T00:00:01.000Z", 0)
    assert heard == [{None}]


def test_a_transaction_that_fails_wakes_nobody(database, heard):
    with pytest.raises(RuntimeError), database.write() as db:  # noqa: PT012 - both belong to the transaction
        work.add(db, [1], [Stage.EMBED], 0.0)
        raise RuntimeError
    with database.write() as db:
        assert db.wake_ups == set()
    assert heard == []
