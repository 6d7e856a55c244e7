"""Another program's database is read while that program writes it, and never changed."""

import sqlite3

import pytest

from pipeline.kernel.errors import ForeignDatabaseUnreadable
from pipeline.kernel.store import foreign_database
from pipeline.kernel.store.foreign_database import MAX_VALUE_BYTES, PAGE_ROWS, open_foreign_database


@pytest.fixture
def file(tmp_path):
    return tmp_path / "other.db"


def write(file, *statements, journal="wal"):
    db = sqlite3.connect(file, isolation_level=None)
    db.execute(f"PRAGMA journal_mode={journal}")
    for statement in statements:
        db.execute(statement)
    return db


def test_an_unused_database_gets_no_files_next_to_it(file):
    write(file, "CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES ('x')").close()
    with open_foreign_database(file) as db:
        assert [row["a"] for row in db.rows("t", ("a",))] == ["x"]
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_rows_in_the_write_ahead_log_are_read(file):
    program = write(file, "CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES ('x')")
    with open_foreign_database(file) as db:
        assert [row["a"] for row in db.rows("t", ("a",))] == ["x"]
        program.execute("INSERT INTO t VALUES ('y')")
        assert [row["a"] for row in db.rows("t", ("a",))] == ["x", "y"]
    program.close()


def test_a_program_that_starts_during_the_reading_is_noticed(file):
    write(file, "CREATE TABLE t (a TEXT)").close()
    with open_foreign_database(file) as db:
        program = write(file, "INSERT INTO t VALUES ('x')")
        with pytest.raises(ForeignDatabaseUnreadable, match="is being changed"):
            list(db.rows("t", ("a",)))
    program.close()


def test_a_locked_database_is_unreadable_now(file, monkeypatch):
    monkeypatch.setattr(foreign_database, "BUSY_S", 0.02)
    program = write(file, "CREATE TABLE t (a TEXT)", "BEGIN EXCLUSIVE", journal="delete")
    with open_foreign_database(file) as db, pytest.raises(ForeignDatabaseUnreadable, match="locked"):
        db.columns("t")
    program.close()


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100])
def test_file_without_the_table_or_database_is_unreadable(file, content):
    file.write_bytes(content)
    with open_foreign_database(file) as db, pytest.raises(ForeignDatabaseUnreadable):
        list(db.rows("t", ("a",)))


def test_a_missing_column_is_none_and_a_missing_table_an_error(file):
    write(file, "CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES ('x')").close()
    with open_foreign_database(file) as db:
        assert list(db.rows("t", ("a", "later"))) == [{"rowid": 1, "a": "x", "later": None}]
        with pytest.raises(ForeignDatabaseUnreadable, match="has no table gone"):
            list(db.rows("gone", ("a",)))


def test_rows_are_read_in_pages_and_in_order(file):
    count = 2 * PAGE_ROWS + 1
    program = write(file, "CREATE TABLE t (key TEXT UNIQUE, n INTEGER)", "BEGIN")
    program.executemany("INSERT INTO t VALUES (?, ?)", [(f"k{count - n:06}", n) for n in range(count)])
    program.execute("COMMIT")
    program.close()
    with open_foreign_database(file) as db:
        assert [row["n"] for row in db.rows("t", ("n",))] == list(range(count))
        assert [row["n"] for row in db.rows("t", ("n",), order="key")] == list(reversed(range(count)))
        assert [row["n"] for row in db.rows("t", ("n",), [("n", ">", 3), ("n", "<=", 5)])] == [4, 5]
        assert db.largest("t", "n") == count - 1
        assert db.values("t", "n", [("n", "<", 2)]) == [0, 1]


def test_a_huge_value_is_not_loaded(file):
    program = write(file, "CREATE TABLE t (a TEXT)")
    program.execute("INSERT INTO t VALUES (?), (?)", ("x" * (MAX_VALUE_BYTES + 1), "y"))
    program.close()
    with open_foreign_database(file) as db:
        assert [row["a"] for row in db.rows("t", ("a",))] == [None, "y"]


def test_a_name_cannot_change_the_query(file):
    write(file, 'CREATE TABLE "t""x" ("a"" FROM t; --" TEXT)', 'INSERT INTO "t""x" VALUES (\'x\')').close()
    with open_foreign_database(file) as db:
        assert [row['a" FROM t; --'] for row in db.rows('t"x', ('a" FROM t; --',))] == ["x"]
