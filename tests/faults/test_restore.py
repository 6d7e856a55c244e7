"""A snapshot brings everything back, whatever was lost and wherever it was interrupted, except what was purged."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from pipeline.features.snapshots import job
from pipeline.features.snapshots.job import restore_snapshot, scrub_snapshots, snapshot, take_snapshot
from pipeline.kernel.errors import NotFound, StoreBusy, StoreDamaged
from pipeline.kernel.job_runs import JobRun
from pipeline.kernel.records import Draft
from pipeline.kernel.records.recall import Channel
from pipeline.kernel.store import backup
from pipeline.kernel.store.backup import Taken
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import PROFILE, accept_batch, digest_all, fast_settings, open_web, open_worker
from tests.fakes.migrations import next_version
from tests.support.stack import ROOT, Stack
from web.cli import cli
from web.http.app import create_app

NOW = datetime(2026, 3, 1, 3, tzinfo=UTC)
FIRST = ["Zebras graze at dawn", "Giraffes sleep standing", "Okapis hide in the forest"]


@pytest.fixture
def settings(tmp_path):
    return fast_settings(tmp_path / "home")


@pytest.fixture
def paths(settings):
    """A workspace that was digested, copied, and written to again."""
    with contextlib.closing(open_worker(settings)) as worker:
        database = worker.databases.get("default", create=True)
        accept_batch(database, [Draft(content) for content in FIRST])
        digest_all(worker)
        worker.context("default").rebuild_segment()
        paths = settings.paths.workspace("default")
        take_snapshot(paths, NOW)
        accept(database, Draft("Written after the copy"))
        digest_all(worker)
    return paths


def restore(paths, name="latest", problems=None):
    return restore_snapshot(paths, name, datetime.now(UTC), print if problems is None else problems.append)


def contents(file):
    with contextlib.closing(sqlite3.connect(file)) as db:
        return {row[0] for row in db.execute("SELECT content FROM memory")}


def traces(folder, text):
    return [file.name for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


def recall_all(settings):
    """Digest what waits, then answer by words and by meaning."""
    with contextlib.closing(open_worker(settings)) as worker, contextlib.closing(open_web(settings)) as container:
        digest_all(worker)
        for name in worker.context("default").list_needed_jobs():
            worker.context("default").rebuild_segment() if name == "segment" else None
        assert worker.context("default").repair_vectors() == 0
        client = CheckedClient(create_app(container), container.token)
        answers = {text: client.recall(text) for text in (*FIRST, "Written after the copy")}
    states = {(name, state["state"]) for one in answers.values() for name, state in one["channels"].items()}
    assert {state for name, state in states if name != Channel.GRAPH} == {"ok"}
    return {text for text, answer in answers.items() if answer["results"] and answer["results"][0]["content"] == text}


def test_everything_that_was_copied_is_there_and_found_again(settings, paths):
    restored = restore(paths)
    assert restored.memories == 3
    assert contents(paths.events) == set(FIRST)
    assert recall_all(settings) == set(FIRST)
    aside = next(one for one in backup.snapshots(paths.snapshots) if one.taken is Taken.BEFORE_RESTORE)
    assert aside.name == restored.aside
    assert contents(aside.file) == {*FIRST, "Written after the copy"}
    assert restore(paths, aside.name).memories == 4
    assert recall_all(settings) == {*FIRST, "Written after the copy"}


def test_a_row_number_that_is_given_out_again_brings_no_old_vector_back(settings, paths):
    restore(paths)
    with contextlib.closing(open_worker(settings)) as worker:
        accept(worker.databases.get("default"), Draft("Tapirs swim at night"))
        digest_all(worker)
        table = worker.vectors("default")
        again = worker.encoder("default").encode_query("Tapirs swim at night").reshape(-1)
        assert table.nearest(again, 1)[0] == (4, pytest.approx(1, abs=0.01))


@pytest.mark.parametrize("loss", ["gone", "zeroed", "cut"])
def test_a_lost_or_damaged_store_is_put_back_and_kept_as_it_is(settings, paths, loss):
    damaged = b"\x00" * 5000
    if loss == "gone":
        paths.events.unlink()
    elif loss == "zeroed":
        paths.events.write_bytes(damaged)
    else:
        damaged = paths.events.read_bytes()[:20_000]
        paths.events.write_bytes(damaged)
    restored = restore(paths)
    assert contents(paths.events) == set(FIRST)
    assert recall_all(settings) == set(FIRST)
    if loss == "gone":
        assert restored.aside is None
    else:
        assert (paths.snapshots / f"{restored.aside}.sqlite").read_bytes() == damaged
        with pytest.raises(StoreDamaged):
            restore(paths, restored.aside)
        assert contents(paths.events) == set(FIRST)


def test_restore_keeps_memories_that_are_only_in_the_write_ahead_log(paths, tmp_path):
    """A killed process leaves its last writes in the log alone."""
    with contextlib.closing(SqliteDatabase(paths.events, PROFILE, create=False)) as database:
        accept(database, Draft("Only in the log"))
        killed = tmp_path / "killed"
        shutil.copytree(paths.root, killed)
    shutil.rmtree(paths.root)
    killed.rename(paths.root)
    assert paths.events.with_name("events.sqlite-wal").stat().st_size > 0
    restored = restore(paths)
    assert contents(paths.events) == set(FIRST)
    assert "Only in the log" in contents(paths.snapshots / f"{restored.aside}.sqlite")


def test_it_is_refused_while_a_process_has_the_store_open(paths, monkeypatch):
    monkeypatch.setattr(backup, "BUSY_S", 0.02)
    with contextlib.closing(SqliteDatabase(paths.events, PROFILE, create=False)) as database:
        with pytest.raises(StoreBusy):
            restore(paths)
        accept(database, Draft("Still at work"))
    assert contents(paths.events) == {*FIRST, "Written after the copy", "Still at work"}


@pytest.mark.parametrize("place", ["settle", "copy", "publish", "put_aside", "replace_store_file", "count_memories"])
def test_interrupted_anywhere_the_store_is_the_old_or_the_new_one(paths, monkeypatch, place):
    true = getattr(backup, place)
    old, new = {*FIRST, "Written after the copy"}, set(FIRST)
    for allowed in range(20):
        left = [allowed]

        def crash(*arguments, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise ZeroDivisionError
            return true(*arguments)

        try:
            with monkeypatch.context() as patched:
                patched.setattr(backup, place, crash)
                restore(paths)
        except ZeroDivisionError:
            assert contents(paths.events) in (old, new)
            assert any(contents(one.file) == new for one in backup.snapshots(paths.snapshots))
            continue
        break
    assert allowed > 0
    assert contents(paths.events) == new
    assert any(contents(one.file) == old for one in backup.snapshots(paths.snapshots))


def test_a_purge_whose_work_still_waited_is_not_taken_back(paths):
    with contextlib.closing(SqliteDatabase(paths.events, PROFILE, create=False)) as database:
        with database.read() as db:
            [secret] = [row[0] for row in db.execute("SELECT id FROM memory WHERE content LIKE 'Okapis%'")]
        revise.purge(database, secret)
    assert restore(paths).memories == 2
    assert contents(paths.events) == set(FIRST[:2])
    assert traces(paths.root, "Okapis") == []


def test_a_snapshot_of_an_older_version_is_brought_up_to_date(paths):
    with next_version():
        assert restore(paths).memories == 3
        with contextlib.closing(SqliteDatabase(paths.events, PROFILE, create=False)) as database, database.read() as db:
            assert db.execute("SELECT count(*) FROM next_version").fetchone() == (0,)
    assert {entry.name for entry in paths.snapshots.iterdir() if entry.is_dir()} == set()


def test_an_unknown_name_changes_nothing(paths):
    before = paths.events.read_bytes()
    with pytest.raises(NotFound):
        restore(paths, "20200101T000000000Z")
    assert paths.events.read_bytes() == before


# Killed while it copies.

KILLED = """
import sys, threading
from datetime import UTC, datetime
from pathlib import Path
from pipeline.kernel.job_runs import JobRun
from pipeline.features.snapshots.job import snapshot
from pipeline.kernel.store import backup
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.fakes.in_process import PROFILE

file, place = Path(sys.argv[1]), sys.argv[2]

def hang(*_):
    print("here", flush=True)
    threading.Event().wait()

asked = iter([False, False, None])

def pausing():
    return hang() if place == "copy" and next(asked) is None else False

if place != "copy":
    setattr(backup, place, hang)
database = SqliteDatabase(file, PROFILE, create=False)
snapshot(JobRun(database, datetime(2026, 3, 2, tzinfo=UTC), pausing), file.parent / "snapshots")
"""


@pytest.mark.parametrize("place", ["copy", "verify", "publish"])
def test_snapshot_and_store_survive_a_kill_during_the_copy(paths, place):
    with contextlib.closing(SqliteDatabase(paths.events, PROFILE, create=False)) as database:
        accept_batch(database, [Draft(f"Filler {n} {'x' * 2000}") for n in range(1000)])
    before, [older] = contents(paths.events), backup.snapshots(paths.snapshots)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(paths.events), place], cwd=ROOT, stdout=subprocess.PIPE, env=os.environ
    )
    try:
        assert process.stdout.readline() == b"here\n"
        assert list(paths.snapshots.glob("partial-*"))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert contents(paths.events) == before
    assert backup.snapshots(paths.snapshots) == [older]
    assert contents(older.file) == set(FIRST)
    with contextlib.closing(SqliteDatabase(paths.events, PROFILE, create=False)) as database:
        assert snapshot(JobRun(database, datetime(2026, 3, 2, tzinfo=UTC)), paths.snapshots).counts["taken"] == 1
    assert not list(paths.snapshots.glob("partial-*"))
    newest = backup.snapshots(paths.snapshots)[0]
    assert contents(newest.file) == before


def test_a_copy_that_was_begun_before_a_purge_does_not_outlive_it(paths):
    """The purge waits for the copy that is being made, and then takes the memory out of it."""
    begun, inside, go_on = threading.Event(), threading.Event(), threading.Event()

    def pausing():
        # The first question comes before the copy.
        if begun.is_set():
            inside.set()
            go_on.wait(30)
        return False

    with contextlib.closing(SqliteDatabase(paths.events, PROFILE, create=False)) as database:
        secret = accept(database, Draft("The snollygoster signed."))
        copying = threading.Thread(target=snapshot, args=(JobRun(database, NOW, pausing), paths.snapshots))
        original = job.backup.copy
        try:
            job.backup.copy = lambda *arguments: begun.set() or original(*arguments)
            copying.start()
            assert inside.wait(30)
            revise.purge(database, secret.id)
            scrubbing = threading.Thread(target=scrub_snapshots, args=(database, paths.snapshots, print))
            scrubbing.start()
            assert list(paths.snapshots.glob("partial-*"))
        finally:
            job.backup.copy = original
            go_on.set()
        copying.join(30)
        scrubbing.join(30)
        database.complete_file()
    assert len(backup.snapshots(paths.snapshots)) == 1
    assert traces(paths.root, "snollygoster") == []


# The whole, with real processes.


def command(home, *arguments, code=0):
    result = CliRunner().invoke(
        cli, ["--json", *arguments], env={"REVERIE_HOME": str(home), "REVERIE_WORKSPACE": "default"}
    )
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_snapshot_commands_work_with_and_without_a_running_stack(tmp_path, models):
    with Stack(tmp_path / "home", models) as stack, contextlib.ExitStack() as open_clients:
        stack.start("web", "worker", "scheduler")
        client = open_clients.enter_context(contextlib.closing(stack.client()))
        kept = client.remember("The deploy of verdict-policy.ts moved from Redis to SQLite")
        secret = client.remember("Xylander was zubrowkating.")
        stack.wait_until_digested(client)
        taken = command(stack.home, "store", "snapshot", "take")
        assert taken["memories"] == 2
        assert traces(stack.workspace / "snapshots", "zubrowkating")
        assert client.call("DELETE", f"/v1/memories/{secret}?hard=true").body["purged"]
        later = client.remember("Written after the copy")
        stack.wait_until_digested(client)
        assert traces(stack.workspace, "zubrowkating") == []
        refused = command(stack.home, "store", "snapshot", "restore", "latest", code=1)
        assert "reverie down" in refused["error"]["message"]
        stack.stop()

        restored = command(stack.home, "store", "snapshot", "restore", "latest")
        assert (restored["restored"], restored["memories"]) == (taken["name"], 1)
        names = {item["name"]: item["memories"] for item in command(stack.home, "store", "snapshot", "list")["items"]}
        assert names == {taken["name"]: 1, restored["aside"]: 2}

        stack.start("web", "worker", "scheduler")
        client = open_clients.enter_context(contextlib.closing(stack.client()))
        stack.wait_until_digested(client)
        stack.wait_for_encoder()
        assert client.recall("where is the deploy")["results"][0]["id"] == kept
        assert client.call("GET", f"/v1/memories/{later}").status == 404
        assert client.call("GET", f"/v1/memories/{secret}").status == 404
