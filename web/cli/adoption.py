"""What was taken from a project before it had a workspace of its own, and its way there."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.errors import NotFound, StoreUnavailable
from pipeline.services.ingestion import source_name
from pipeline.services.workspaces import project_of_folder
from web.cli.command import State
from web.cli.ingest import SourceCommand
from web.client import EVERYTHING

if TYPE_CHECKING:
    from web.intake import IntakeCounts

HOW = "`reverie workspace adopt`"


def offer(state: State, folder: Path, workspace: str) -> None:
    """Offer to move what was taken from a folder's project to the workspace that was just made for it."""
    found = sum(memories for _, _, memories in _list_strays(state, folder))
    if not found:
        return
    elsewhere = f"{state.settings.workspace} holds {found} memories taken from here"
    click.echo(f"{workspace} is this project's own workspace from now on; {elsewhere}", err=True)
    if state.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        click.echo(f"{HOW} moves them", err=True)
    elif click.confirm("Move them?", default=True, err=True):
        adopt(state, folder, workspace)
    else:
        click.echo(f"{HOW} moves them later", err=True)


def adopt(state: State, folder: Path, workspace: str) -> None:
    """Take a folder's project into its workspace, then forget it where it stood before."""
    done = []
    for name, path, _ in _list_strays(state, folder):
        source = source_name(name, path)
        command = SourceCommand(state, workspace, source, dry_run=False, sweeps=name == "project")
        taken = command.read_in(name, path)
        before = SourceCommand(state, state.settings.workspace, source, dry_run=False)
        done += [(command, taken), (before, before.forget_all())]
    state.show([command.describe(*taken) for command, taken in done], lambda: _print_steps(state, done))


def _print_steps(state: State, done: Sequence[tuple[SourceCommand, tuple["IntakeCounts", float]]]) -> None:
    if not done:
        click.echo(f"nothing in {state.settings.workspace} was taken from this project")
    for command, taken in done:
        command.print_rows(*taken)


def _list_strays(state: State, folder: Path) -> list[tuple[str, Path, int]]:
    with state.client_of(state.settings.workspace) as client:
        try:
            known = {one["source"]: one["memories"] for one in client.items("/v1/sources", EVERYTHING)}
        except (NotFound, StoreUnavailable):
            # There is nothing to be brought from where nothing can be read; `status` tells which store that is.
            return []
    found = [(name, path, known.get(source_name(name, path), 0)) for name, path in _list_places(folder)]
    return [one for one in found if one[2]]


def _list_places(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield what a project may have been read as: its files, from its root or from the folder, and its history."""
    root = project_of_folder(folder)
    yield from (("project", path) for path in dict.fromkeys((root, folder.resolve())))
    yield "git", root
