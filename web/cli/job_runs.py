"""Run maintenance jobs in this process and report what they did."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from web.cli.local_store import refuse_read_only
from web.cli.render import plain

if TYPE_CHECKING:
    from config.settings import Settings
    from pipeline.bootstrap.worker import WorkerContainer

# A job that reports more work is continued for at most this time.
LONGEST_JOB_S = 3600.0


@dataclass(slots=True)
class JobResult:
    """What a job did: its counts, its error, or that another process is running it."""

    counts: dict[str, int] = field(default_factory=dict)
    error: str | None = None
    is_running_elsewhere: bool = False

    def describe(self) -> str:
        """Return the result as text for a terminal."""
        if self.error:
            return plain(self.error)
        if self.is_running_elsewhere:
            return "already running in the background"
        return ", ".join(f"{key} {count}" for key, count in self.counts.items()) or "nothing to do"


@contextmanager
def open_worker(settings: "Settings") -> Iterator["WorkerContainer"]:
    """Open what jobs need, and close it afterwards; raise ReadOnly in a read-only session."""
    refuse_read_only()
    from pipeline.bootstrap.worker import WorkerContainer

    worker = WorkerContainer(settings)
    worker.encoders.background.waits = True
    try:
        yield worker
    finally:
        worker.close()


def run_job(
    worker: "WorkerContainer", workspace_id: str, name: str, progress: Callable[[int, int], None] | None = None
) -> JobResult:
    """Run one job to its end: repeat it while it reports more work."""
    from pipeline.services import maintenance

    deadline = time.monotonic() + LONGEST_JOB_S
    result = JobResult()
    has_more = True
    while has_more and result.error is None and time.monotonic() < deadline:
        run = maintenance.run_job(
            worker.context(workspace_id),
            name,
            worker.owner,
            lambda: time.monotonic() >= deadline,
            *([progress] if progress else []),
        )
        if run is None:
            result.is_running_elsewhere = True
            break
        for key, count in run.report.counts.items():
            result.counts[key] = result.counts.get(key, 0) + count
        result.error, has_more = run.error, run.report.more
    return result


def run_jobs(
    settings: "Settings", names: Sequence[str], workspace_ids: Sequence[str], *, is_default: bool, quiet: bool
) -> list[dict[str, Any]]:
    """Run jobs in workspaces and print a line per job; return the results.

    With `is_default`, the workspace is the one of the command, and the results do not name it.
    """
    results = []
    with open_worker(settings) as worker:
        for workspace_id in workspace_ids:
            if not (is_default or quiet):
                click.echo(f"{workspace_id}:")
            worker.databases.get(workspace_id)
            for name in names:
                record = _run_and_print(worker, workspace_id, name, quiet=quiet)
                results.append(record if is_default else {"workspace": workspace_id} | record)
    return results


def _run_and_print(worker: "WorkerContainer", workspace_id: str, name: str, *, quiet: bool) -> dict[str, Any]:
    started = time.monotonic()
    is_hidden = quiet or not sys.stderr.isatty()
    with click.progressbar(length=1, label=f"{name:12}", file=sys.stderr, hidden=is_hidden) as bar:

        def set_progress(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos)

        result = run_job(worker, workspace_id, name, set_progress)
        bar.update(bar.length or 1)
    took_s = round(time.monotonic() - started, 1)
    if not quiet:
        click.echo(f"{name:12} {'failed' if result.error else 'ok':6} {took_s:>6.1f} s  {result.describe()}")
    return {
        "job": name,
        "ok": result.error is None,
        "counts": result.counts,
        "error": result.error,
        "took_s": took_s,
    }
