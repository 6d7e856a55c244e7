"""Bring the memories of a project into its workspace: move indexed ones, or use the workspace that it had before."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.errors import NotFound, StoreUnavailable
from pipeline.services.ingestion import source_name
from pipeline.services.workspace_listing import is_in_use
from pipeline.services.workspaces import project_of_folder, use_for_clone
from web.cli.render import count_of
from web.cli.source_import import SourceImport
from web.cli.state import State
from web.client import EVERYTHING

if TYPE_CHECKING:
    from web.source_import import IntakeCounts

COMMAND = "`reverie workspace adopt`"


def offer_adoption(state: State, folder: Path, workspace: str) -> None:
    """Offer to move the indexed memories of a folder's project to its new workspace."""
    count = sum(memories for _, _, memories in _list_sources(state, folder))
    if not count:
        return
    click.echo(
        f"created workspace {workspace} for this project; workspace {state.settings.workspace} contains "
        f"{count_of(count, 'memory', 'memories')} indexed from it",
        err=True,
    )
    if state.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        click.echo(f"{COMMAND} moves them", err=True)
    elif click.confirm("Move them?", default=True, err=True):
        adopt_sources(state, folder, workspace)
    else:
        click.echo(f"{COMMAND} moves them later", err=True)


def adopt_sources(state: State, folder: Path, workspace: str) -> None:
    """Index a folder's project in its own workspace, then archive its memories in the default workspace."""
    done = []
    for name, path, _ in _list_sources(state, folder):
        source_id = source_name(name, path)
        source = SourceImport(state, workspace, source_id, dry_run=False, sweeps=name == "project")
        imported = source.import_path(name, path)
        before = SourceImport(state, state.settings.workspace, source_id, dry_run=False)
        done += [(source, imported), (before, before.forget_all())]
    state.show([source.describe(*counts) for source, counts in done], lambda: _print_steps(state, done))


def use_earlier(state: State, folder: Path, workspace: str) -> None:
    """Use a workspace for a git clone, and report the workspace that it used so far."""
    before = state.choice(folder).workspace
    use_for_clone(state.settings, folder, workspace)
    effective = state.choice(folder).workspace
    answer = {"workspace": effective, "before": before}
    text = f"this clone uses workspace {effective}"
    if before != effective and is_in_use(state.settings, before):
        text += f"; `reverie workspace merge {before} {effective}` adds the memories of {before}"
    state.show(answer, text)


def _print_steps(state: State, done: Sequence[tuple[SourceImport, tuple["IntakeCounts", float]]]) -> None:
    if not done:
        click.echo(f"workspace {state.settings.workspace} contains no memories indexed from this project")
    for source, counts in done:
        source.print_rows(*counts)


def _list_sources(state: State, folder: Path) -> list[tuple[str, Path, int]]:
    """List the sources of a folder's project that the default workspace contains."""
    with state.client_of(state.settings.workspace) as client:
        try:
            counts = {item["source"]: item["memories"] for item in client.items("/v1/sources", EVERYTHING)}
        except (NotFound, StoreUnavailable):
            # An unreadable store has nothing to move; `reverie status` reports it.
            return []
    sources = [(name, path, counts.get(source_name(name, path), 0)) for name, path in _list_candidates(folder)]
    return [source for source in sources if source[2]]


def _list_candidates(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the sources that a project may have: its files, from its root or the folder, and its history."""
    root = project_of_folder(folder)
    yield from (("project", path) for path in dict.fromkeys((root, folder.resolve())))
    yield "git", root
