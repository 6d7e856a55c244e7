"""Commands for the memory of a team: connect to its server, share memories, run a server."""

from pathlib import Path

import click

from pipeline.features.team.connections import add_team, list_teams, remove_team
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import plain
from web.cli.state import State
from web.features.lifecycle.commands import serve

NO_TEAMS = "No team is connected. Connect one with `reverie team add NAME URL`."


@click.group(cls=Group)
def team() -> None:
    """Use the memory of a team in addition to your own: recall searches both, and new memories stay here by default."""


@team.command("add")
@click.argument("name")
@click.argument("url")
@options.token_file
@pass_state
def add(state: State, name: str, url: str, token_file: Path | None) -> None:
    """Connect to the team server at URL as NAME, after a check that it accepts your token."""
    token = options.read_token(token_file)
    workspaces = sorted(add_team(state.settings.paths.servers, name, url, token))
    listed = ", ".join(map(plain, workspaces)) or "none yet"
    state.show(
        {"name": name, "url": url, "workspaces": workspaces}, f"connected to {name}; workspaces you can use: {listed}"
    )


@team.command("list")
@pass_state
def list_(state: State) -> None:
    """List the connected teams, without their tokens."""
    servers = list_teams(state.settings.paths.servers, state.warn_skipped)
    items = [{"name": server.name, "url": server.url} for server in servers]
    state.show_page({"items": items}, {"team": "name", "address": "url"}, NO_TEAMS)


@team.command("remove")
@click.argument("name", callback=options.check_name)
@pass_state
def remove(state: State, name: str) -> None:
    """Disconnect from the team NAME and delete its token here; the team keeps its memories."""
    remove_team(state.settings.paths.servers, name)
    state.show({"removed": name}, f"disconnected from {name}")


@team.command("share")
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@click.option("--withdraw", is_flag=True, help="Stop sharing: only you see the memory again.")
@pass_state
def share(state: State, memory_id: str, *, withdraw: bool) -> None:
    """Share the memory ID, which only you, an agent or a session could see, with everyone in the workspace."""
    method, verb = ("DELETE", "withdrew") if withdraw else ("POST", "shared")
    state.act(method, ("memories", memory_id, "share"), says=f"{verb} {{id}}: {{content}}")


team.add_command(serve)
