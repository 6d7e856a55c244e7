"""The verify job restores the newest snapshot into a scratch file and compares every memory with its hash."""

import contextlib
import sqlite3
from datetime import UTC, datetime

import pytest

from pipeline.features.snapshots.job import take_snapshot
from tests.fakes.in_process import run_job

pytestmark = pytest.mark.files


@pytest.fixture
def snapshots(client, worker):
    client.write("The gateway listens on port 8123")
    client.write("The ledger listens on port 8124")
    paths = worker.settings.paths.workspace("default")
    take_snapshot(paths, datetime.now(UTC))
    return paths.snapshots


def list_errors(worker):
    return [error.message for error in worker.operations.errors(workspace="default", limit=10)]


def test_good_snapshot_is_verified_and_kept_unchanged(worker, snapshots):
    before = {file.name: file.read_bytes() for file in snapshots.glob("*.sqlite")}
    assert run_job(worker, "default", "verify").report.counts == {"verified": 1, "broken": 0}
    assert {file.name: file.read_bytes() for file in snapshots.glob("*.sqlite")} == before
    assert list_errors(worker) == []


def test_changed_memory_in_snapshot_is_reported(worker, snapshots):
    [file] = snapshots.glob("*.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE memory SET content = 'The gateway listens on port 1' WHERE seq = 1")
        db.execute("DELETE FROM memory WHERE seq = 2")
    assert run_job(worker, "default", "verify").report.counts == {"verified": 0, "broken": 1}
    assert "cannot be restored: 2 memories" in list_errors(worker)[0]


def test_damaged_snapshot_is_reported(worker, snapshots):
    [file] = snapshots.glob("*.sqlite")
    file.write_bytes(file.read_bytes()[:20_000])
    assert run_job(worker, "default", "verify").report.counts == {"verified": 0, "broken": 1}
    assert "cannot be restored" in list_errors(worker)[0]


def test_workspace_without_snapshot_is_not_verified(client, worker):
    client.write("The gateway listens on port 8123")
    assert run_job(worker, "default", "verify").report.counts == {}
