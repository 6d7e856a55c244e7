"""Copies of who shares a home: taken when they changed, whole under a writer, and no way back for what was revoked."""

import contextlib
import threading
from datetime import UTC, datetime, timedelta

import pytest

from pipeline.features.encryption.usecases import choose_key, decrypt_home, encrypt_home
from pipeline.features.snapshots.people_job import restore_people, snapshot_people, take_people_snapshot
from pipeline.kernel.errors import NotFound
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.records.people import Person, Role
from pipeline.kernel.store import backup, driver
from pipeline.kernel.store.backup import Taken
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.store.people import AccessEntry, AccessQuery, People, Token
from tests.fakes.in_process import fast_settings, open_worker, run_job

pytestmark = pytest.mark.files

NOW = datetime(2026, 3, 1, 3, tzinfo=UTC)
DAY = timedelta(days=1)
AT, LATER = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"


@pytest.fixture
def paths(tmp_path):
    paths = fast_settings(tmp_path / "home").paths
    paths.ensure()
    return paths


@pytest.fixture
def folder(paths):
    return paths.snapshots


@contextlib.contextmanager
def opened(paths):
    with contextlib.closing(HomeFile(paths.home)) as home:
        yield People(home)


def add(paths, name, token="t"):
    with opened(paths) as people:
        people.add(Person(name, name.title()), AT)
        people.add_token(Token(f"{name}-{token}", name, "laptop", AT), f"hash of {name}-{token}")
        people.grant(name, "red", Role.WRITER)


def opens(paths, name, token="t"):
    with opened(paths) as people:
        return people.find_caller(f"hash of {name}-{token}", LATER) is not None


def run(paths, now=NOW, **options):
    return snapshot_people(JobRun(None, now, **options), paths, Report({"taken": 1}))


def restore(paths, name="latest", on_problem=print):
    return restore_people(paths, name, NOW + DAY, on_problem)


def test_installation_without_people_takes_no_people_snapshot(paths, folder):
    assert run(paths) == Report({"taken": 1})
    with pytest.raises(NotFound):
        take_people_snapshot(paths, NOW)
    assert not folder.exists()
    assert not paths.home.exists()


def test_only_changed_people_data_is_copied_with_private_modes(paths, folder):
    add(paths, "ada")
    assert run(paths).counts == {"taken": 1, "people": 1}
    with opened(paths) as people:
        people.record_use("ada-t", LATER)
        people.add_accesses([AccessEntry(LATER, "r1", "ada", "ada-t", "red", "GET /v1/memories", 200, ("m1",), 1)])
    assert run(paths, NOW + DAY).counts == {"taken": 1}
    with opened(paths) as people:
        people.revoke(["ada-t"], LATER)
    assert run(paths, NOW + 2 * DAY).counts == {"taken": 1, "people": 1}
    assert [one.at for one in backup.snapshots(folder)] == [NOW + 2 * DAY, NOW]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {entry.stat().st_mode & 0o077 for entry in folder.iterdir()} == {0}
    assert {entry.suffix for entry in folder.iterdir()} == {"", ".sqlite"}
    # What people asked is kept for a while, copies for longer.
    assert [entry.name for entry in folder.iterdir() if b"GET /v1" in entry.read_bytes()] == []


def test_as_many_are_kept_as_of_any_store(paths, folder):
    for day in range(40):
        add(paths, f"p{day}")
        run(paths, NOW + day * DAY)
    kept = backup.snapshots(folder)
    assert [(NOW + 39 * DAY - one.at).days for one in kept[:7]] == list(range(7))
    assert len(kept) <= 11


def test_asked_to_stop_it_leaves_nothing_and_comes_again(paths, folder):
    add(paths, "ada")
    assert run(paths, pausing=lambda: True).more
    assert backup.snapshots(folder) == []
    assert run(paths).counts["people"] == 1
    assert {entry.name for entry in folder.iterdir()} == {".lock", backup.snapshots(folder)[0].file.name}


def test_people_snapshot_is_consistent_during_writes(paths, folder):
    add(paths, "ada")
    stopped, written = threading.Event(), threading.Semaphore(0)

    def write():
        home, number = HomeFile(paths.home), 0
        while not stopped.is_set():
            number += 1
            with home.write() as db:
                db.execute(
                    "INSERT INTO person (id, name, is_admin, added_at) VALUES (?, 'P', 0, ?)", (f"p{number}", AT)
                )
                db.execute(
                    "INSERT INTO token (id, person, device, hash, created_at) VALUES (?1, ?2, 'd', ?1, ?3)",
                    (f"t{number}", f"p{number}", AT),
                )
            written.release()
        home.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(5):
            while written.acquire(blocking=False):
                pass
            # The second of these writes began after the last copy.
            for _ in range(2):
                assert written.acquire(timeout=20)
            run(paths, NOW + number * DAY)
    finally:
        stopped.set()
        thread.join()
    copies = backup.snapshots(folder)
    assert len(copies) == 5
    for one in copies:
        with contextlib.closing(driver.connect(one.file)) as db:
            backup.verify(db, backup.row_counts(db))
            [(people, tokens)] = db.execute("SELECT (SELECT count(*) FROM person), (SELECT count(*) FROM token)")
            assert people == tokens > 1


def test_a_file_that_was_lost_is_put_back(paths):
    add(paths, "ada")
    run(paths)
    backup.remove(paths.home)
    problems = []
    restored, aside = restore(paths, on_problem=problems.append)
    assert (restored.at, aside) == (NOW, None)
    assert opens(paths, "ada")
    assert paths.home.stat().st_mode & 0o777 == 0o600
    assert "may be valid again" in problems[0]


def test_replaced_people_data_is_kept_and_can_be_restored(paths, folder):
    add(paths, "ada")
    run(paths)
    add(paths, "bob")
    _, aside = restore(paths)
    assert opens(paths, "ada")
    assert not opens(paths, "bob")
    [kept] = [one for one in backup.snapshots(folder) if one.taken is Taken.BEFORE_RESTORE]
    assert kept.name == aside
    restore(paths, aside)
    assert opens(paths, "bob")
    with pytest.raises(NotFound):
        restore(paths, "20200101T000000000Z")


def test_a_revoked_token_and_a_removed_person_stay_so(paths):
    for name in ("ada", "bob", "cy"):
        add(paths, name)
    with opened(paths) as people:
        people.set_email("bob", "bob@example.org")
    run(paths)
    with opened(paths) as people:
        people.revoke(["ada-t"], LATER)
        people.remove("bob", LATER)
        people.sign_out("cy", LATER)
    problems = []
    restore(paths, on_problem=problems.append)
    assert problems == []
    assert [opens(paths, name) for name in ("ada", "bob", "cy")] == [False, False, True]
    with opened(paths) as people:
        assert [one.id for one in people.list_people()] == ["ada", "cy"]
        assert people.find_by_email("bob@example.org") is None
        assert people.find_signed_in("cy", AT) is None
        assert [who for who, _, _ in people.list_grants()] == ["ada", "cy"]
        assert people.list_ids() == {"ada", "bob", "cy"}


def test_revoked_token_is_not_revived_by_restoring_snapshots(paths, folder):
    add(paths, "ada")
    run(paths)
    add(paths, "bob")
    run(paths, NOW + DAY)
    newer, older = (one.name for one in backup.snapshots(folder))
    with opened(paths) as people:
        people.revoke(["bob-t"], LATER)
    restore(paths, older)
    assert not opens(paths, "bob")
    restore(paths, newer)
    assert opens(paths, "ada")
    assert not opens(paths, "bob")


def test_access_log_survives_a_restore(paths, folder):
    add(paths, "ada")
    run(paths)
    with opened(paths) as people:
        people.add_accesses([AccessEntry(LATER, f"r{n}", "ada", "ada-t", "red", "GET", 200) for n in range(3)])
        before = people.list_accesses(AccessQuery(), 10, None)
    _, aside = restore(paths)
    with opened(paths) as people:
        assert people.list_accesses(AccessQuery(), 10, None) == before
    with contextlib.closing(driver.connect(folder / f"{aside}.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM access").fetchone() == (0,)


def test_damaged_people_file_is_kept_and_lost_revocations_are_reported(paths, folder):
    add(paths, "ada")
    run(paths)
    damaged = b"\x00" * 4096
    backup.remove(paths.home)
    paths.home.write_bytes(damaged)
    problems = []
    _, aside = restore(paths, on_problem=problems.append)
    assert opens(paths, "ada")
    assert (folder / f"{aside}.sqlite").read_bytes() == damaged
    assert "cannot be read" in problems[0]


@pytest.mark.parametrize("place", ["_write_copy", "_replace_people", "people.carry_revocations"])
def test_interrupted_restore_changes_no_person(paths, monkeypatch, place):
    add(paths, "ada")
    run(paths)
    add(paths, "bob")

    def crash(*_):
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(f"pipeline.features.snapshots.people_job.{place}", crash)
        with pytest.raises(ZeroDivisionError):
            restore(paths)
    assert opens(paths, "bob")
    restore(paths)
    assert opens(paths, "ada")
    assert not opens(paths, "bob")


def test_a_restore_changes_no_other_table(paths):
    add(paths, "ada")
    run(paths)
    with contextlib.closing(HomeFile(paths.home)) as home:
        journal = Operations(home, str)
        journal.record_error("web", "boom")
        restore(paths)
        assert [error.message for error in journal.errors(workspace=None, limit=5)] == ["boom"]


def test_people_snapshots_of_an_encrypted_store_are_encrypted(paths, folder, key_file):
    add(paths, "ada")
    run(paths)
    choose_key(paths, key_file)
    assert encrypt_home(paths).files == {"home": 2}
    add(paths, "bob")
    with opened(paths) as people:
        people.revoke(["ada-t"], LATER)
    run(paths, NOW + DAY)
    files = [paths.home, *(one.file for one in backup.snapshots(folder))]
    assert len(files) == 3
    assert [file for file in files if driver.is_plain(file) or b"hash of" in file.read_bytes()] == []
    older = backup.snapshots(folder)[-1].name
    restore(paths, older)
    assert not driver.is_plain(paths.home)
    assert not opens(paths, "ada")
    decrypt_home(paths)
    assert all(driver.is_plain(file) for file in files)


def test_the_nightly_job_of_a_workspace_copies_them(tmp_path, container, client):
    home = container.settings
    client.write("The port is 8123")
    add(home.paths, "ada")
    with contextlib.closing(open_worker(home)) as worker:
        assert run_job(worker, "default", "snapshot").report.counts["people"] == 1
        assert "people" not in run_job(worker, "default", "snapshot").report.counts
    assert len(backup.snapshots(home.paths.snapshots)) == 1
