"""Workspaces on the command line."""

from pathlib import Path

import click

from pipeline.errors import ServerUnreachable
from web.cli.command import Group, State, choose_for_folder, pass_state
from web.cli.render import table


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
        items = [{"id": name, "memories": None} for name in state.settings.paths.workspace_ids()]
    if state.json:
        state.print_json({"items": items, "next_cursor": None})
        return
    rows = [["*" if item["id"] == state.workspace else "", item["id"], item["memories"]] for item in items]
    table(["", "workspace", "memories"], rows, right=["memories"])


@workspace.command("current")
@pass_state
def current(state: State) -> None:
    """Show the workspace that commands use."""
    if state.json:
        state.print_json({"workspace": state.workspace})
    else:
        click.echo(state.workspace)


@workspace.command("why")
@click.option(
    "-C",
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="The folder to tell of; otherwise the current one.",
)
@pass_state
def why(state: State, folder: Path) -> None:
    """Tell which workspace a folder belongs to, by which rule, and whether it is used."""
    choice = state.choice(folder)
    identity = choice.identity
    assert identity is not None
    detail = f"{identity.detail}; {choice.reason}"
    if state.json:
        state.print_json({"id": identity.id, "rule": identity.rule, "detail": detail})
    else:
        click.echo(f"{identity.id} (by {identity.rule})\n{detail}")


@workspace.command("use")
@click.argument("name", metavar="ID")
@pass_state
def use(state: State, name: str) -> None:
    """Let commands use workspace ID from now on; it is made on its first write."""
    from config.paths import WORKSPACE_ID, is_workspace_id
    from config.settings import load_settings, save_setting

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
