"""Commands for maintenance jobs and the work queue."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from pipeline.kernel.enums import Stage
from pipeline.kernel.times import format_duration
from web.cli import options
from web.cli.command import Command, Group, pass_state
from web.cli.local_store import refuse_read_only
from web.cli.render import Fields, plain, print_table, show_progress, table
from web.cli.state import HOW_TO_FILL, State, empty_page

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
    from pipeline.features.maintenance import usecases as maintenance

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


def _run_and_print(worker: "WorkerContainer", workspace_id: str, name: str, *, quiet: bool) -> dict[str, Any]:
    started = time.monotonic()
    with show_progress(name, quiet=quiet or not sys.stderr.isatty()) as progress:
        result = run_job(worker, workspace_id, name, progress)
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


NO_MEMORIES = f"No work is pending, because no memory is stored here yet. {HOW_TO_FILL}"
NO_JOBS = f"No job has run, because no memory is stored here yet. {HOW_TO_FILL}"
NO_WORK: dict[str, Any] = {"pending": {}, "dead": {}, "oldest_pending_s": None, "workers": []}
# Access counts are buffered in the web server, which writes them itself.
RUNS_IN_WEB_SERVER = "touches"


@click.group(cls=Group, bare_command="list")
def jobs() -> None:
    """List and run maintenance jobs, and show the work queue. Without a command, list the jobs."""


@jobs.command("list")
@pass_state
def list_jobs(state: State) -> None:
    """List the jobs with schedule, last run and next run."""
    page = state.ask_about_content(lambda client: client.request("GET", "/v1/jobs"), empty_page())
    state.show_page(page, JOB, NO_JOBS)


def _format_outcome(job: dict[str, Any]) -> str | None:
    run = job["last_run"]
    if run is None or run["ok"] is None:
        return run and f"running, {run['done']} of {run['total']}"
    counts = ", ".join(f"{name} {count}" for name, count in run["counts"].items())
    return counts or "ok" if run["ok"] else f"failed: {run['error']}"


JOB: Fields = {
    "job": "name",
    "schedule": "schedule",
    "last run": "last_run.started_at",
    "outcome": _format_outcome,
    "next run": "next_run_at",
}


@jobs.command("run")
@click.argument("names", nargs=-1, metavar="[JOB]...")
@click.option("--all", "every_job", is_flag=True, help="Run every job, one after the other.")
@click.option("--every-workspace", is_flag=True, help="Run the jobs in every workspace.")
@click.option(
    "--background", is_flag=True, help="Queue the jobs for the workers of the running server and return at once."
)
@pass_state
def run(state: State, names: tuple[str, ...], *, every_job: bool, every_workspace: bool, background: bool) -> None:
    """Run the maintenance jobs JOB now and wait for them. Without a name, list the jobs.

    `reverie sleep` is an alias, for example for cron: `reverie sleep --all --every-workspace`. The exit code is 1 if a
    job fails.
    """
    from pipeline.features.maintenance.registry import BY_NAME, JOBS

    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise click.UsageError(f'There is no job "{plain(unknown[0])}". The jobs are {", ".join(BY_NAME)}.')
    if every_job:
        names = tuple(name for name in BY_NAME if name != RUNS_IN_WEB_SERVER)
    if not names and (every_workspace or background):
        raise click.UsageError("Name the jobs to run, or use --all.")
    if background and every_workspace:
        raise click.UsageError("--background and --every-workspace exclude each other.")
    if not names:
        items = [{"name": job.name, "schedule": str(job.schedule), "summary": job.summary} for job in JOBS]
        columns = {"job": "name", "schedule": "schedule", "description": "summary"}
        state.show(items, lambda _: print_table(items, columns))
    elif background:
        with state.client() as client:
            runs = [{"job": name} | client.request("POST", ("jobs", name)) for name in names]
        lines = [f"started {run['job']}, run {run['run_id']}; `reverie jobs` shows its progress" for run in runs]
        state.show(runs, "\n".join(lines))
    else:
        _run_here(state, names, every_workspace=every_workspace)


sleep = run


@click.command(cls=Command)
@click.pass_context
def consolidate(context: click.Context) -> None:
    """Merge related episodes into one memory: an alias of `reverie jobs run consolidate`."""
    context.invoke(run, names=("consolidate",))


def _run_here(state: State, names: tuple[str, ...], *, every_workspace: bool) -> None:
    from pipeline.features.workspaces.config import list_workspaces

    workspace_ids = list_workspaces(state.settings) if every_workspace else [state.workspace]
    is_default = workspace_ids == [state.workspace]
    results = []
    with open_worker(state.settings) as worker:
        for workspace_id in workspace_ids:
            if not (is_default or state.json):
                click.echo(f"{workspace_id}:")
            worker.databases.get(workspace_id)
            for name in names:
                record = _run_and_print(worker, workspace_id, name, quiet=state.json)
                results.append(record if is_default else {"workspace": workspace_id} | record)
    state.show(results, lambda _: None)
    if any(result["error"] for result in results):
        sys.exit(1)


@jobs.group("queue", invoke_without_command=True)
@click.pass_context
def queue(context: click.Context) -> None:
    """Show pending and failed work. Without a command, show the counts by stage."""
    if context.invoked_subcommand is None:
        state = context.ensure_object(State)
        state.show(state.ask_about_content(lambda client: client.queue(), NO_WORK), _print_queue)


def _print_queue(queue: dict[str, Any]) -> None:
    rows = [[stage, count, queue["dead"].get(stage, 0)] for stage, count in queue["pending"].items()]
    table(["stage", "pending", "failed"], rows, empty=NO_MEMORIES)
    if queue["oldest_pending_s"] is not None:
        click.echo(f"oldest pending item: {format_duration(queue['oldest_pending_s'])}")
    click.echo(f"worker processes: {len(queue['workers'])}")
    if any(queue["dead"].values()):
        click.echo("`reverie jobs queue retry` tries the failed items again")


@queue.command("retry")
@click.option(
    "--stage", type=click.Choice([stage.value for stage in Stage]), help="Only retry items that failed in this stage."
)
@pass_state
def retry(state: State, stage: str | None) -> None:
    """Retry work that failed permanently."""
    body = options.select_given_options({"stage": stage})
    state.act("POST", "/v1/queue/retry", body, says="{retried} queued again")
