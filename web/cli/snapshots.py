"""Snapshots on the command line: list them, take one, put one back."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import Conflict
from web.cli.command import Group, State, pass_state
from web.cli.render import format_size, plain, show_waiting, table

if TYPE_CHECKING:
    from pipeline.store.backup import Snapshot


@click.group(cls=Group)
def snapshot() -> None:
    """List, take and restore verified copies of the workspace's store."""


@snapshot.command("list")
@pass_state
def list_snapshots(state: State) -> None:
    """List the snapshots of the workspace, newest first."""
    from pipeline.store.backup import snapshots

    items = [_describe_snapshot(one) for one in snapshots(state.settings.paths.workspace(state.workspace).snapshots)]
    if state.json:
        state.print_json({"items": items, "next_cursor": None})
        return
    rows = [[item["name"], item["taken"], item["memories"], format_size(item["bytes"])] for item in items]
    table(["snapshot", "taken", "memories", "size"], rows, right=["memories", "size"])


def _describe_snapshot(one: "Snapshot") -> dict[str, Any]:
    from pipeline.store.backup import Damaged, count_memories

    memories: int | None
    try:
        memories = count_memories(one.file)
    except Damaged as error:
        memories = None
        click.echo(f"{one.name}: {plain(error)}", err=True)
    return {
        "name": one.name,
        "taken": one.taken,
        "at": one.at.isoformat(),
        "memories": memories,
        "bytes": one.file.stat().st_size,
    }


@snapshot.command("take")
@pass_state
def take(state: State) -> None:
    """Take a snapshot of the workspace now, while the server runs."""
    from pipeline.jobs.snapshot import take_snapshot

    with show_waiting("copying", quiet=state.json):
        found = _describe_snapshot(take_snapshot(state.settings.paths.workspace(state.workspace), datetime.now(UTC)))
    if state.json:
        state.print_json(found)
    else:
        click.echo(
            f"{found['name']} holds {found['memories']} memories of {state.workspace} ({format_size(found['bytes'])})"
        )


@snapshot.command("restore")
@click.argument("name")
@pass_state
def restore(state: State, name: str) -> None:
    """Put the snapshot NAME, or `latest`, in the store's place; the stack must be stopped."""
    from config.process import Role
    from pipeline.jobs.snapshot import restore_snapshot
    from web.cli.processes import running, supervisor_role

    settings = state.settings
    roles = [supervisor_role(settings), *(Role(settings.paths.root, role) for role in ("web", "scheduler"))]
    taken = []
    settings.paths.ensure()
    try:
        found = running(settings)
        if found:
            told = ", ".join(f"{process.name} (pid {process.pid})" for process in found)
            raise Conflict(f"a snapshot is restored while nothing runs: `reverie down` stops {told}")
        # Nobody starts the stack meanwhile.
        for role in roles:
            role.take()
            taken.append(role)
        with show_waiting("restoring", quiet=state.json):
            restored = restore_snapshot(
                settings.paths.workspace(state.workspace),
                name,
                datetime.now(UTC),
                lambda message: click.echo(plain(message), err=True),
            )
    finally:
        for role in taken:
            role.release()
    if state.json:
        state.print_json({"restored": restored.snapshot.name, "memories": restored.memories, "aside": restored.aside})
        return
    click.echo(f"{state.workspace} is as it was in {restored.snapshot.name}: {restored.memories} memories")
    if restored.aside is not None:
        click.echo(f"what was there before is kept as {restored.aside}")
    click.echo("its indexes are built anew in the background once Reverie runs")
