import random
import sqlite3

import pytest

from pipeline.kernel.errors import NotFound, StoreUnavailable
from pipeline.kernel.store import index_state, meta
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.sqlite import SqliteDatabase

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


def test_acknowledged_writes_are_synced_to_disk(database):
    with database.write() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA secure_delete").fetchone()[0]


def test_a_reader_cannot_write(database):
    with pytest.raises((sqlite3.OperationalError, StoreUnavailable)), database.read() as db:
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


def test_erasing_deleted_data_removes_copies_of_moved_rows(database):
    """SQLite leaves copies of a row that it moves to another page, and overwrites only the row itself."""
    chosen = random.Random(5)
    seqs = chosen.sample(range(10**9), 600)
    with database.write() as db:
        for number, seq in enumerate(seqs):
            word = "zubrowka" if number % 10 == 0 else "whatever"
            index_state.put_tokens(db, seq, [word, "y" * chosen.randrange(900)], 1)
        for seq in seqs[::10]:
            index_state.drop_tokens(db, seq)
    database.erase_deleted_data()
    assert b"zubrowka" not in database.file.read_bytes()
    assert not database.file.with_name(f"{database.file.name}-wal").stat().st_size
