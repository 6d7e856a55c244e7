"""The command that imports the sessions of coding agents on this machine."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.sessions.readers.reader import READERS
from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import Fields, count_of, one_line, pick, plain, print_table, show_progress
from web.cli.state import State

if TYPE_CHECKING:
    from pipeline.sessions.import_usecases import ImportSummary

MEGABYTE = 1_000_000
# The most frequent reasons are printed; --json lists all.
SHOWN_REASONS = 12
SHOWN_PROBLEMS = 10
# An agent without any of these has no sessions.
AFFECTED = ("files", "unchanged", "left_out", "problems")
AGENT: Fields = {
    "agent": "agent",
    "sessions": "sessions",
    "messages": "turns",
    "actions": "actions",
    "to capture": "queued_for_capture",
    "unchanged files": "unchanged",
}


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
    from pipeline.sessions.import_usecases import ImportOptions, import_sessions
    from web.cli.local_store import open_home

    chosen = ImportOptions(agents, since, project, dry_run)
    quiet = state.json or dry_run or not sys.stderr.isatty()
    with open_home(state, only_reads=dry_run) as container, show_progress("importing sessions", quiet=quiet) as bar:
        try:
            summary = import_sessions(
                container.settings,
                container.stores.transcripts,
                container.workspace,
                chosen,
                lambda progress: bar(progress.bytes, progress.bytes_total, progress.describe()),
            )
        except KeyboardInterrupt:
            click.echo("imported sessions are kept; run the same command again to continue", err=True)
            raise
    state.show(_describe(summary, dry_run=dry_run), _print)


def _describe(summary: "ImportSummary", *, dry_run: bool) -> dict[str, Any]:
    """Return the result as a JSON object."""
    counts = ("files", "unchanged", "sessions", "turns", "actions")
    head = {"dry_run": dry_run, "workspaces": sorted(summary.workspaces)}
    agents = [
        {"agent": name, **pick(agent, *counts), "queued_for_capture": agent.queued}
        | {"left_out": dict(+agent.left_out), "problems": agent.problems}
        for name, agent in summary.agents.items()
    ]
    previews = [
        pick(preview, "agent", "session_id", "workspace", "started_at", "title") | {"lines": list(preview.lines)}
        for preview in summary.previews
    ]
    return {**head, "agents": agents, "previews": previews, **pick(summary, "bytes", "took_s")}


def _print(answer: dict[str, Any]) -> None:
    for preview in answer["previews"]:
        started = (preview["started_at"] or "")[:10]
        title = one_line(preview["title"] or preview["session_id"])
        click.echo(f"{preview['agent']}  {started}  {preview['workspace']}  {title}")
        for line in preview["lines"]:
            click.echo(f"    {plain(line)}")
    agents = [agent for agent in answer["agents"] if any(agent[name] for name in AFFECTED)]
    print_table(agents, AGENT, empty="No coding agent has sessions on this machine.")
    for agent in agents:
        for reason, count in Counter(agent["left_out"]).most_common(SHOWN_REASONS):
            click.echo(f"left out of {agent['agent']}: {count:,} {plain(reason)}")
        for problem in agent["problems"][:SHOWN_PROBLEMS]:
            click.echo(f"problem with {agent['agent']}: {plain(problem)}", err=True)
    if agents:
        verb = "would go to" if answer["dry_run"] else "in"
        size = f"{answer['bytes'] / MEGABYTE:,.1f} MB in {answer['took_s']} s"
        click.echo(f"{size}, {verb} {count_of(len(answer['workspaces']), 'workspace')}")
