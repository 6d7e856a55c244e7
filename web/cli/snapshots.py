"""Snapshots on the command line: list them, take one, put one back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import Conflict
from web.cli.command import Group, State, pass_state
from web.cli.render import format_size, plain, show_waiting, table

if TYPE_CHECKING:
    from config.settings import Settings
    from pipeline.services.snapshots import SnapshotSummary


@click.group(cls=Group)
def snapshot() -> None:
    """List, take and restore verified copies of the workspace's store."""


@snapshot.command("list")
@pass_state
def list_snapshots(state: State) -> None:
    """List the snapshots of the workspace, newest first."""
    from pipeline.services import snapshots

    items = [_describe(one) for one in snapshots.list_snapshots(state.settings.paths.workspace(state.workspace))]
    if state.json:
        state.print_json({"items": items, "next_cursor": None})
        return
    rows = [[item["name"], item["taken"], item["memories"], format_size(item["bytes"])] for item in items]
    table(["snapshot", "taken", "memories", "size"], rows, right=["memories", "size"])


def _describe(one: "SnapshotSummary") -> dict[str, Any]:
    if one.problem is not None:
        click.echo(f"{one.name}: {plain(one.problem)}", err=True)
    return {
        "name": one.name,
        "taken": one.taken,
        "at": one.at.isoformat(),
        "memories": one.memories,
        "bytes": one.bytes,
    }


@snapshot.command("take")
@pass_state
def take(state: State) -> None:
    """Take a snapshot of the workspace now, while the server runs."""
    from pipeline.services import snapshots

    with show_waiting("copying", quiet=state.json):
        found = _describe(snapshots.take_snapshot(state.settings.paths.workspace(state.workspace)))
    if state.json:
        state.print_json(found)
        return
    size = format_size(found["bytes"])
    click.echo(f"{found['name']} holds {found['memories']} memories of {state.workspace} ({size})")


@snapshot.command("restore")
@click.argument("name")
@pass_state
def restore(state: State, name: str) -> None:
    """Put the snapshot NAME, or `latest`, in the store's place; the stack must be stopped."""
    from pipeline.services import snapshots

    with _nothing_runs(state.settings), show_waiting("restoring", quiet=state.json):
        restored = snapshots.restore_snapshot(
            state.settings.paths.workspace(state.workspace),
            name,
            lambda message: click.echo(plain(message), err=True),
        )
    if state.json:
        state.print_json({"restored": restored.snapshot.name, "memories": restored.memories, "aside": restored.aside})
        return
    click.echo(f"{state.workspace} is as it was in {restored.snapshot.name}: {restored.memories} memories")
    if restored.aside is not None:
        click.echo(f"what was there before is kept as {restored.aside}")
    click.echo("its indexes are built anew in the background once Reverie runs")


@contextmanager
def _nothing_runs(settings: "Settings") -> Iterator[None]:
    """Keep everybody from starting the stack meanwhile; raise Conflict while it runs."""
    from config.process import Role
    from web.cli.processes import list_running, supervisor_role

    settings.paths.ensure()
    found = list_running(settings)
    if found:
        names = ", ".join(f"{process.name} (pid {process.pid})" for process in found)
        raise Conflict(f"a snapshot is restored while nothing runs: `reverie down` stops {names}")
    taken = []
    try:
        for role in (supervisor_role(settings), *(Role(settings.paths.root, name) for name in ("web", "scheduler"))):
            role.take()
            taken.append(role)
        yield
    finally:
        for role in taken:
            role.release()
