"""Forgetting on the command line: archive a memory, or what was noted without being asked."""

from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from web.cli import options
from web.cli.command import Command, State, pass_state

if TYPE_CHECKING:
    from web.client import Client

EVERYTHING = 1_000_000


@click.command(cls=Command)
@click.argument("memory_id", metavar="[ID]", required=False, callback=options.named)
@click.option("--hard", is_flag=True, help="Remove every trace of the memory ID, for good, without asking.")
@click.option("--ambient", is_flag=True, help="Archive all that was noted without being asked.")
@click.option("--session", "session_id", metavar="ID", help="With --ambient, only of this session.")
@pass_state
def forget(state: State, memory_id: str | None, *, hard: bool, ambient: bool, session_id: str | None) -> None:
    """Archive the memory ID; `reverie restore ID` brings it back."""
    if (memory_id is None) != ambient:
        raise click.UsageError("name either one memory by its ID, or --ambient")
    if ambient and hard:
        raise click.UsageError("--hard needs the ID of one memory")
    if session_id is not None and not ambient:
        raise click.UsageError("--session goes with --ambient")
    with state.client() as client:
        ids = _ambient(client, session_id) if memory_id is None else [memory_id]
        for one in ids:
            client.call("DELETE", f"/v1/memories/{quote(one, safe='')}", query={"hard": "true"} if hard else None)
    if state.json:
        state.print_json({"forgotten": ids, "purged": hard})
    elif memory_id is None:
        click.echo(f"{len(ids)} ambient {'memory' if len(ids) == 1 else 'memories'} archived")
    else:
        click.echo(f"{'purged' if hard else 'archived'} {memory_id}")


def _ambient(client: "Client", session_id: str | None) -> list[str]:
    """List the ids of what is active and was noted without being asked."""
    found = client.items("/v1/memories", EVERYTHING, session_id=session_id)
    return [memory["id"] for memory in found if memory["source"] == "ambient"]
