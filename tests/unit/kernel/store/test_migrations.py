"""A store of an earlier version opens, keeps every memory, and is migrated once."""

import contextlib

import pytest
from sqlite_utils import Database as Schema

from pipeline.features.indexing.job import needs_segment
from pipeline.kernel.records import Draft
from pipeline.kernel.store import driver, memories, meta
from pipeline.kernel.store.migrations import MIGRATIONS, make_ready
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write.accept import accept
from tests.fakes.in_process import PROFILE
from tests.fakes.migrations import next_version

pytestmark = pytest.mark.usefixtures("either_home")


@pytest.fixture(autouse=True)
def _without_copies(monkeypatch):
    """Migrate every store here, instead of copying one that is ready."""
    monkeypatch.setattr("pipeline.kernel.store.sqlite.make_ready", make_ready)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "events.sqlite"


@pytest.fixture
def old(file):
    """A store with a memory, of the version before the next one."""
    with contextlib.closing(SqliteDatabase(file, PROFILE, create=True)) as database:
        accept(database, Draft("zebra one"))
    return file


def tables(file):
    with contextlib.closing(driver.connect(file)) as db:
        return set(Schema(db).table_names())


def test_new_store_has_a_unique_node_name_and_needs_no_segment(tmp_path):
    names = set()
    for number in range(2):
        with contextlib.closing(
            SqliteDatabase(tmp_path / str(number) / "events.sqlite", PROFILE, create=True)
        ) as database:
            assert not needs_segment(database, 1)
            with database.read() as db:
                names.add(meta.get(db, "node"))
    assert len(names - {None, ""}) == 2


def test_every_table_of_the_schema_is_made_in_one_transaction(file, monkeypatch):
    monkeypatch.setattr("pipeline.kernel.store.migrations.secrets.token_hex", lambda _size: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        SqliteDatabase(file, PROFILE, create=True)
    assert tables(file) <= {"_sqlite_migrations"}


def test_a_store_of_the_version_before_keeps_its_memories_and_takes_more(old):
    with next_version():
        for content in ("zebra one", "zebra two"):
            with contextlib.closing(SqliteDatabase(old, PROFILE, create=False)) as database:
                accept(database, Draft(content))
                with database.read() as db:
                    kept = [memories.by_seqs(db, [seq])[seq].content for seq in memories.all_seqs(db)]
        assert kept == ["zebra one", "zebra two"]
        assert "next_version" in tables(old)


def test_a_new_store_has_every_migration(file):
    SqliteDatabase(file, PROFILE, create=True).close()
    with contextlib.closing(driver.connect(file)) as db:
        assert [one.name for one in MIGRATIONS.applied(Schema(db))] == ["s001_tables"]
