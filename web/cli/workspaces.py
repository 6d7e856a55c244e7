"""Workspaces on the command line: list them, choose one, take snapshots of it and put one back."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import Conflict, ServerUnreachable
from web.cli import options
from web.cli.command import Group, State, choose_for_folder, pass_state
from web.cli.offline import nothing_runs, require_files
from web.cli.render import format_size, plain, show_waiting, table

if TYPE_CHECKING:
    from pipeline.jobs.local_snapshots import SnapshotSummary
    from pipeline.services.snapshots import PeopleSnapshot


@click.group(cls=Group)
def workspace() -> None:
    """List workspaces and choose the one that commands use."""


@workspace.command("list")
@pass_state
def list_workspaces(state: State) -> None:
    """List the workspaces of this home; their memories are counted while the server runs."""
    try:
        with state.client() as client:
            items = client.workspaces()["items"]
    except ServerUnreachable:
        from pipeline.services.existing import list_workspaces as list_existing

        items = [{"id": name, "memories": None} for name in list_existing(state.settings)]
    rows = [["*" if item["id"] == state.workspace else "", item["id"], item["memories"]] for item in items]
    state.show(
        {"items": items, "next_cursor": None}, lambda: table(["", "workspace", "memories"], rows, right=["memories"])
    )


@workspace.command("current")
@pass_state
def current(state: State) -> None:
    """Show the workspace that commands use."""
    state.show({"workspace": state.workspace}, state.workspace)


@workspace.command("why")
@options.folder
@pass_state
def why(state: State, folder: Path) -> None:
    """Tell which workspace a folder belongs to, by which rule, and whether it is used."""
    choice = state.choice(folder)
    identity = choice.identity
    assert identity is not None
    told = {"id": identity.id, "rule": identity.rule, "detail": choice.detail}
    state.show(told, f"{identity.id} (by {identity.rule})\n{choice.detail}")


@workspace.command("trust")
@options.folder
@click.option("--revoke", is_flag=True, help="Take back what was agreed.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@pass_state
def trust(state: State, folder: Path, *, revoke: bool, yes: bool) -> None:
    """Agree that the project here uses the workspace that its .reverie.toml names."""
    from pipeline.services.workspaces import agree_to_claim, claim_of_folder, withdraw_claim

    file, name = claim_of_folder(folder)
    if revoke:
        withdraw_claim(state.settings, file)
    else:
        question = f"{file} claims {name}: agents there will read what it holds, and write into it. Agree?"
        if not (yes or click.confirm(question, err=True)):
            raise click.Abort
        agree_to_claim(state.settings, file, name)
    if state.json:
        state.print_json({"file": str(file), "workspace": name, "agreed": not revoke})
    else:
        click.echo(f"{name} is {'no longer ' if revoke else ''}used below {file.parent}")


@workspace.command("adopt")
@options.folder
@pass_state
def adopt(state: State, folder: Path) -> None:
    """Move what was taken from a project before it had a workspace of its own into that workspace."""
    from web.cli import adoption

    target = state.choice(folder, to_write=True).workspace
    if target == state.settings.workspace:
        raise Conflict(f"{folder} belongs to no workspace but {target}")
    adoption.adopt(state, folder, target)


@workspace.command("use")
@click.argument("name", metavar="ID")
@pass_state
def use(state: State, name: str) -> None:
    """Let commands use workspace ID from now on; it is made on its first write."""
    from config.paths import WORKSPACE_ID, is_workspace_id
    from config.saving import save_setting
    from config.settings import load_settings

    if not is_workspace_id(name):
        raise click.BadParameter(f"a workspace is named by {WORKSPACE_ID.pattern}", param_hint="ID")
    paths = state.settings.paths
    save_setting(paths, "workspace", name)
    choice = choose_for_folder(Path(), load_settings())
    effective = choice.workspace
    if state.json:
        state.print_json({"workspace": effective, "saved": name})
        return
    click.echo(f"{paths.config}: workspace = {name}")
    if effective == name or choice.identity is None:
        return
    if choice.identity.rule == "environment":
        click.echo(f"REVERIE_WORKSPACE={effective} in the environment still decides", err=True)
    else:
        click.echo(f"here {effective} still decides: {choice.identity.detail}", err=True)


@click.group(cls=Group)
def snapshot() -> None:
    """List, take and restore verified copies: of the workspace's store, or of who shares this home."""


_of_people = click.option("--people", "of_people", is_flag=True, help="Of who shares this home, not of the workspace.")


@snapshot.command("list")
@_of_people
@pass_state
def list_snapshots(state: State, *, of_people: bool) -> None:
    """List the snapshots of the workspace, newest first."""
    from pipeline.services import snapshots

    if of_people:
        items, held = [_describe_people(one) for one in snapshots.list_people_snapshots(state.settings.paths)], "people"
    else:
        items = [_describe(one) for one in snapshots.list_snapshots(state.settings, state.workspace)]
        held = "memories"
    rows = [[item["name"], item["taken"], item[held], format_size(item["bytes"])] for item in items]
    state.show(
        {"items": items, "next_cursor": None},
        lambda: table(["snapshot", "taken", held, "size"], rows, right=[held, "size"]),
    )


def _describe(one: "SnapshotSummary") -> dict[str, Any]:
    return _describe_copy(one, memories=one.memories)


def _describe_people(one: "PeopleSnapshot") -> dict[str, Any]:
    return _describe_copy(one, people=one.people)


def _describe_copy(one: "SnapshotSummary | PeopleSnapshot", **held: int | None) -> dict[str, Any]:
    if one.problem is not None:
        click.echo(f"{one.name}: {plain(one.problem)}", err=True)
    return {"name": one.name, "taken": one.taken, "at": one.at.isoformat(), **held, "bytes": one.bytes}


@snapshot.command("take")
@_of_people
@pass_state
def take(state: State, *, of_people: bool) -> None:
    """Take a snapshot of the workspace now, while the server runs."""
    from pipeline.services import snapshots

    if of_people:
        require_files(state.settings, "a copy of people is taken")
        found = _describe_people(snapshots.take_people_snapshot(state.settings.paths))
        state.show(found, f"{found['name']} holds {found['people']} people ({format_size(found['bytes'])})")
        return
    if not snapshots.takes_snapshots(state.settings):
        require_files(state.settings, "a snapshot is taken")
    with show_waiting("copying", quiet=state.json):
        found = _describe(snapshots.take_snapshot(state.settings, state.workspace))
    size = format_size(found["bytes"])
    state.show(found, f"{found['name']} holds {found['memories']} memories of {state.workspace} ({size})")


@snapshot.command("restore")
@click.argument("name")
@_of_people
@pass_state
def restore(state: State, name: str, *, of_people: bool) -> None:
    """Put the snapshot NAME, or `latest`, in the store's place; the stack must be stopped."""
    from pipeline.services import snapshots

    if of_people:
        _restore_people(state, name)
        return
    if not snapshots.takes_snapshots(state.settings):
        require_files(state.settings, "a snapshot is restored")
    with nothing_runs(state.settings, "a snapshot is restored"), show_waiting("restoring", quiet=state.json):
        restored = snapshots.restore_snapshot(
            state.settings,
            state.workspace,
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


def _restore_people(state: State, name: str) -> None:
    from pipeline.services import snapshots

    problems: list[str] = []
    require_files(state.settings, "a copy of people is restored")
    with nothing_runs(state.settings, "people are restored"):
        restored, aside = snapshots.restore_people(state.settings.paths, name, problems.append)
    for problem in problems:
        click.echo(plain(problem), err=True)
    if state.json:
        state.print_json({"restored": restored.name, "people": restored.people, "aside": aside})
        return
    but = "" if problems else "; who was removed, and what was revoked since, stays so"
    click.echo(f"people, tokens and roles are as they were in {restored.name}{but}")
    if aside is not None:
        click.echo(f"what was there before is kept as {aside}")
