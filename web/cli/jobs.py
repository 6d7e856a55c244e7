"""What happens behind the front, on the command line: the jobs and background errors."""

from typing import Any

import click

from web.cli import options
from web.cli.command import Command, Group, State, pass_state
from web.cli.render import format_minute, plain, print_if_none, table


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
        found = client.listing("/v1/errors", limit)
    if state.json:
        state.print_json(found)
        return
    print_if_none(found["items"])
    for error in found["items"]:
        workspace = f" ({plain(error['workspace'])})" if error["workspace"] else ""
        click.echo(f"{error['at'][:19]}  {plain(error['component'])}{workspace}: {plain(error['message'])}")
