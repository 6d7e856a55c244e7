"""`reverie doctor --deep` reads every byte and names the file that is damaged."""

import contextlib
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from pipeline.features.diagnostics.deep_check import check_deeply
from pipeline.features.snapshots.job import take_snapshot
from pipeline.index.segment import WORDS, list_segments
from pipeline.kernel.times import parse
from tests.fakes.in_process import run_job

pytestmark = pytest.mark.files


@pytest.fixture
def paths(client, worker, digested):
    """A workspace with a segment, vectors and a snapshot."""
    for number in range(4):
        client.write(f"Service {number} listens on port {8000 + number}")
    digested()
    run_job(worker, "default", "segment")
    run_job(worker, "default", "vectors")
    paths = worker.settings.paths.workspace("default")
    take_snapshot(paths, parse("2026-03-01T10:00:00.000Z"))
    return paths


@pytest.fixture
def check(home, paths):
    """Return what is wrong, by part, and the reported progress."""

    def check():
        steps = []
        results = list(check_deeply(home, "default", lambda *step: steps.append(step)))
        assert [done for done, _, _ in steps] == list(range(len(results)))
        return {result.check.removeprefix("default: "): result.says for result in results if result.state != "ok"}

    return check


def test_healthy_workspace_has_no_problem(check):
    assert check() == {}


def test_changed_row_is_found_in_store_and_snapshot(check, paths):
    snapshot = next(paths.snapshots.glob("*.sqlite"))
    for file in (paths.events, snapshot):
        with contextlib.closing(sqlite3.connect(file)) as db, db:
            db.execute("UPDATE memory SET pinned = 1 WHERE seq = 2")
    problems = check()
    assert set(problems) == {"store bytes", f"snapshot {snapshot.stem}"}
    assert all("does not match its hash" in says for says in problems.values())


def test_damaged_page_of_snapshot_is_found(check, paths):
    snapshot = next(paths.snapshots.glob("*.sqlite"))
    content = bytearray(snapshot.read_bytes())
    content[8192 : 8192 + 4096] = bytes(4096)
    snapshot.write_bytes(content)
    assert set(check()) == {f"snapshot {snapshot.stem}"}


def test_wrong_posting_is_found(check, paths):
    [name] = list_segments(paths.lexical)
    file = paths.lexical / name / WORDS["indices_name"]
    places = np.load(file)
    np.save(file, places[::-1].copy())
    assert set(check()) == {"words"}


def test_codes_of_other_vectors_are_found(check, worker, paths):
    table = worker.vectors("default")
    rows = table.read_codes(None, 100)
    codes = rows.codes.copy()
    codes[1] += 1
    table._codes.replace(replace(rows, codes=codes))
    assert check() == {"vectors": "memory 2 has other codes than vectors"}


def test_missing_vectors_are_found(check, worker):
    worker.vectors("default").remove([3])
    assert check() == {"vectors": "memory 3 has no vector"}
