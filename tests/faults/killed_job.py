"""Run one job, in a process that kills itself in the middle."""

import os
import signal
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from config.settings import load_settings
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.fakes.in_process import open_worker, run_job


def run(home: Path, name: str, fatal: int = 0) -> int:
    """Run a job until nothing is left to do, and return how many transactions it committed.

    Right after the `fatal`-th this process kills itself with SIGKILL, so that nothing gets to clean up.
    """
    commits = 0
    write = SqliteDatabase.write

    @contextmanager
    def counted(self):
        nonlocal commits
        with write(self) as db:
            yield db
        commits += 1
        if commits == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    with (
        closing(open_worker(load_settings({"REVERIE_HOME": str(home)}))) as worker,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(SqliteDatabase, "write", counted)
        for _ in range(100):
            outcome = run_job(worker, "default", name)
            assert outcome is not None, "somebody else runs it"
            assert outcome.error is None, outcome.error
            if not outcome.report.more:
                break
    return commits
