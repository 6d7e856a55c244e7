"""The pages that one write changes: each of them is written to the log before the write is acknowledged."""

import pytest

from pipeline.kernel.records import Draft
from pipeline.kernel.store.sqlite import SqliteDatabase
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
