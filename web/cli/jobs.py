"""Commands for maintenance jobs and the work queue."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from pipeline.enums import Stage
from pipeline.times import format_duration
from web.cli.command import Command, Group, pass_state
from web.cli.local_store import refuse_read_only
from web.cli.render import Column, format_minute, minute_of, plain, print_table, table
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
    columns: dict[str, Column] = {
        "job": "name",
        "schedule": "schedule",
        "last run": lambda job: job["last_run"] and format_minute(job["last_run"]["started_at"]),
        "outcome": lambda job: job["last_run"] and _format_outcome(job["last_run"]),
        "next run": minute_of("next_run_at"),
    }
    state.show_table(page, columns, empty=NO_JOBS)


def _format_outcome(run: dict[str, Any]) -> str:
    if run["ok"] is None:
        return f"running, {run['done']} of {run['total']}"
    counts = ", ".join(f"{name} {count}" for name, count in run["counts"].items())
    return counts or "ok" if run["ok"] else f"failed: {run['error']}"


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
    from pipeline.jobs.registry import BY_NAME

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
        _list_known(state)
    elif background:
        _run_in_background(state, names)
    else:
        _run_here(state, names, every_workspace=every_workspace)


sleep = run


@click.command(cls=Command)
@click.pass_context
def consolidate(context: click.Context) -> None:
    """Merge related episodes into one memory: an alias of `reverie jobs run consolidate`."""
    context.invoke(run, names=("consolidate",))


def _list_known(state: State) -> None:
    from pipeline.jobs.registry import JOBS

    items = [{"name": job.name, "schedule": str(job.schedule), "summary": job.summary} for job in JOBS]
    columns = {"job": "name", "schedule": "schedule", "description": "summary"}
    state.show(items, lambda: print_table(items, columns))


def _run_in_background(state: State, names: tuple[str, ...]) -> None:
    with state.client() as client:
        runs = [{"job": name} | client.request("POST", ("jobs", name)) for name in names]
    lines = [f"started {run['job']}, run {run['run_id']}; `reverie jobs` shows its progress" for run in runs]
    state.show(runs, "\n".join(lines))


def _run_here(state: State, names: tuple[str, ...], *, every_workspace: bool) -> None:

    workspace_ids = [state.workspace]
    if every_workspace:
        from pipeline.services.workspace_listing import list_workspaces

        workspace_ids = list_workspaces(state.settings)
    is_default = workspace_ids == [state.workspace]
    results = run_jobs(state.settings, names, workspace_ids, is_default=is_default, quiet=state.json)
    if state.json:
        state.print_json(results)
    if any(result["error"] for result in results):
        sys.exit(1)


@jobs.group("queue", invoke_without_command=True)
@click.pass_context
def queue(context: click.Context) -> None:
    """Show pending and failed work. Without a command, show the counts by stage."""
    if context.invoked_subcommand is None:
        _show_queue(context.ensure_object(State))


def _show_queue(state: State) -> None:
    answer = state.ask_about_content(lambda client: client.queue(), NO_WORK)
    if state.json:
        state.print_json(answer)
        return
    rows = [[stage, count, answer["dead"].get(stage, 0)] for stage, count in answer["pending"].items()]
    table(["stage", "pending", "failed"], rows, right=["pending", "failed"], empty=NO_MEMORIES)
    oldest_s = answer["oldest_pending_s"]
    if oldest_s is not None:
        click.echo(f"oldest pending item: {format_duration(oldest_s)}")
    click.echo(f"worker processes: {len(answer['workers'])}")
    if any(answer["dead"].values()):
        click.echo("`reverie jobs queue retry` tries the failed items again")


@queue.command("retry")
@click.option(
    "--stage", type=click.Choice([stage.value for stage in Stage]), help="Only retry items that failed in this stage."
)
@pass_state
def retry(state: State, stage: str | None) -> None:
    """Retry work that failed permanently."""
    answer = state.ask(
        lambda client: client.request("POST", "/v1/queue/retry", {} if stage is None else {"stage": stage})
    )
    state.show(answer, f"{answer['retried']} queued again")
