"""Commands that take, list and restore snapshots of a workspace, or of the accounts of a team."""

from typing import TYPE_CHECKING, Any

import click

from web.cli.command import Group, pass_state
from web.cli.local_store import nothing_runs, require_files
from web.cli.render import format_size, plain, show_waiting, size_of
from web.cli.state import State

if TYPE_CHECKING:
    from pipeline.jobs.local_snapshots import SnapshotSummary
    from pipeline.services.snapshots import PeopleSnapshot

NO_SNAPSHOTS = "There is no snapshot yet. Take one with `reverie store snapshot take`."


@click.group(cls=Group)
def snapshot() -> None:
    """Take, list and restore verified copies of a workspace, or of accounts, tokens and roles."""


_of_people = click.option(
    "--people", "of_people", is_flag=True, help="Accounts, tokens and roles instead of the workspace."
)


@snapshot.command("list")
@_of_people
@pass_state
def list_snapshots(state: State, *, of_people: bool) -> None:
    """List snapshots, newest first."""
    from pipeline.services import snapshots

    if of_people:
        copies = snapshots.list_people_snapshots(state.settings.paths)
        items, counted = [_describe_people(copy) for copy in copies], "people"
    else:
        items = [_describe(copy) for copy in snapshots.list_snapshots(state.settings, state.workspace)]
        counted = "memories"
    columns = {"snapshot": "name", "taken": "taken", counted: counted, "size": size_of("bytes")}
    state.show_table({"items": items, "next_cursor": None}, columns, right=[counted, "size"], empty=NO_SNAPSHOTS)


def _describe(copy: "SnapshotSummary") -> dict[str, Any]:
    return _describe_copy(copy, memories=copy.memories)


def _describe_people(copy: "PeopleSnapshot") -> dict[str, Any]:
    return _describe_copy(copy, people=copy.people)


def _describe_copy(copy: "SnapshotSummary | PeopleSnapshot", **counts: int | None) -> dict[str, Any]:
    if copy.problem is not None:
        click.echo(f"{copy.name}: {plain(copy.problem)}", err=True)
    return {"name": copy.name, "taken": copy.taken, "at": copy.at.isoformat(), **counts, "bytes": copy.bytes}


@snapshot.command("take")
@_of_people
@pass_state
def take(state: State, *, of_people: bool) -> None:
    """Take a snapshot now; the server may be running."""
    from pipeline.services import snapshots

    if of_people:
        require_files(state.settings, "take a snapshot of accounts")
        copy = _describe_people(snapshots.take_people_snapshot(state.settings.paths))
        state.show(copy, f"{copy['name']} contains {copy['people']} people ({format_size(copy['bytes'])})")
        return
    if not snapshots.takes_snapshots(state.settings):
        require_files(state.settings, "take a snapshot")
    with show_waiting("copying", quiet=state.json):
        copy = _describe(snapshots.take_snapshot(state.settings, state.workspace))
    text = f"{copy['name']} contains {copy['memories']} memories of {state.workspace} ({format_size(copy['bytes'])})"
    state.show(copy, text)


@snapshot.command("restore")
@click.argument("name")
@_of_people
@pass_state
def restore(state: State, name: str, *, of_people: bool) -> None:
    """Restore the workspace from the snapshot NAME, or `latest`. Stop Reverie first; the current store is kept."""
    from pipeline.services import snapshots

    if of_people:
        _restore_people(state, name)
        return
    if not snapshots.takes_snapshots(state.settings):
        require_files(state.settings, "restore a snapshot")
    with nothing_runs(state.settings, "restore a snapshot"), show_waiting("restoring", quiet=state.json):
        restored = snapshots.restore_snapshot(
            state.settings,
            state.workspace,
            name,
            lambda message: click.echo(plain(message), err=True),
        )
    if state.json:
        state.print_json({"restored": restored.snapshot.name, "memories": restored.memories, "aside": restored.aside})
        return
    click.echo(f"restored {state.workspace} from {restored.snapshot.name}: {restored.memories} memories")
    if restored.aside is not None:
        click.echo(f"the previous store is kept as {restored.aside}")
    click.echo("Reverie rebuilds the indexes in the background after the next start")


def _restore_people(state: State, name: str) -> None:
    from pipeline.services import snapshots

    problems: list[str] = []
    require_files(state.settings, "restore a snapshot of accounts")
    with nothing_runs(state.settings, "restore a snapshot of accounts"):
        restored, aside = snapshots.restore_people(state.settings.paths, name, problems.append)
    for problem in problems:
        click.echo(plain(problem), err=True)
    if state.json:
        state.print_json({"restored": restored.name, "people": restored.people, "aside": aside})
        return
    kept = "" if problems else "; removals and revocations since then stay in force"
    click.echo(f"restored accounts, tokens and roles from {restored.name}{kept}")
    if aside is not None:
        click.echo(f"the previous file is kept as {aside}")
