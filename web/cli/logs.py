"""Commands for logs: background errors, actions of agents, runs of hooks."""

from typing import Any
from urllib.parse import quote

import click

from pipeline.times import local_second
from web.cli import options
from web.cli.audit import audit
from web.cli.command import Group, pass_state
from web.cli.render import SCORE, format_minute, plain, print_table, text_of
from web.cli.state import State

NO_RUNS = "No hook has run in the last two weeks. Connect your agents with `reverie setup`."


@click.group(cls=Group)
def logs() -> None:
    """Show background errors, what agents did, what Reverie showed to them, and the audit."""


@logs.command()
@options.limit(20)
@pass_state
def errors(state: State, limit: int) -> None:
    """List background errors, newest first."""
    page = state.list_items("/v1/errors", limit)
    state.show_items(page, _print_error, "No background errors.")


def _print_error(error: dict[str, Any]) -> None:
    workspace = f" ({plain(error['workspace'])})" if error["workspace"] else ""
    repaired = f"  (repaired at {format_minute(error['repaired_at'])})" if error["repaired_at"] else ""
    click.echo(
        f"{local_second(error['at'])}  {plain(error['component'])}{workspace}: {plain(error['message'])}{repaired}"
    )


@logs.command()
@options.limit(20)
@click.option("--session", metavar="ID", help="Only list actions of this session.")
@pass_state
def journal(state: State, limit: int, session: str | None) -> None:
    """List what agents did, newest first: edits, tests, commits, deployments, commands."""
    page = state.list_items("/v1/journal", limit, session_id=session)
    state.show_items(page, _print_action, "No actions are recorded yet. Connect your agents with `reverie setup`.")


def _print_action(action: dict[str, Any]) -> None:
    failed = "" if action["ok"] else "  (failed)"
    click.echo(f"{local_second(action['at'])}  {action['type']:<7} {plain(action['target'])}{failed}")


@logs.group(bare_command="log", default_command="log")
def hooks() -> None:
    """Show what hooks and tools showed to agents in the last two weeks. Without a command, list it."""


@hooks.command("log")
@click.argument("run", metavar="[RUN]", required=False)
@options.limit(30)
@click.option("--session", metavar="ID", help="Only list runs in this session.")
@pass_state
def log(state: State, run: str | None, limit: int, session: str | None) -> None:
    """List runs of hooks and tools, newest first; with RUN, print what was shown and what was left out, and why.

    All workspaces are listed, with -w only one.
    """
    if run is not None:
        record = state.ask(lambda client: client.call("GET", f"/v1/hook-runs/{quote(run, safe='')}"))
        state.show(record, lambda: _print_run(record))
        return
    page = state.list_items("/v1/hook-runs", limit, session_id=session, workspace=state.named_workspace)
    state.show_items(page, _print_hook_run, NO_RUNS)


def _print_run(run: dict[str, Any]) -> None:
    if run["prompt"] is not None:
        click.echo(f"prompt:\n{plain(run['prompt'])}\n\nshown:")
    click.echo(plain(run["text"]) or f"Nothing was shown: {plain(run['reason'])}")
    if run["left_out"]:
        click.echo("\nleft out:")
        columns = {**SCORE, "source": "source", "text": text_of("text"), "reason": "reason"}
        print_table(run["left_out"], columns, right=["score"])


def _print_hook_run(run: dict[str, Any]) -> None:
    outcome = f"{run['chars']} characters, {len(run['memory_ids'])} memories" if run["chars"] else run["reason"]
    click.echo(
        f"{run['id']:>6}  {local_second(run['at'])}  {run['host']:<12} {run['event']:<18} "
        f"{run['took_ms']:7.1f} ms  {run['outcome']:<6} {plain(outcome or '')}"
    )


logs.add_command(audit)
