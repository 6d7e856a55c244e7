"""A client of the HTTP contract over one kept-alive connection pool."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Self
from urllib.parse import urlencode

import urllib3

from config.settings import Settings
from pipeline.errors import (
    FieldError,
    InvalidField,
    ReverieError,
    ServerUnreachable,
)
from web.contract import STATUS_OF_ERROR, WORKSPACE_HEADER

CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 60.0
HOW_TO_START = "start it with `reverie up` (`reverie up --daemon` for the background)"

_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what a server binds to, no client can call


class ServerProblem(ReverieError):
    """Say that the server refused or failed in a way that has no type of its own."""

    def __init__(self, detail: str, status: int = 500) -> None:
        super().__init__(detail)
        self.status = status


# A rejected field has a type of its own making: it carries the fields.
_TYPES: Mapping[int, Callable[[str], ReverieError]] = {
    status: kind for kind, status in STATUS_OF_ERROR if kind is not InvalidField
}


def server_url(settings: Settings) -> str:
    """Return the base URL at which the settings' server can be called."""
    host = _ANY_ADDRESS.get(settings.host, settings.host)
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


class Client:
    """Call a Reverie server; safe to use from several threads."""

    def __init__(
        self, url: str, token: str = "", workspace: str = "default", *, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> None:
        self.url = url.rstrip("/")
        self.workspace = workspace
        self._token = token
        # urllib3 sets TCP_NODELAY, without which a body that follows its headers waits for a delayed ACK.
        # A dead connection is noticed before a request; a sent request is not repeated, it may have been carried out.
        self._pool = urllib3.connection_from_url(
            self.url, maxsize=4, retries=False, timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=timeout_s)
        )

    @classmethod
    def from_settings(
        cls, settings: Settings, workspace: str | None = None, *, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> Self:
        """Return a client of the settings' server and, unless another is named, their workspace."""
        file = settings.paths.token_file
        # Only a server makes the token: a question to one that never ran must not leave a home behind.
        token = file.read_text(encoding="ascii").strip() if file.exists() else ""
        return cls(server_url(settings), token, workspace or settings.workspace, timeout_s=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        workspace: str | None = None,
    ) -> Any:
        """Send one request and return the answer's JSON; raise ReverieError for anything but success."""
        headers = {"Accept": "application/json", WORKSPACE_HEADER: workspace or self.workspace}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False).encode()
            headers["Content-Type"] = "application/json"
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            answer = self._pool.request(method, target, body=data, headers=headers)
        except (urllib3.exceptions.ReadTimeoutError, urllib3.exceptions.ProtocolError) as error:
            raise ServerUnreachable(f"the server at {self.url} broke off: {error}") from error
        except urllib3.exceptions.HTTPError as error:
            raise ServerUnreachable(f"no Reverie server answers at {self.url}; {HOW_TO_START}") from error
        return self._understood(answer.status, answer.headers.get("Content-Type", ""), answer.data)

    def health(self) -> dict[str, Any]:
        """Return that the server answers, its version and whether its encoder is loaded."""
        return self._object("GET", "/healthz")

    def remember(self, memory: Mapping[str, Any]) -> dict[str, Any]:
        """Store one memory and return its receipt."""
        return self._object("POST", "/v1/memories", memory)

    def recall(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a recall."""
        return self._object("POST", "/v1/recall", question)

    def why(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return why a memory is or is not among the results of a recall."""
        return self._object("POST", "/v1/recall/why", question)

    def incognito(self) -> dict[str, Any]:
        """Return the sessions that are off the record."""
        return self._object("GET", "/v1/incognito")

    def set_incognito(self, session_id: str, *, on: bool) -> dict[str, Any]:
        """Take a session off the record, or put it back."""
        return self._object("POST", "/v1/incognito", {"session_id": session_id, "on": on})

    def stats(self) -> dict[str, Any]:
        """Return what the workspace holds."""
        return self._object("GET", "/v1/stats")

    def queue(self, workspace: str | None = None) -> dict[str, Any]:
        """Return what waits and what failed for good in a workspace."""
        return self._object("GET", "/v1/queue", workspace=workspace)

    def retry(self, stage: str | None = None) -> dict[str, Any]:
        """Give the dead letters of a stage, or of all, a fresh start."""
        return self._object("POST", "/v1/queue/retry", {} if stage is None else {"stage": stage})

    def rebuild(self) -> dict[str, Any]:
        """Ask for every derived index of the workspace to be computed again."""
        return self._object("POST", "/v1/rebuild")

    def workspaces(self) -> dict[str, Any]:
        """Return the workspaces of the home."""
        return self._object("GET", "/v1/workspaces")

    def errors(self, limit: int = 50) -> dict[str, Any]:
        """Return the newest background errors."""
        return self._object("GET", "/v1/errors", query={"limit": limit})

    def _object(self, method: str, path: str, body: Any = None, **rest: Any) -> dict[str, Any]:
        answer = self.call(method, path, body, **rest)
        if not isinstance(answer, dict):
            raise ServerProblem(f"something that is not Reverie answers at {self.url}", 200)
        return answer

    def _understood(self, status: int, media_type: str, data: bytes) -> Any:
        try:
            answer = json.loads(data) if data else None
        except ValueError as error:
            raise ServerProblem(f"something that is not Reverie answers at {self.url}", status) from error
        if 200 <= status < 300:
            return answer
        if not media_type.startswith("application/problem+json") or not isinstance(answer, dict):
            raise ServerProblem(f"something that is not Reverie answers at {self.url} (HTTP {status})", status)
        raise _typed(status, answer)


def _typed(status: int, problem: Mapping[str, Any]) -> ReverieError:
    detail = str(problem.get("detail") or problem.get("title") or f"HTTP {status}")
    errors = [FieldError(str(e.get("loc", "")), str(e.get("msg", ""))) for e in problem.get("errors") or ()]
    if status == 422 and errors:
        return InvalidField(*errors)
    kind = _TYPES.get(status)
    return ServerProblem(detail, status) if kind is None else kind(detail)
