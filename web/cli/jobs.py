"""Jobs on the command line: when they run, running them here and now, and background errors."""

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from web.cli import options
from web.cli.command import Command, Group, State, pass_state
from web.cli.render import format_minute, plain, print_if_none, table

if TYPE_CHECKING:
    from pipeline.bootstrap.worker import WorkerContainer

# A person waits for whole jobs: one that reports more work is continued until this long.
LONGEST_JOB_S = 3600.0
# Access counts are in the memory of a running web server, which writes them itself.
IN_THE_FRONT = "touches"


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def jobs(context: click.Context) -> None:
    """Show the jobs, and have one run. Without a command, list them."""
    if context.invoked_subcommand is None:
        context.invoke(list_jobs)


@jobs.command("list")
@pass_state
def list_jobs(state: State) -> None:
    """List the jobs with schedule, last run and next."""
    with state.client() as client:
        found = client.jobs()
    if state.json:
        state.print_json(found)
        return
    rows = [
        [one["name"], one["schedule"], *_last(one["last_run"]), format_minute(one["next_run_at"])]
        for one in found["items"]
    ]
    table(["job", "schedule", "last run", "outcome", "next run"], rows)


def _last(run: dict[str, Any] | None) -> tuple[str | None, str | None]:
    if run is None:
        return None, None
    if run["ok"] is None:
        return format_minute(run["started_at"]), f"runs, {run['done']} of {run['total']}"
    counts = ", ".join(f"{name} {count}" for name, count in run["counts"].items())
    return format_minute(run["started_at"]), counts or "ok" if run["ok"] else f"failed: {run['error']}"


@jobs.command("run")
@click.argument("name")
@pass_state
def run(state: State, name: str) -> None:
    """Ask the workers to run the job NAME now; `reverie sleep NAME` runs it here and waits."""
    with state.client() as client:
        found = client.run_job(name)
    if state.json:
        state.print_json(found)
    else:
        click.echo(f"asked for {plain(name)}, run {found['run_id']}; `reverie jobs` tells how it fares")


@click.command(cls=Command)
@options.limit(20)
@pass_state
def errors(state: State, limit: int) -> None:
    """List background errors, newest first."""
    with state.client() as client:
        found = client.list_items("/v1/errors", limit)
    if state.json:
        state.print_json(found)
        return
    print_if_none(found["items"])
    for error in found["items"]:
        workspace = f" ({plain(error['workspace'])})" if error["workspace"] else ""
        click.echo(f"{error['at'][:19]}  {plain(error['component'])}{workspace}: {plain(error['message'])}")


@click.command(cls=Command)
@click.argument("jobs", nargs=-1, metavar="[JOB]…")
@click.option("--all", "every_job", is_flag=True, help="Run every job, one after the other.")
@click.option("--every-workspace", is_flag=True, help="Run them over every workspace of the home.")
@pass_state
def sleep(state: State, jobs: tuple[str, ...], *, every_job: bool, every_workspace: bool) -> None:
    """Run jobs now, in this process; without a name, list them."""
    from pipeline.services.maintenance import BY_NAME

    unknown = [name for name in jobs if name not in BY_NAME]
    if unknown:
        raise click.UsageError(f"no such job: {plain(unknown[0])}; there are {', '.join(BY_NAME)}")
    if every_job:
        jobs = tuple(name for name in BY_NAME if name != IN_THE_FRONT)
    if every_workspace and not jobs:
        raise click.UsageError("--every-workspace needs the names of jobs, or --all")
    if jobs:
        _run_here(state, jobs, state.settings.paths.workspace_ids() if every_workspace else [state.workspace])
    else:
        _list_known(state)


@click.command(cls=Command)
@pass_state
def consolidate(state: State) -> None:
    """Make one memory of many related episodes: the job `consolidate`, run now."""
    _run_here(state, ("consolidate",), [state.workspace])


def _list_known(state: State) -> None:
    from pipeline.services.maintenance import JOBS

    if state.json:
        state.print_json([{"name": job.name, "schedule": str(job.schedule), "summary": job.summary} for job in JOBS])
        return
    table(["job", "schedule", "what it does"], [[job.name, str(job.schedule), job.summary] for job in JOBS])


def _run_here(state: State, jobs: tuple[str, ...], workspaces: list[str]) -> None:
    from pipeline.bootstrap.worker import WorkerContainer

    several = workspaces != [state.workspace]
    worker = WorkerContainer(state.settings)
    results = []
    try:
        for workspace_id in workspaces:
            if several and not state.json:
                click.echo(f"{workspace_id}:")
            worker.databases.get(workspace_id)
            for name in jobs:
                result = _finish(worker, state, workspace_id, name)
                results.append({"workspace": workspace_id} | result if several else result)
    finally:
        worker.close()
    if state.json:
        state.print_json(results)
    if any(result["error"] for result in results):
        sys.exit(1)


def _finish(worker: "WorkerContainer", state: State, workspace_id: str, name: str) -> dict[str, Any]:
    """Run one job to its end, showing how far it has come."""
    from pipeline.services.maintenance import run_job

    end = time.monotonic() + LONGEST_JOB_S
    began = time.monotonic()
    counts: dict[str, int] = {}
    error = None
    with click.progressbar(
        length=1, label=f"{name:12}", file=sys.stderr, hidden=state.json or not sys.stderr.isatty()
    ) as bar:

        def progress(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos)

        more = True
        while more and error is None and time.monotonic() < end:
            result = run_job(
                worker.context(workspace_id), name, worker.owner, lambda: time.monotonic() >= end, progress
            )
            if result is None:
                error = "somebody else runs it now"
                break
            for key, number in result.report.counts.items():
                counts[key] = counts.get(key, 0) + number
            error, more = result.error, result.report.more
        bar.update(bar.length or 1)
    took_s = round(time.monotonic() - began, 1)
    if not state.json:
        found = ", ".join(f"{key} {number}" for key, number in counts.items()) or "nothing to do"
        click.echo(f"{name:12} {'failed' if error else 'ok':6} {took_s:>6.1f} s  {plain(error) if error else found}")
    return {"job": name, "ok": error is None, "counts": counts, "error": error, "took_s": took_s}
