"""The list of known teams. Separate from team requests, because the hook client must load it fast."""

from collections.abc import Callable
from pathlib import Path

from pipeline.features.team.servers import (
    TeamServer,
    check_server,
    delete_server,
    list_servers,
    read_server,
    write_server,
)
from pipeline.kernel.errors import RemoteUnreachable, ReverieError

# Workspace of requests that are not about a workspace.
DEFAULT = "default"


def add_team(folder: Path, name: str, url: str, token: str) -> frozenset[str]:
    """Add a team's server if it accepts the token; return the workspaces that the token can access."""
    server = check_server(name, url, token)
    workspaces = list_open_workspaces(server)
    write_server(folder, server)
    return workspaces


def list_open_workspaces(server: TeamServer) -> frozenset[str]:
    """Return the workspaces that this person can access on a team's server; raise ReverieError without an answer."""
    from pipeline.features.team.link import TeamLink
    from pipeline.kernel.http.problems import NotReverie

    link = TeamLink(server)
    try:
        return link.list_workspaces(DEFAULT)
    except (KeyError, TypeError) as error:
        raise RemoteUnreachable(str(NotReverie(server.url))) from error
    finally:
        link.close()


def list_teams(folder: Path, on_problem: Callable[[ReverieError], None]) -> list[TeamServer]:
    """Return the known teams by name; report and skip invalid files."""
    return list_servers(folder, on_problem)


def find_team(folder: Path, name: str) -> TeamServer:
    """Return the team with a name; raise NotFound if there is none."""
    return read_server(folder / name)


def remove_team(folder: Path, name: str) -> None:
    """Remove a team; raise NotFound if there is none with this name."""
    delete_server(folder, name)
