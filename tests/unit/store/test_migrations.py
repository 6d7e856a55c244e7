"""A store of an earlier version opens, keeps every memory, and gets back what recall needs."""

import contextlib
import sqlite3

import pytest
from sqlite_utils import Migrations

from pipeline.index.lexical import LexicalIndex
from pipeline.index.sessions import SessionMap
from pipeline.jobs.segment import needs_segment, rebuild_segment
from pipeline.records import Draft
from pipeline.store import memories, meta, tail
from pipeline.store.database import Database
from pipeline.store.migrations import m001_control_plane
from pipeline.store.opening import make_ready
from pipeline.store.visibility import Filter
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.house import PROFILE


@pytest.fixture
def file(tmp_path):
    return tmp_path / "events.sqlite"


def first_version(file):
    """Make a store as the first version left it."""
    migrations = Migrations("reverie")
    migrations()(m001_control_plane)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        make_ready(connection, file, migrations)


@pytest.fixture
def old(file):
    """A store of the first version: one memory in its segment, one in its tail, one archived, with their history."""
    first_version(file)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as db:
        for seq, content in enumerate(("zebra one", "zebra two", "zebra three"), start=1):
            db.execute(
                "INSERT INTO memory VALUES (?, ?, ?, 'fact', 'workspace', '', '[]', '{}', 'user', 'trusted', 0.5, "
                "'working', 0, 's', ?, ?, ?, ?, ?, 0, 0)",
                (seq, f"id-{seq}", content, *["2026-01-01T00:00:00.000Z"] * 3, "x" if seq == 3 else None, str(seq)),
            )
            db.execute(
                "INSERT INTO change (hlc, op, memory_id) VALUES (?, 'create', ?)",
                (f"{seq:014d}-000000-node", f"id-{seq}"),
            )
        db.execute("INSERT INTO tail (rowid, tokens) VALUES (2, 'zebra two')")
        db.execute("INSERT INTO tail_row VALUES (2, 2, 2)")
        db.execute("INSERT INTO history VALUES (1, 1, 'then', 'edited', 'giraffe one', '{}')")
        db.execute("INSERT INTO work (memory_seq, stage, queued_at) VALUES (2, 'embed', 0)")
        db.execute("INSERT INTO embedding VALUES (1, 'hash', 1)")
        db.execute("INSERT INTO meta VALUES ('segment', 'segment-of-bm25s')")
        db.execute("INSERT INTO meta VALUES ('vectors_generation', '7')")
    return file


KEPT = ("memory", "history", "change", "work", "embedding", "entity", "mention", "co_mention")


def contents(file, columns=None):
    """Return every table's rows as {column: value}, of the given columns only where some are given."""
    with contextlib.closing(sqlite3.connect(file)) as db:
        db.row_factory = sqlite3.Row
        rows = {table: [dict(row) for row in db.execute(f"SELECT * FROM {table}")] for table in KEPT}
    if columns is None:
        return rows
    return {table: [{name: row[name] for name in columns[table]} for row in found] for table, found in rows.items()}


def test_a_store_of_the_first_version_loses_nothing(old):
    before = contents(old)
    columns = {table: list(rows[0]) if rows else [] for table, rows in before.items()}
    with contextlib.closing(Database(old, PROFILE, create=False)) as database, database.read() as db:
        assert meta.get(db, "node")
        assert meta.get_int(db, meta.VECTORS_GENERATION) == 7
    assert contents(old, columns) == before


def test_its_segment_is_forgotten_and_a_new_one_makes_everything_findable(old, tmp_path):
    folder = tmp_path / "lexical"
    with contextlib.closing(Database(old, PROFILE, create=False)) as database:
        with database.read() as db:
            assert meta.get(db, meta.SEGMENT) is None
            assert tail.size(db) == 0
        assert needs_segment(database, 10_000)
        index = LexicalIndex(folder, SessionMap())
        with database.read() as db:
            assert index.search(db, ["zebra"]).top(9).tolist() == []
        assert rebuild_segment(database, folder) == 2
        with database.read() as db:
            assert index.search(db, ["zebra"]).top(9).tolist() == [1, 2]
        assert not needs_segment(database, 1)


def test_its_memories_get_the_fields_that_are_new(old):
    with contextlib.closing(Database(old, PROFILE, create=False)) as database, database.read() as db:
        memory = memories.get(db, "id-1")
        assert memory.details == {}
        assert (memory.anchor, memory.branch, memory.key, memory.valid_from, memory.valid_to) == (None,) * 5
        assert not memory.candidate
        assert not memory.instructs


def test_it_can_be_written_to_at_once(old, tmp_path):
    with contextlib.closing(Database(old, PROFILE, create=False)) as database:
        accept(database, Draft("zebra four"))
        revise.edit(database, "id-1", revise.Revision(content="okapi one"))
        revise.restore(database, "id-3")
        with database.read() as db:
            assert [(seq, tokens[0]) for seq, _, tokens in tail.after(db, 0)] == [
                (4, "zebra"),
                (1, "okapi"),
                (3, "zebra"),
            ]
            assert len(memories.visible_seqs(db, Filter())) == 4
        rebuild_segment(database, tmp_path / "lexical")
        with database.read() as db:
            found = LexicalIndex(tmp_path / "lexical", SessionMap()).search(db, ["zebra"])
            assert found.top(9).tolist() == [2, 3, 4]


def test_it_is_migrated_once(old):
    for _ in range(2):
        with contextlib.closing(Database(old, PROFILE, create=False)) as database:
            accept(database, Draft("zebra four"))
            with database.read() as db:
                assert tail.size(db) == 1


def test_a_new_store_asks_for_no_segment(file):
    with contextlib.closing(Database(file, PROFILE, create=True)) as database:
        assert not needs_segment(database, 1)


def test_an_empty_store_of_the_first_version_asks_for_none_either(file):
    first_version(file)
    with contextlib.closing(Database(file, PROFILE, create=False)) as database:
        assert not needs_segment(database, 1)
