"""Commands for the memory of a team: connect to its server, share memories, run a server."""

from pathlib import Path

import click

from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.lifecycle import serve
from web.cli.render import one_line, plain, print_if_none, table
from web.cli.state import State

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
    from pipeline.services.team_servers import add_team

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
    from pipeline.services.team_servers import list_teams

    servers = list_teams(state.settings.paths.servers, state.warn_skipped)
    items = [{"name": server.name, "url": server.url} for server in servers]
    state.show({"items": items}, lambda: _print_teams([[item["name"], item["url"]] for item in items]))


@team.command("remove")
@click.argument("name", callback=options.check_name)
@pass_state
def remove(state: State, name: str) -> None:
    """Disconnect from the team NAME and delete its token here; the team keeps its memories."""
    from pipeline.services.team_servers import remove_team

    remove_team(state.settings.paths.servers, name)
    state.show({"removed": name}, f"disconnected from {name}")


def _print_teams(rows: list[list[str]]) -> None:
    print_if_none(rows, NO_TEAMS)
    if rows:
        table(["team", "address"], rows)


@team.command("share")
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@click.option("--withdraw", is_flag=True, help="Stop sharing: only you see the memory again.")
@pass_state
def share(state: State, memory_id: str, *, withdraw: bool) -> None:
    """Share the memory ID, which only you, an agent or a session could see, with everyone in the workspace."""
    memory = state.ask(lambda client: client.withdraw(memory_id) if withdraw else client.share(memory_id))
    verb = "withdrew" if withdraw else "shared"
    state.show(memory, f"{verb} {memory['id']}: {one_line(memory['content'])}")


team.add_command(serve)
