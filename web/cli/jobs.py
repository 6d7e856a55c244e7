"""What a workspace holds, what waits, its jobs, and what was done: stats, queue, rebuild, jobs, errors, journal."""

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from pipeline.enums import Stage
from pipeline.times import format_duration
from web.cli import options
from web.cli.command import Command, Group, State, pass_state
from web.cli.render import format_minute, format_size, plain, print_if_none, print_pairs, show_progress, table
from web.cli.status import describe_encoder

if TYPE_CHECKING:
    from pipeline.bootstrap.worker import WorkerContainer
    from web.client import Client

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
    found = state.ask(lambda client: client.jobs())
    rows = [
        [one["name"], one["schedule"], *_last(one["last_run"]), format_minute(one["next_run_at"])]
        for one in found["items"]
    ]
    state.show(found, lambda: table(["job", "schedule", "last run", "outcome", "next run"], rows))


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
    found = state.ask(lambda client: client.run_job(name))
    state.show(found, f"asked for {plain(name)}, run {found['run_id']}; `reverie jobs` tells how it fares")


@click.command(cls=Command)
@options.limit(20)
@pass_state
def errors(state: State, limit: int) -> None:
    """List background errors, newest first."""
    found = state.ask(lambda client: client.list_items("/v1/errors", limit))
    if state.json:
        state.print_json(found)
        return
    print_if_none(found["items"])
    for error in found["items"]:
        workspace = f" ({plain(error['workspace'])})" if error["workspace"] else ""
        repaired = f"  (works again since {format_minute(error['repaired_at'])})" if error["repaired_at"] else ""
        click.echo(f"{error['at'][:19]}  {plain(error['component'])}{workspace}: {plain(error['message'])}{repaired}")


@click.command(cls=Command)
@options.limit(20)
@click.option("--session", metavar="ID", help="Only what was done in this session.")
@pass_state
def journal(state: State, limit: int, session: str | None) -> None:
    """List what agents did, newest first: edits, tests, commits, deployments, commands."""
    found = state.ask(lambda client: client.list_items("/v1/journal", limit, session_id=session))
    if state.json:
        state.print_json(found)
        return
    print_if_none(found["items"])
    for action in found["items"]:
        failed = "" if action["ok"] else "  (failed)"
        click.echo(f"{action['at'][:19]}  {action['type']:<7} {plain(action['target'])}{failed}")


@click.command(cls=Command)
@click.argument("jobs", nargs=-1, metavar="[JOB]…")
@click.option("--all", "every_job", is_flag=True, help="Run every job, one after the other.")
@click.option("--every-workspace", is_flag=True, help="Run them over every workspace of the home.")
@pass_state
def sleep(state: State, jobs: tuple[str, ...], *, every_job: bool, every_workspace: bool) -> None:
    """Run jobs now, in this process; without a name, list them."""
    from pipeline.jobs.registry import BY_NAME

    unknown = [name for name in jobs if name not in BY_NAME]
    if unknown:
        raise click.UsageError(f"no such job: {plain(unknown[0])}; there are {', '.join(BY_NAME)}")
    if every_job:
        jobs = tuple(name for name in BY_NAME if name != IN_THE_FRONT)
    if every_workspace and not jobs:
        raise click.UsageError("--every-workspace needs the names of jobs, or --all")
    if jobs:
        from pipeline.services.existing import list_workspaces

        _run_here(state, jobs, list_workspaces(state.settings) if every_workspace else [state.workspace])
    else:
        _list_known(state)


@click.command(cls=Command)
@pass_state
def consolidate(state: State) -> None:
    """Make one memory of many related episodes: the job `consolidate`, run now."""
    _run_here(state, ("consolidate",), [state.workspace])


def _list_known(state: State) -> None:
    from pipeline.jobs.registry import JOBS

    state.show(
        [{"name": job.name, "schedule": str(job.schedule), "summary": job.summary} for job in JOBS],
        lambda: table(
            ["job", "schedule", "what it does"], [[job.name, str(job.schedule), job.summary] for job in JOBS]
        ),
    )


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
    error = elsewhere = None
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
                elsewhere = "runs in the background already"
                break
            for key, number in result.report.counts.items():
                counts[key] = counts.get(key, 0) + number
            error, more = result.error, result.report.more
        bar.update(bar.length or 1)
    took_s = round(time.monotonic() - began, 1)
    if not state.json:
        found = elsewhere or ", ".join(f"{key} {number}" for key, number in counts.items()) or "nothing to do"
        click.echo(f"{name:12} {'failed' if error else 'ok':6} {took_s:>6.1f} s  {plain(error) if error else found}")
    return {"job": name, "ok": error is None, "counts": counts, "error": error, "took_s": took_s}


POLL_S = 0.25


@click.command(cls=Command)
@pass_state
def stats(state: State) -> None:
    """Count what the workspace holds and how large it is."""
    found = state.ask(lambda client: client.stats())
    memories, graph, index, stored = found["memories"], found["graph"], found["index"], found["bytes"]
    pairs = [
        ("workspace", found["workspace"]),
        ("memories", f"{memories['active']} active, {memories['archived']} archived"),
        ("sessions", memories["sessions"]),
        ("kinds", _counts(memories["by_kind"])),
        ("sources", _counts(memories["by_source"])),
        ("entities", f"{graph['entities']}, mentioned {graph['mentions']} times"),
        ("segment", f"{index['segment'] or 'none yet'}, {index['tail_rows']} writes since"),
        ("vectors", f"{index['passages']} passages ({index['encoder']})"),
        ("encoder", describe_encoder(index)),
        ("files", ", ".join(f"{name} {format_size(count)}" for name, count in stored.items())),
    ]
    state.show(found, lambda: print_pairs(pairs))


def _counts(counts: dict[str, int]) -> str | None:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or None


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def queue(context: click.Context) -> None:
    """Show what waits and what failed for good."""
    if context.invoked_subcommand is None:
        _show_queue(context.ensure_object(State))


def _show_queue(state: State) -> None:
    found = state.ask(lambda client: client.queue())
    if state.json:
        state.print_json(found)
        return
    rows = [[stage, count, found["dead"].get(stage, 0)] for stage, count in found["pending"].items()]
    table(["stage", "pending", "dead"], rows, right=["pending", "dead"])
    oldest = found["oldest_pending_s"]
    if oldest is not None:
        click.echo(f"the oldest waits for {format_duration(oldest)}")
    click.echo(f"worker processes that have reported: {len(found['workers'])}")
    if any(found["dead"].values()):
        click.echo("`reverie queue retry` gives what failed for good a fresh start")


@queue.command("retry")
@click.option("--stage", type=click.Choice([stage.value for stage in Stage]), help="Only what failed in this stage.")
@pass_state
def retry(state: State, stage: str | None) -> None:
    """Give what failed for good a fresh start."""
    found = state.ask(lambda client: client.retry(stage))
    state.show(found, f"{found['retried']} queued again")


@click.command(cls=Command)
@pass_state
def rebuild(state: State) -> None:
    """Compute every index of the workspace again from events.sqlite, while the server runs."""
    started = time.monotonic()
    with state.client() as client:
        queued = client.rebuild()["queued"]
        try:
            dead = _wait_until_digested(client, queued, quiet=state.json)
        except KeyboardInterrupt:
            click.echo("the rebuild goes on in the background; `reverie queue` shows how far it is", err=True)
            raise
    took = round(time.monotonic() - started, 1)
    if state.json:
        state.print_json({"queued": queued, "dead": dead, "took_s": took})
        return
    click.echo(f"{queued} memories of {state.workspace} indexed again in {took} s")
    if any(dead.values()):
        click.echo(f"failed for good: {_counts(dead)}; `reverie queue retry` tries again", err=True)


def _wait_until_digested(client: "Client", queued: int, *, quiet: bool) -> dict[str, Any]:
    pause = threading.Event()
    # Each memory is embedded and linked.
    total = 2 * queued
    with show_progress("indexing", total, quiet=quiet) as set_done:
        while True:
            found = client.queue()
            left = sum(found["pending"].values())
            set_done(max(0, total - left))
            if not left:
                return dict(found["dead"])
            pause.wait(POLL_S)
