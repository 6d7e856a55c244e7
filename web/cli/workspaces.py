"""Workspaces on the command line."""

import click

from pipeline.errors import ServerUnreachable
from web.cli.command import Group, State, pass_state
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
    effective = load_settings().workspace
    if state.json:
        state.print_json({"workspace": effective, "saved": name})
        return
    click.echo(f"{paths.config}: workspace = {name}")
    if effective != name:
        click.echo(f"REVERIE_WORKSPACE={effective} in the environment still decides", err=True)
