"""Run one job in this process, and be killed in the middle: python -m tests.faults.killed_job JOB [COMMIT].

The process kills itself with SIGKILL right after its COMMIT-th committed transaction, so that nothing gets to clean up.
It prints how many transactions were committed.
"""

import os
import signal
import sys
from contextlib import contextmanager

from config.settings import load_settings
from pipeline.store.sqlite import SqliteDatabase
from tests.fakes.in_process import open_worker, run_job


def main(name: str, fatal: int) -> None:
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

    worker = open_worker(load_settings())
    SqliteDatabase.write = counted
    for _ in range(100):
        outcome = run_job(worker, "default", name)
        assert outcome is not None, "somebody else runs it"
        assert outcome.error is None, outcome.error
        if not outcome.report.more:
            break
    print(commits)
    worker.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
