"""A store of an earlier version opens, keeps every memory, and is migrated once."""

import contextlib

import pytest
from sqlite_utils import Database as Schema

from pipeline.jobs.indexes import needs_segment
from pipeline.records import Draft, Scope, ScopeKind
from pipeline.store import driver, memories, meta, row_hashes
from pipeline.store.migrations import MIGRATIONS, make_ready
from pipeline.store.sqlite import SqliteDatabase
from pipeline.write.accept import accept
from tests.fakes.in_process import PROFILE
from tests.fakes.migrations import next_version

pytestmark = pytest.mark.usefixtures("either_home")


@pytest.fixture(autouse=True)
def _without_copies(monkeypatch):
    """Migrate every store here, instead of copying one that is ready."""
    monkeypatch.setattr("pipeline.store.sqlite.make_ready", make_ready)


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


def test_a_new_store_has_a_name_of_its_own_and_asks_for_no_segment(tmp_path):
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
    monkeypatch.setattr("pipeline.store.migrations.secrets.token_hex", lambda _size: 1 / 0)
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
        assert [one.name for one in MIGRATIONS.applied(Schema(db))] == [
            "m001_schema",
            "m002_no_co_mentions",
            "m003_said",
            "m004_operations",
            "m005_people",
            "m006_log_from_sync_on",
            "m007_row_hashes",
            "m008_index_all_fields",
            "m009_archive",
            "m010_answers_and_uses",
            "m011_entity_aliases",
            "m012_vocabulary",
            "m013_drop_indexes",
            "m014_events",
            "m015_given_up",
        ]


def test_the_entities_of_an_old_store_are_found_again(file):
    with contextlib.closing(SqliteDatabase(file, PROFILE, create=True)) as database:
        accept(database, Draft("zebra"))
    with contextlib.closing(driver.connect(file)) as db:
        db.execute("DELETE FROM work")
        db.execute("DELETE FROM _sqlite_migrations WHERE name = 'm011_entity_aliases'")
        db.execute("DROP TABLE entity_alias")
    with contextlib.closing(SqliteDatabase(file, PROFILE, create=False)) as database, database.read() as db:
        assert db.execute("SELECT memory_seq, stage FROM work").fetchall() == [(1, "entities")]


def test_memories_of_branches_become_those_of_the_workspace_with_a_tag(file):
    with contextlib.closing(SqliteDatabase(file, PROFILE, create=True)) as database:
        for scope in (Scope(ScopeKind.TASK, "main-2"), Scope(), Scope(ScopeKind.TASK, "grün/x")):
            accept(database, Draft("zebra", scope=scope))
        accept(database, Draft("okapi", scope=Scope(ScopeKind.TASK, "grün/x"), tags=("striped",)))
    with contextlib.closing(driver.connect(file)) as db:
        db.execute("DELETE FROM _sqlite_migrations WHERE name = 'm015_given_up'")
        db.execute("UPDATE memory SET scope_kind = 'branch' WHERE scope_kind = 'task'")
    with contextlib.closing(SqliteDatabase(file, PROFILE, create=False)) as database, database.read() as db:
        found = memories.by_seqs(db, memories.all_seqs(db)).values()
        assert row_hashes.list_edited(db) == []
    assert {memory.scope for memory in found} == {Scope()}
    assert [(memory.content, memory.tags) for memory in found if memory.archived_at is None] == [
        ("zebra", ()),
        ("okapi", ("striped", "branch:gr-n/x")),
    ]


def test_a_store_with_counts_of_co_mentions_opens_without_them(file):
    with contextlib.closing(SqliteDatabase(file, PROFILE, create=True)) as database:
        accept(database, Draft("zebra"))
    with contextlib.closing(driver.connect(file)) as db:
        db.execute("DELETE FROM _sqlite_migrations WHERE name = 'm002_no_co_mentions'")
        db.execute("CREATE TABLE co_mention (low INTEGER, high INTEGER, memories INTEGER)")
        db.execute("INSERT INTO co_mention VALUES (1, 2, 3)")
    with contextlib.closing(SqliteDatabase(file, PROFILE, create=False)) as database, database.read() as db:
        assert memories.all_seqs(db) == [1]
    assert "co_mention" not in tables(file)
