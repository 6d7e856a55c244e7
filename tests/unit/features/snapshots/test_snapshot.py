"""Snapshots: taken when something changed, thinned out by a rule, reached by every purge."""

import contextlib
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from config.paths import WorkspacePaths
from pipeline.features.snapshots.job import find_outdated_snapshots, find_snapshot, scrub_snapshots, snapshot
from pipeline.kernel.errors import NotFound, StoreBusy, StoreDamaged
from pipeline.kernel.job_runs import JobRun
from pipeline.kernel.records import Draft, Revision
from pipeline.kernel.store import backup
from pipeline.kernel.store.backup import Snapshot, Taken
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import PROFILE, folder_of

NOW = datetime(2026, 3, 1, 3, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def database(tmp_path):
    with contextlib.closing(SqliteDatabase(tmp_path / "w" / "events.sqlite", PROFILE, create=True)) as database:
        accept(database, Draft("The first memory"))
        yield database


@pytest.fixture
def folder(database):
    return WorkspacePaths(folder_of(database)).snapshots


def run(database, folder, now=NOW, **options):
    return snapshot(JobRun(database, now, **options), folder)


def contents(file):
    with contextlib.closing(sqlite3.connect(file)) as db:
        return {row[0] for row in db.execute("SELECT content FROM memory")}


def list_files_with(folder, text):
    return [file.name for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


def test_only_changed_data_is_copied_to_a_snapshot(database, folder):
    assert run(database, folder).counts == {"taken": 1, "unchanged": 0, "removed": 0, "kept": 1}
    assert run(database, folder, NOW + DAY).counts == {"taken": 0, "unchanged": 1, "removed": 0, "kept": 1}
    accept(database, Draft("The second memory"))
    assert run(database, folder, NOW + 2 * DAY).counts["taken"] == 1
    newest, oldest = backup.snapshots(folder)
    assert newest.at == NOW + 2 * DAY
    assert contents(newest.file) == {"The first memory", "The second memory"}
    assert contents(oldest.file) == {"The first memory"}


def test_of_two_on_one_day_the_newer_stays(database, folder):
    run(database, folder)
    accept(database, Draft("The second memory"))
    run(database, folder, NOW + timedelta(hours=5))
    [one] = backup.snapshots(folder)
    assert contents(one.file) == {"The first memory", "The second memory"}


def test_stopped_anywhere_and_run_again_it_comes_to_the_same_end(database, folder):
    for stop in range(3):
        asked = iter([False] * stop + [True] * 100)
        report = run(database, folder, pausing=lambda asked=asked: next(asked))
        assert report.more == (stop < 2)
    assert run(database, folder).counts["unchanged"] == 1
    [one] = backup.snapshots(folder)
    assert contents(one.file) == {"The first memory"}
    assert {entry.name for entry in folder.iterdir()} == {".lock", one.file.name}


def test_a_copy_that_fails_leaves_the_older_ones(database, folder, monkeypatch):
    run(database, folder)
    accept(database, Draft("The second memory"))

    def refuse(*_):
        raise StoreDamaged("not sound")

    with monkeypatch.context() as patched:
        patched.setattr(backup, "verify", refuse)
        with pytest.raises(StoreDamaged):
            run(database, folder, NOW + DAY)
    [one] = backup.snapshots(folder)
    assert contents(one.file) == {"The first memory"}
    assert run(database, folder, NOW + DAY).counts["taken"] == 1


def make_snapshots(moments, taken=Taken.DAILY):
    return [Snapshot(Path(f"{taken}-{moment.isoformat()}"), taken, moment) for moment in moments]


moments = st.lists(st.integers(0, 24 * 120).map(lambda hours: NOW - timedelta(hours=hours)), unique=True)


@given(moments)
def test_the_rule_keeps_7_days_and_4_weeks(times):
    every = make_snapshots(times)
    gone = find_outdated_snapshots(every, NOW)
    kept = [one for one in every if one not in gone]
    assert len(kept) <= 11
    days = sorted({t.date() for t in times}, reverse=True)[:7]
    weeks = sorted({t.isocalendar()[:2] for t in times}, reverse=True)[:4]
    newest_of_days = {max(t for t in times if t.date() == day) for day in days}
    newest_of_weeks = {max(t for t in times if t.isocalendar()[:2] == week) for week in weeks}
    assert {one.at for one in kept} == newest_of_days | newest_of_weeks
    assert find_outdated_snapshots(kept, NOW) == []


@given(moments, moments)
def test_replaced_data_snapshots_are_kept_4_weeks_and_the_newest_forever(before, after):
    migrated, restored = make_snapshots(before, Taken.BEFORE_MIGRATION), make_snapshots(after, Taken.BEFORE_RESTORE)
    gone = find_outdated_snapshots([*migrated, *restored], NOW)
    for sort in (migrated, restored):
        kept = {one.at for one in sort if one not in gone}
        assert kept == {one.at for one in sort if NOW - one.at < timedelta(weeks=4)} | {
            one.at for one in sorted(sort, key=lambda one: one.at)[-1:]
        }


def test_a_year_of_copies_leaves_a_week_of_days_and_a_month_of_weeks():
    kept: list[Snapshot] = []
    for day in range(365):
        kept += make_snapshots([NOW + day * DAY])
        gone = find_outdated_snapshots(kept, NOW + day * DAY)
        kept = [one for one in kept if one not in gone]
    ages = sorted((NOW + 364 * DAY - one.at).days for one in kept)
    assert ages[:7] == [0, 1, 2, 3, 4, 5, 6]
    assert 21 <= ages[-1] <= 27


def test_one_is_found_by_name_and_latest_is_the_newest_daily(database, folder):
    with pytest.raises(NotFound):
        find_snapshot(folder, "latest")
    run(database, folder)
    [daily] = backup.snapshots(folder)
    backup.copy(database.file, backup.new_file(folder, Taken.BEFORE_RESTORE, NOW + DAY))
    assert find_snapshot(folder, "latest") == daily
    assert find_snapshot(folder, daily.name) == daily
    assert find_snapshot(folder, "before-restore-20260302T030000000Z").taken is Taken.BEFORE_RESTORE
    for name in ("../events", "", "20260302T030000000Z"):
        with pytest.raises(NotFound):
            find_snapshot(folder, name)


# A purge reaches the copies.


@pytest.fixture
def purged(database, folder):
    """Two snapshots hold a secret, one of them merged; then it is purged. A third never held it."""
    run(database, folder, NOW - DAY)
    secret = accept(database, Draft("The snollygoster signed."))
    accept(database, Draft("Kept beside it"))
    run(database, folder)
    revise.edit(database, secret.id, Revision(content="The snollygoster signed again."))
    run(database, folder, NOW + DAY)
    revise.purge(database, secret.id)
    assert len(list_files_with(folder, "snollygoster")) == 2
    return secret


def test_a_purge_is_taken_out_of_every_snapshot_and_of_nothing_else(database, folder, purged):
    problems = []
    assert scrub_snapshots(database, folder, problems.append) == 2
    assert problems == []
    assert list_files_with(folder, "snollygoster") == []
    assert [contents(one.file) for one in backup.snapshots(folder)] == [
        {"The first memory", "Kept beside it"},
        {"The first memory", "Kept beside it"},
        {"The first memory"},
    ]
    assert {entry.suffix for entry in folder.iterdir()} == {"", ".sqlite"}
    assert scrub_snapshots(database, folder, problems.append) == 0


@pytest.mark.parametrize("place", ["settle", "list_held", "_connect"])
def test_interrupted_anywhere_a_scrub_is_done_by_the_next(database, folder, purged, monkeypatch, place):
    """A crash at each call in turn, until one run comes through; nothing is ever lost but the secret."""
    true = getattr(backup, place)
    for allowed in range(60):
        left = [allowed]

        def crash(*arguments, left=left):
            if left[0] == 0:
                raise ZeroDivisionError
            left[0] -= 1
            return true(*arguments)

        try:
            with monkeypatch.context() as patched:
                patched.setattr(backup, place, crash)
                scrub_snapshots(database, folder, print)
        except ZeroDivisionError:
            continue
        break
    assert allowed > 2
    assert list_files_with(folder, "snollygoster") == []
    assert len(backup.snapshots(folder)) == 3


def test_a_log_that_a_killed_scrub_left_is_folded_in(database, folder, purged):
    newest = backup.snapshots(folder)[0]
    with contextlib.closing(SqliteDatabase(newest.file, PROFILE, create=False)) as copy:
        revise.purge(copy, purged.id)
        pieces = {name: newest.file.with_name(newest.file.name + name) for name in ("", "-wal")}
        left = {name: piece.read_bytes() for name, piece in pieces.items()}
    backup.remove(newest.file)
    for name, piece in pieces.items():
        piece.write_bytes(left[name])
    assert b"snollygoster" in left[""]
    scrub_snapshots(database, folder, print)
    assert list_files_with(folder, "snollygoster") == []


@pytest.mark.parametrize("harm", ["older", "damaged"])
def test_snapshot_that_cannot_be_scrubbed_is_deleted_and_reported(database, folder, purged, harm):
    for one in backup.snapshots(folder):
        if harm == "damaged":
            one.file.write_bytes(b"\x00" * 100 + b"snollygoster")
        else:
            with contextlib.closing(sqlite3.connect(one.file)) as db, db:
                db.execute("DELETE FROM _sqlite_migrations WHERE name = 's001_tables'")
    problems = []
    scrub_snapshots(database, folder, problems.append)
    assert list_files_with(folder, "snollygoster") == []
    assert len(problems) == (3 if harm == "damaged" else 2)
    assert "snollygoster" not in "".join(problems)
    # One copy at least is there: the one that held nothing, or a new one.
    assert [contents(one.file) for one in backup.snapshots(folder)] == [
        {"The first memory"} if harm == "older" else {"The first memory", "Kept beside it"}
    ]


def test_snapshot_in_use_delays_the_purge(database, folder, purged, monkeypatch):
    monkeypatch.setattr(backup, "BUSY_S", 0.02)
    monkeypatch.setattr("pipeline.features.snapshots.job._COPY", WriterProfile("NORMAL", 1000, busy_timeout_ms=20))
    newest = backup.snapshots(folder)[0]
    with contextlib.closing(sqlite3.connect(newest.file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memory").fetchone()
        with pytest.raises(StoreBusy):
            scrub_snapshots(database, folder, print)
    scrub_snapshots(database, folder, print)
    assert list_files_with(folder, "snollygoster") == []
    assert len(backup.snapshots(folder)) == 3


def test_scrub_also_erases_merged_duplicates(database, folder):
    survivor = accept(database, Draft("The snollygoster signed."))
    accept(database, Draft("The snollygoster signed."))
    run(database, folder)
    revise.purge(database, survivor.id)
    assert scrub_snapshots(database, folder, print) == 1
    assert list_files_with(folder, "snollygoster") == []


def test_without_snapshots_there_is_nothing_to_do(database, folder):
    assert scrub_snapshots(database, folder, print) == 0
    assert not folder.exists()
