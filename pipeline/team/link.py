"""Requests to a team's server, as the person whose token it is, over connections that are kept."""

from collections.abc import Mapping
from typing import Any

import httpx

from config.paths import WORKSPACE_HEADER
from pipeline.errors import (
    Conflict,
    FieldError,
    InvalidField,
    MalformedRequest,
    NotFound,
    PeerRefused,
    RemoteUnreachable,
    ReverieError,
    StoreUnavailable,
)
from pipeline.team.servers import TeamServer

CONNECT_S = 2.0
# Less than clients of this machine wait for its answer: who broke off is said, and it was not this machine.
ANSWER_S = 30.0
# What is handed on as the server says it, and no longer than a person reads.
MAX_DETAIL_CHARS = 300
MAX_RETRY_S = 3600


class TeamLink:
    """Ask one server; safe to use from several threads."""

    def __init__(self, server: TeamServer) -> None:
        self._server = server
        self._client = httpx.Client(
            base_url=server.url,
            headers={"Authorization": f"Bearer {server.token}", "Accept": "application/json"},
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
        )

    def send(self, method: str, path: str, workspace: str, body: Any = None) -> Any:
        """Send one request, once, and return the answer's JSON; raise ReverieError for anything but success."""
        name = self._server.name
        try:
            answer = self._client.request(
                method, path, headers={WORKSPACE_HEADER: workspace}, **({} if body is None else {"json": body})
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise RemoteUnreachable(f"team {name} does not answer at {self._server.url}; nothing was sent") from error
        except httpx.HTTPError as error:
            raise RemoteUnreachable(
                f"team {name} broke off before it answered; it may have been done all the same: look before you"
                " repeat it"
            ) from error
        try:
            read = answer.json() if answer.content else None
        except ValueError as error:
            raise RemoteUnreachable(self._not_reverie(answer)) from error
        if answer.is_success:
            return read
        raise self._refusal(answer, read)

    def list_workspaces(self, named: str) -> frozenset[str]:
        """Return the workspaces that are open to this person, `named` being the one that the request names."""
        found = self.send("GET", "/v1/workspaces", named)
        return frozenset(str(one["id"]) for one in found["items"])

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def _refusal(self, answer: httpx.Response, problem: Any) -> ReverieError:
        name, status = self._server.name, answer.status_code
        if status == httpx.codes.UNAUTHORIZED:
            return PeerRefused(
                f"team {name} does not take your token, which was revoked or has expired: `reverie team add {name} "
                f"{self._server.url}` keeps another"
            )
        if not isinstance(problem, Mapping):
            return RemoteUnreachable(self._not_reverie(answer))
        detail = str(problem.get("detail") or problem.get("title") or status)[:MAX_DETAIL_CHARS]
        if status == httpx.codes.UNPROCESSABLE_ENTITY:
            return InvalidField(*_fields(problem) or [FieldError("body", detail)])
        if status in (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE):
            busy = StoreUnavailable(f"team {name}: {detail}")
            busy.retry_after_s = _retry_after(answer)
            return busy
        kind = _KINDS.get(status, RemoteUnreachable)
        return kind(f"team {name}: {detail}")

    def _not_reverie(self, answer: httpx.Response) -> str:
        return f"something that is not Reverie answers at {self._server.url} (HTTP {answer.status_code})"


_KINDS: Mapping[int, type[ReverieError]] = {
    400: MalformedRequest,
    403: PeerRefused,
    404: NotFound,
    409: Conflict,
    413: MalformedRequest,
}


def _fields(problem: Mapping[str, Any]) -> list[FieldError]:
    found = problem.get("errors")
    given = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    return [FieldError(str(one.get("loc", "")), str(one.get("msg", ""))[:MAX_DETAIL_CHARS]) for one in given]


def _retry_after(answer: httpx.Response) -> int:
    said = answer.headers.get("Retry-After", "")
    return min(MAX_RETRY_S, int(said)) if said.isascii() and said.isdigit() else 1
