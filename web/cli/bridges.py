"""Commands for vocabulary bridges: list the names that recall treats as one thing, remove one, restore it."""

from typing import Any
from urllib.parse import quote

import click

from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import one_line, table
from web.cli.state import State

NO_BRIDGES = (
    "There are no bridges here yet. An hourly job finds names for the same thing in memories; "
    "`reverie jobs run bridges` runs it now."
)


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def bridges(context: click.Context) -> None:
    """List names that recall treats as one thing, and remove wrong ones. Without a command, list them."""
    if context.invoked_subcommand is None:
        context.invoke(list_bridges)


@bridges.command("list")
@click.option("--removed", is_flag=True, help="Only list bridges that were removed.")
@options.limit(50)
@pass_state
def list_bridges(state: State, limit: int, *, removed: bool) -> None:
    """List bridges, newest first."""
    page = state.list_items("/v1/bridges", limit, **({"removed": "true"} if removed else {}))
    state.show(page, lambda: _print_bridges(page["items"]))


@bridges.command("remove")
@click.argument("bridge_id", metavar="ID", callback=options.check_name)
@pass_state
def remove(state: State, bridge_id: str) -> None:
    """Remove the bridge ID for good."""
    path = f"/v1/bridges/{quote(bridge_id, safe='')}"
    bridge = state.ask(lambda client: client.call("DELETE", path))
    state.show(bridge, f"removed {bridge_id}: {_format_names(bridge)}")


@bridges.command("restore")
@click.argument("bridge_id", metavar="ID", callback=options.check_name)
@pass_state
def restore(state: State, bridge_id: str) -> None:
    """Use a removed bridge again."""
    path = f"/v1/bridges/{quote(bridge_id, safe='')}/restore"
    bridge = state.ask(lambda client: client.call("POST", path))
    state.show(bridge, f"restored {bridge_id}: {_format_names(bridge)}")


def _print_bridges(items: list[dict[str, Any]]) -> None:
    rows = [[item["id"], _format_names(item), item["source"], item["memory_id"]] for item in items]
    table(["bridge", "names", "found by", "in memory"], rows, empty=NO_BRIDGES)


def _format_names(bridge: dict[str, Any]) -> str:
    return f"{one_line(bridge['first'])} = {one_line(bridge['second'])}"
