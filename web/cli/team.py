"""Teams on the command line: whose memory is asked beside this machine's."""

from pathlib import Path

import click

from web.cli import options
from web.cli.command import Group, State, pass_state
from web.cli.render import plain, print_if_none, table


@click.group(cls=Group)
def team() -> None:
    """Ask a team's memory beside your own: recall asks both, and what is stored stays here unless you say otherwise."""


@team.command("add")
@click.argument("name")
@click.argument("url")
@options.token_file
@pass_state
def add(state: State, name: str, url: str, token_file: Path | None) -> None:
    """Make the team's server at URL known as NAME; it is asked once, whether it takes your token."""
    from pipeline.services.team_servers import add_team

    token = options.read_token(token_file)
    workspaces = sorted(add_team(state.settings.paths.servers, name, url, token))
    opened = ", ".join(map(plain, workspaces)) or "no workspace yet"
    state.show({"name": name, "url": url, "workspaces": workspaces}, f"{name} is asked from now on; it opens {opened}")


@team.command("list")
@pass_state
def list_(state: State) -> None:
    """List the teams that are asked, without their tokens."""
    from pipeline.services.team_servers import list_teams

    known = list_teams(state.settings.paths.servers, state.tell_left_out)
    found = [{"name": one.name, "url": one.url} for one in known]
    state.show({"items": found}, lambda: _print_teams([(one["name"], one["url"]) for one in found]))


@team.command("remove")
@click.argument("name", callback=options.check_name)
@pass_state
def remove(state: State, name: str) -> None:
    """Ask the team NAME no more, and forget its token here; what it keeps stays there."""
    from pipeline.services.team_servers import remove_team

    remove_team(state.settings.paths.servers, name)
    state.show({"removed": name}, f"{name} is asked no more")


def _print_teams(found: list[tuple[str, str]]) -> None:
    print_if_none(found)
    if found:
        table(["team", "address"], [list(one) for one in found])
