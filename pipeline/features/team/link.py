"""Requests to a team's server with the person's token, over connections that stay open."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from config.paths import READ_ONLY_HEADER, WORKSPACE_HEADER
from pipeline.features.team.servers import TeamServer
from pipeline.kernel.errors import (
    FieldError,
    InvalidField,
    LimitReached,
    PeerRefused,
    RemoteUnreachable,
    ReverieError,
    StoreUnavailable,
)
from pipeline.kernel.http.connections import BrokenOff, KeptConnections, NotConnected
from pipeline.kernel.http.problems import ServerProblem, read_answer

# Shorter than the timeout of clients of this machine: the error then names the team's server, not this machine.
ANSWER_S = 30.0
# The longest detail of a team's error that is passed on.
MAX_DETAIL_CHARS = 300


class TeamLink:
    """Send requests to one team's server. Several threads may use one object."""

    def __init__(self, server: TeamServer) -> None:
        self._server = server
        self._connections = KeptConnections(server.url, ANSWER_S, proxy=_find_proxy(server.url))

    def send(self, method: str, path: str, workspace: str, body: Any = None, *, is_read_only: bool = False) -> Any:
        """Send one request once and return the JSON of the answer; raise ReverieError for anything but success."""
        name, url = self._server.name, self._server.url
        headers = {
            "Authorization": f"Bearer {self._server.token}",
            "Accept": "application/json",
            WORKSPACE_HEADER: workspace,
        }
        headers |= {READ_ONLY_HEADER: "true"} if is_read_only else {}
        content = None
        if body is not None:
            content = json.dumps(body, ensure_ascii=False).encode()
            headers["Content-Type"] = "application/json"
        try:
            answer = self._connections.send(method, path, content, headers)
        except NotConnected as error:
            raise RemoteUnreachable(
                f"Cannot connect to the server of team {name} at {url}; nothing was sent. Check the address, or try"
                " again later."
            ) from error
        except BrokenOff as error:
            raise RemoteUnreachable(
                f"The server of team {name} closed the connection before it answered; it may have carried out the"
                " request. Check before you repeat it."
            ) from error
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise PeerRefused(
                f"The server of team {name} does not accept your token, which was revoked or has expired. Store a new"
                f" one with `reverie team add {name} {url}`."
            )
        try:
            return read_answer(answer, url)
        except ReverieError as error:
            raise self._name_team(error) from error

    def list_workspaces(self, workspace: str) -> frozenset[str]:
        """Return the workspaces that this person may use; the request itself names `workspace`."""
        answer = self.send("GET", "/v1/workspaces", workspace)
        return frozenset(str(item["id"]) for item in answer["items"])

    def close(self) -> None:
        """Close the idle connections."""
        self._connections.close()

    def _name_team(self, error: ReverieError) -> ReverieError:
        """Return an error of the team's server as an error of this machine's request, with the team's name."""
        if isinstance(error, InvalidField):
            return InvalidField(*(FieldError(field.loc, field.msg[:MAX_DETAIL_CHARS]) for field in error.errors))
        message = f"team {self._server.name}: {str(error)[:MAX_DETAIL_CHARS]}"
        if isinstance(error, LimitReached | StoreUnavailable):
            # The limit is the team's, not one of the caller's token here.
            busy = StoreUnavailable(message)
            busy.retry_after_s = error.retry_after_s
            return busy
        return RemoteUnreachable(message) if isinstance(error, ServerProblem) else type(error)(message)


def _find_proxy(url: str) -> str | None:
    """Return the HTTP proxy that the environment names for a URL."""
    address = urlsplit(url)
    proxies: Mapping[str, str] = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if proxy is None or proxy_bypass(address.netloc):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
