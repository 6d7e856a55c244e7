"""Kill a job in the middle of its work: run again, it comes to the end that an undisturbed run comes to."""

import contextlib
import json
import multiprocessing
import shutil
import signal
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from config.settings import load_settings
from pipeline.features.maintenance.registry import JOBS
from pipeline.kernel.records import Draft, Kind
from pipeline.kernel.times import utc_text
from tests.fakes.canal import load_canal
from tests.fakes.in_process import accept_batch, digest_all, open_worker
from tests.faults import killed_job

ROOT = Path(__file__).parents[2]
# What differs between two undisturbed runs as well: when it was, and names that are drawn by lot.
MOMENTS = frozenset(
    {"at", "updated_at", "archived_at", "created_at", "started_at", "ended_at", "asked_at", "settled_at"}
)
DRAWN = frozenset({"id", "hlc", "run_id", "memory_id", "other_id"})
NOT_COMPARED = frozenset(
    {"job_run", "job_lock", "change", "sqlite_sequence", "_sqlite_migrations", "meta", "admission"}
)
JOBS = [a.name for a in JOBS if a.name not in ("touches", "sweep", "vectors", "segment", "snapshot")]


@pytest.fixture(scope="module")
def digested_home(tmp_path_factory):
    """A home whose workspace holds the sample history a year ago, digested."""
    home = tmp_path_factory.mktemp("job") / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('embedding_model = "hash"\nbackoff_s = 0.01\n')
    worker = open_worker(load_settings({"REVERIE_HOME": str(home)}))
    drafts = [
        Draft(
            content=line["content"],
            kind=Kind(line.get("kind", "fact")),
            details=line.get("details", {}),
            session_id=line.get("session_id"),
            occurred_at=utc_text(datetime.fromisoformat(line["occurred_at"]) - timedelta(days=200)),
        )
        for line in load_canal()
    ]
    accept_batch(worker.databases.get("default", create=True), drafts)
    digest_all(worker)
    with worker.databases.get("default").write() as db:
        old = utc_text(datetime.now(UTC) - timedelta(days=300))
        db.execute("UPDATE memory SET created_at = ?, updated_at = ?", (old, old))
    worker.databases.get("default").complete_file()
    worker.close()
    return home


@pytest.fixture(scope="module")
def processes():
    """Processes that have imported everything when they start."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([killed_job.__name__])
    return context


def state(home):
    """Return every row of every table that a job may change, without moments and names drawn by lot."""
    file = home / "workspaces" / "default" / "events.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as db:
        db.row_factory = sqlite3.Row
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: sorted(
                json.dumps({k: v for k, v in row.items() if k not in MOMENTS | DRAWN}, default=str, sort_keys=True)
                for row in map(dict, db.execute(f"SELECT * FROM {name}"))
            )
            for name in names
            if name not in NOT_COMPARED
        }


@pytest.mark.parametrize("name", JOBS)
def test_a_job_that_is_killed_comes_to_the_same_end(digested_home, processes, tmp_path, name):
    undisturbed = shutil.copytree(digested_home, tmp_path / "undisturbed")
    commits = killed_job.run(undisturbed, name)
    for fatal in sorted({1, commits // 2, commits - 1} - {0}):
        killed = shutil.copytree(digested_home, tmp_path / f"killed-{fatal}")
        process = processes.Process(target=killed_job.run, args=(killed, name, fatal))
        process.start()
        process.join(120)
        assert process.exitcode == -signal.SIGKILL
        killed_job.run(killed, name)
        assert state(killed) == state(undisturbed), f"killed after commit {fatal} of {commits}"
