"""The command that imports the sessions of coding agents on this machine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.transcripts.readers import READERS
from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import count_of, one_line, open_console, plain, show_waiting, table
from web.cli.state import State

if TYPE_CHECKING:
    from pipeline.bootstrap.command import CommandContainer
    from pipeline.services.import_progress import ImportProgress
    from pipeline.services.session_import import ImportSummary

MEGABYTE = 1_000_000
# The most frequent reasons are printed; --json lists all.
SHOWN_REASONS = 12
SHOWN_PROBLEMS = 10


@click.command("sessions", cls=Command)
@click.option(
    "--agent",
    "agents",
    multiple=True,
    type=click.Choice(sorted(READERS)),
    help="Only import sessions of this agent. Can be repeated.",
)
@click.option("--since", type=options.PAST, metavar="TIME", help="Only import sessions since TIME, such as 12w.")
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Only import sessions of the project in PATH.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be imported without storing it.")
@pass_state
def sessions(state: State, agents: tuple[str, ...], since: str | None, project: Path | None, *, dry_run: bool) -> None:
    """Import past sessions of your coding agents; run again to import new ones."""
    from pipeline.services.session_import import ImportOptions, import_sessions
    from web.cli.local_store import open_home

    chosen = ImportOptions(agents, since, project, dry_run)
    with open_home(state, only_reads=dry_run) as container, _show_progress(quiet=state.json or dry_run) as on_progress:
        try:
            summary = import_sessions(
                container.settings, container.stores.transcripts, container.workspace, chosen, on_progress
            )
        except KeyboardInterrupt:
            click.echo("imported sessions are kept; run the same command again to continue", err=True)
            raise
        if not dry_run:
            _make_searchable(state, container, summary)
    state.show(_describe(summary, dry_run=dry_run), lambda: _print(summary, dry_run=dry_run))


def _make_searchable(state: State, container: "CommandContainer", summary: "ImportSummary") -> None:
    """Build the indexes in which `reverie sessions search` finds what was imported."""
    if not any(agent.turns for agent in summary.agents.values()):
        return
    from pipeline.services.session_search import make_turns_searchable

    with show_waiting("building the index of sessions", quiet=state.json):
        for workspace_id in sorted(summary.workspaces):
            make_turns_searchable(container.workspace(workspace_id))


@contextmanager
def _show_progress(*, quiet: bool) -> Iterator[Callable[["ImportProgress"], Any]]:
    """Show a bar with rate and remaining time on standard error; yield the function that updates it."""
    if quiet or not sys.stderr.isatty():
        yield lambda _progress: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=open_console(stderr=True)) as bar:
        task = bar.add_task("importing sessions", total=None)
        yield lambda progress: bar.update(
            task, description=progress.describe(), completed=progress.bytes, total=progress.bytes_total
        )


def _describe(summary: "ImportSummary", *, dry_run: bool) -> dict[str, Any]:
    """Return the result as a JSON object."""
    return {
        "dry_run": dry_run,
        "workspaces": sorted(summary.workspaces),
        "agents": [
            {
                "agent": name,
                "files": agent.files,
                "unchanged": agent.unchanged,
                "sessions": agent.sessions,
                "turns": agent.turns,
                "actions": agent.actions,
                "queued_for_capture": agent.queued,
                "left_out": dict(+agent.left_out),
                "problems": agent.problems,
            }
            for name, agent in summary.agents.items()
        ],
        "previews": [
            {
                "agent": preview.agent,
                "session_id": preview.session_id,
                "workspace": preview.workspace,
                "started_at": preview.started_at,
                "title": preview.title,
                "lines": list(preview.lines),
            }
            for preview in summary.previews
        ],
        "bytes": summary.bytes,
        "took_s": summary.took_s,
    }


def _print(summary: "ImportSummary", *, dry_run: bool) -> None:
    for preview in summary.previews:
        started = (preview.started_at or "")[:10]
        title = one_line(preview.title or preview.session_id)
        click.echo(f"{preview.agent}  {started}  {preview.workspace}  {title}")
        for line in preview.lines:
            click.echo(f"    {plain(line)}")
    rows = [
        [name, agent.sessions, agent.turns, agent.actions, agent.queued, agent.unchanged]
        for name, agent in summary.agents.items()
        if agent.files or agent.unchanged or agent.left_out or agent.problems
    ]
    columns = ["agent", "sessions", "messages", "actions", "to capture", "unchanged files"]
    empty = "No coding agent has sessions on this machine."
    table(columns, rows, right=columns[1:], empty=empty)
    for name, agent in summary.agents.items():
        for reason, count in (+agent.left_out).most_common(SHOWN_REASONS):
            click.echo(f"left out of {name}: {count:,} {plain(reason)}")
        for problem in agent.problems[:SHOWN_PROBLEMS]:
            click.echo(f"problem with {name}: {plain(problem)}", err=True)
    if rows:
        verb = "would go to" if dry_run else "in"
        size = f"{summary.bytes / MEGABYTE:,.1f} MB in {summary.took_s} s"
        click.echo(f"{size}, {verb} {count_of(len(summary.workspaces), 'workspace')}")
