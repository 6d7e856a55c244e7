"""The pages that one write changes: each of them is written to the log before the write is acknowledged."""

import pytest

from pipeline.records import Draft
from pipeline.store import driver
from pipeline.store.sqlite import SqliteDatabase
from pipeline.write.accept import accept
from tests.fakes.in_process import PROFILE

pytestmark = pytest.mark.files
FRAME_BYTES = 4096 + 24


def test_a_transaction_without_changes_writes_no_page(tmp_path):
    database = SqliteDatabase(tmp_path / "events.sqlite", PROFILE, create=True)
    accept(database, Draft("zebra"))
    log = tmp_path / "events.sqlite-wal"
    size = log.stat().st_size
    with database.write():
        pass
    assert log.stat().st_size == size
    database.close()


def test_one_small_write_changes_at_most_fifteen_pages(tmp_path):
    database = SqliteDatabase(tmp_path / "events.sqlite", PROFILE, create=True)
    log = tmp_path / "events.sqlite-wal"
    sizes = []
    for number in range(3):
        accept(database, Draft(f"zebra {number}", session_id="s"))
        sizes.append(log.stat().st_size)
    assert (sizes[2] - sizes[1]) / FRAME_BYTES <= 15
    database.close()


def test_no_counter_of_a_new_store_is_empty(tmp_path):
    database = SqliteDatabase(tmp_path / "events.sqlite", PROFILE, create=True)
    with database.read() as db:
        assert db.execute("SELECT name FROM sqlite_sequence WHERE seq IS NULL").fetchall() == []
    database.close()


def test_an_old_store_loses_the_index_of_its_clock_and_no_change(tmp_path):
    file = tmp_path / "events.sqlite"
    database = SqliteDatabase(file, PROFILE, create=True)
    accept(database, Draft("zebra"))
    accept(database, Draft("lion"))
    database.close()
    old = driver.connect(file)
    old.execute("ALTER TABLE change DROP COLUMN about")
    old.execute("ALTER TABLE job_run DROP COLUMN end_number")
    rows = old.execute("SELECT * FROM change ORDER BY seq").fetchall()
    old.execute("CREATE UNIQUE INDEX clock ON change (hlc)")
    old.execute("UPDATE sqlite_sequence SET seq = 7 WHERE name = 'change'")
    old.execute("DELETE FROM _sqlite_migrations WHERE name IN ('m013_drop_indexes', 'm014_events')")
    old.close()
    database = SqliteDatabase(file, PROFILE, create=False)
    with database.read() as db:
        assert db.execute("SELECT seq, hlc, op, memory_id FROM change ORDER BY seq").fetchall() == rows
        assert (
            db.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'change'").fetchall() == []
        )
        # Numbers of deleted changes are not given out again.
        assert db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'change'").fetchall() == [(7,)]
    database.close()
