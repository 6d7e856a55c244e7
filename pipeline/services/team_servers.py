"""Which teams a home knows. Apart from asking them: the client of hooks reads one while an agent waits."""

from collections.abc import Callable
from pathlib import Path

from pipeline.errors import RemoteUnreachable, ReverieError
from pipeline.team.servers import (
    TeamServer,
    check_server,
    delete_server,
    list_servers,
    read_server,
    write_server,
)

# What a request names that is about no workspace.
DEFAULT = "default"


def add_team(folder: Path, name: str, url: str, token: str) -> frozenset[str]:
    """Keep a team's server once it took the token; return the workspaces that it opens to it."""
    server = check_server(name, url, token)
    workspaces = list_open_workspaces(server)
    write_server(folder, server)
    return workspaces


def list_open_workspaces(server: TeamServer) -> frozenset[str]:
    """Return the workspaces that a team's server opens to this person; raise ReverieError where it does not answer."""
    from pipeline.http.problems import NotReverie
    from pipeline.team.link import TeamLink

    link = TeamLink(server)
    try:
        return link.list_workspaces(DEFAULT)
    except (KeyError, TypeError) as error:
        raise RemoteUnreachable(str(NotReverie(server.url))) from error
    finally:
        link.close()


def list_teams(folder: Path, on_problem: Callable[[ReverieError], None]) -> list[TeamServer]:
    """Return the known teams by name; report a file that describes no team, and skip it."""
    return list_servers(folder, on_problem)


def find_team(folder: Path, name: str) -> TeamServer:
    """Return the team of a name; raise NotFound where there is none."""
    return read_server(folder / name)


def remove_team(folder: Path, name: str) -> None:
    """Forget a team; raise NotFound where there is none of that name."""
    delete_server(folder, name)
