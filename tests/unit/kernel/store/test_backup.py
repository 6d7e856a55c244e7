"""Copies are whole, sound and one file each, whoever writes; a migration keeps every row or changes nothing."""

import contextlib
import errno
import sqlite3
import threading
from datetime import UTC, datetime

import pytest
from sqlite_utils import Migrations

from config.paths import WorkspacePaths
from pipeline.kernel.errors import StoreBusy, StoreDamaged, StoreFull, StoreUnavailable
from pipeline.kernel.records import Draft
from pipeline.kernel.store import backup, driver
from pipeline.kernel.store.backup import Taken
from pipeline.kernel.store.migrations import make_ready, migrate_copy
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write.accept import accept
from tests.fakes.in_process import PROFILE, accept_batch, scratch_database

pytestmark = [pytest.mark.usefixtures("either_home"), pytest.mark.files]

NOW = datetime(2026, 3, 1, 12, 0, 0, 5000, tzinfo=UTC)


@pytest.fixture
def database():
    with scratch_database() as database:
        accept_batch(database, [Draft(f"Memory number {n}") for n in range(200)])
        yield database


@pytest.fixture
def target(tmp_path):
    return tmp_path / "copy.sqlite"


def rows(file):
    with contextlib.closing(driver.connect(file)) as db:
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in backup.row_counts(db)}


def test_backup_contains_every_row_in_a_single_private_file(database, target):
    assert backup.copy(database.file, target)
    assert rows(target) == rows(database.file)
    assert [entry.name for entry in target.parent.iterdir()] == [target.name]
    assert target.stat().st_mode & 0o777 == 0o600


def test_backup_is_a_consistent_snapshot_and_blocks_no_writer(database, target):
    """Somebody writes between any two steps: the copy begins no second time and holds what was there at first."""
    before = rows(database.file)
    steps = []

    def write_between_steps():
        steps.append(accept(database, Draft(f"written meanwhile {len(steps)}")))
        return False

    assert backup.copy(database.file, target, write_between_steps, pages=8)
    assert len(steps) > 5
    assert rows(target) == before


def test_a_copy_that_is_asked_to_stop_leaves_nothing(database, target):
    answers = iter([False, False, True])
    assert not backup.copy(database.file, target, lambda: next(answers), pages=4)
    assert list(target.parent.iterdir()) == []


def test_a_copy_that_fails_in_the_middle_leaves_nothing_under_its_name(database, target):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        backup.copy(database.file, target, fail)
    assert list(target.parent.iterdir()) == []


def test_a_damaged_store_is_not_copied(database, target):
    database.complete_file()
    content = bytearray(database.file.read_bytes())
    content[8 * 4096 : 20 * 4096] = b"\xff" * (12 * 4096)
    broken = target.with_name("broken.sqlite")
    broken.write_bytes(content)
    with pytest.raises(StoreDamaged):
        backup.copy(broken, target)
    assert not target.exists()


def test_a_copy_with_fewer_rows_is_no_copy(database, target, monkeypatch):
    counts = backup.row_counts(driver.connect(database.file))
    answers = iter([counts, {**counts, "memory": 199}])
    monkeypatch.setattr(backup, "row_counts", lambda _db: next(answers))
    with pytest.raises(StoreDamaged, match="rows"):
        backup.copy(database.file, target)
    assert not target.exists()


def test_a_missing_store_is_unavailable_and_not_made(tmp_path, target):
    with pytest.raises(StoreUnavailable):
        backup.copy(tmp_path / "nothing.sqlite", target)
    assert list(tmp_path.iterdir()) == []


def test_names_are_read_back_newest_first_and_never_given_twice(tmp_path):
    for taken in (Taken.DAILY, Taken.DAILY, Taken.BEFORE_RESTORE):
        backup.new_file(tmp_path, taken, NOW).touch()
    (tmp_path / "partial-20260301T120000005Z.sqlite").touch()
    (tmp_path / "notes.sqlite").touch()
    found = [(one.name, one.taken) for one in backup.snapshots(tmp_path)]
    assert found == [
        ("20260301T120000006Z", Taken.DAILY),
        ("before-restore-20260301T120000005Z", Taken.BEFORE_RESTORE),
        ("20260301T120000005Z", Taken.DAILY),
    ]
    assert backup.snapshots(tmp_path)[-1].at == NOW


def test_backup_lock_removes_partial_files_of_an_interrupted_run(tmp_path):
    for name in ("partial-1.sqlite", "partial-1.sqlite-wal", "20260301T120000005Z.sqlite"):
        (tmp_path / name).touch()
    with backup.locked(tmp_path):
        assert {entry.name for entry in tmp_path.iterdir()} == {".lock", "20260301T120000005Z.sqlite"}


def test_a_store_in_use_is_not_settled(database, monkeypatch):
    monkeypatch.setattr(backup, "BUSY_S", 0.02)
    with pytest.raises(StoreBusy):
        backup.settle(database.file)


def test_a_settled_store_is_one_file(database):
    before = rows(database.file)
    database.close()
    backup.settle(database.file)
    assert not [entry for entry in database.file.parent.iterdir() if entry.name.endswith(backup.LOG_SUFFIXES)]
    assert rows(database.file) == before


def test_damaged_store_is_moved_unchanged(tmp_path):
    file, aside = tmp_path / "events.sqlite", tmp_path / "aside.sqlite"
    for suffix in ("", "-wal"):
        (tmp_path / f"events.sqlite{suffix}").write_bytes(b"no database" + suffix.encode())
    backup.put_aside(file, aside)
    assert aside.read_bytes() == b"no database"
    assert (tmp_path / "aside.sqlite-wal").read_bytes() == b"no database-wal"


# Migrations.


def first(db):
    db.execute("CREATE TABLE memory (seq INTEGER PRIMARY KEY, content TEXT)")
    db.execute("CREATE TABLE tail (seq INTEGER PRIMARY KEY)")


def loses_a_row(db):
    db.execute("ALTER TABLE memory ADD COLUMN kind TEXT")
    db.execute("DELETE FROM memory WHERE seq = 2")


def loses_a_table(db):
    db.execute("DROP TABLE tail")


def fails_half_way(db):
    db.execute("CREATE TABLE extra (x)")
    db.execute("INSERT INTO memory VALUES (9, 'nine')")
    db.execute("no such statement")


def adds(db):
    db.execute("CREATE TABLE more (x)")
    db.execute("INSERT INTO more VALUES (1)")


def chain(*steps):
    migrations = Migrations("test")
    for step in steps:
        migrations()(step)
    return migrations


@pytest.fixture
def old(tmp_path):
    file = tmp_path / "events.sqlite"
    with contextlib.closing(driver.connect(file, "rwc")) as db:
        make_ready(db, file, chain(first))
        db.executemany("INSERT INTO memory VALUES (?, ?)", [(1, "one"), (2, "two"), (3, "three")])
        db.execute("INSERT INTO tail VALUES (1)")
    return file


def migrate(file, *steps):
    with contextlib.closing(driver.connect(file, "rwc")) as db:
        make_ready(db, file, chain(first, *steps), snapshots=file.parent / "snapshots")


@pytest.mark.parametrize(
    "steps", [[loses_a_row], [adds, loses_a_row], [loses_a_table], [fails_half_way], [adds, fails_half_way]]
)
def test_failed_migration_changes_nothing_and_leaves_a_snapshot(old, steps):
    before = rows(old)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="undone"):
            migrate(old, *steps)
        assert rows(old) == before
        [copy] = backup.snapshots(old.parent / "snapshots")
        assert copy.taken is Taken.BEFORE_MIGRATION
        assert rows(copy.file) == before


def test_no_migration_no_copy(old):
    migrate(old)
    assert not (old.parent / "snapshots").exists()


def test_an_empty_store_is_migrated_without_a_copy(tmp_path):
    file = tmp_path / "events.sqlite"
    migrate(file, adds)
    assert rows(file)["more"] == [(1,)]
    assert not (tmp_path / "snapshots").exists()


def test_a_store_that_cannot_be_copied_soundly_is_not_migrated(old, monkeypatch):
    before = rows(old)

    def refuse(*_):
        raise StoreDamaged("not sound")

    monkeypatch.setattr(backup, "verify", refuse)
    with pytest.raises(StoreUnavailable, match="not sound"):
        migrate(old, adds)
    assert rows(old) == before


def fills_the_disk(db):
    # The file must not grow.
    db.conn.execute("PRAGMA max_page_count=1")
    db.conn.execute("CREATE TABLE much AS SELECT zeroblob(100000) AS room")


def test_copy_without_room_for_its_migration_is_an_error_with_a_type(old):
    before = rows(old)
    with pytest.raises(StoreFull):
        migrate_copy(old, chain(first, fills_the_disk))
    assert rows(old) == before


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("database or disk is full", StoreFull),
        ("database is locked", StoreBusy),
        ("disk I/O error", StoreUnavailable),
        ("unable to open database file", StoreUnavailable),
        ("out of memory", StoreUnavailable),
    ],
)
def test_failure_that_a_function_reports_without_a_code_is_no_damage(tmp_path, message, expected):
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = sqlite3.SQLITE_ERROR
    with pytest.raises(StoreUnavailable) as raised, backup.typed_errors(tmp_path / "events.sqlite"):
        raise error
    assert raised.type is expected


@pytest.mark.parametrize("place", ["shutil.rmtree", "sync_to_disk", "publish"])
def test_store_that_cannot_be_replaced_is_an_error_with_a_type(tmp_path, monkeypatch, place):
    paths = WorkspacePaths(tmp_path / "default")
    source = tmp_path / "source.sqlite"
    for file in (paths.events, source):
        SqliteDatabase(file, PROFILE, create=True).close()
    paths.lexical.mkdir()
    before = rows(paths.events)

    def fail(path, *_):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    # The replaced store is copied first.
    monkeypatch.setattr(backup, "put_aside", lambda *_: None)
    monkeypatch.setattr(f"pipeline.kernel.store.backup.{place}", fail)
    with backup.locked(paths.snapshots), pytest.raises(StoreFull):
        backup.replace_store(paths, source, NOW)
    assert rows(paths.events) == before


def test_two_processes_migrate_once(old):
    failures = []
    start = threading.Barrier(3)

    def open_it():
        start.wait()
        try:
            migrate(old, adds)
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert rows(old)["more"] == [(1,)]
    assert len(backup.snapshots(old.parent / "snapshots")) == 1


def test_a_new_store_has_no_folder_of_snapshots(tmp_path):
    SqliteDatabase(tmp_path / "events.sqlite", PROFILE, create=True).close()
    assert not (tmp_path / "snapshots").exists()
