"""The client of the HTTP API for commands, tools and the supervisor."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from config.paths import READ_ONLY_HEADER, WORKSPACE_HEADER, CurrentToken
from config.settings import Settings, environment_incognito, environment_read_only
from pipeline.kernel.errors import AnswerLost, FieldError, InvalidField, ReverieError, ServerUnreachable
from pipeline.kernel.http.connections import BrokenOff, HttpAnswer, KeptConnections, NotConnected
from pipeline.kernel.http.event_stream import Block, read_blocks
from pipeline.kernel.http.problems import HOW_TO_RESTART, NotReverie, ServerProblem, read_answer
from web.http.contract import CALLER_HEADER, FOLDER_HEADER, INCOGNITO_HEADER
from web.http.server_proof import connect_to_server

ANSWER_TIMEOUT_S = 60.0
CONNECT_WITHIN_S = 5.0
# The maximum number of items in one page of a list.
LARGEST_PAGE = 200
LARGEST_PAGE_OF_ITEMS = 1000
EVERYTHING = 2**62
HOW_TO_START = "Start the server with `reverie up`, or in the background with `reverie up --daemon`."


class TokenRefused(ReverieError):
    """Report that the server rejects the token of this data directory."""


class Client:
    """Calls a Reverie server. Several threads may use one object."""

    def __init__(
        self,
        url: str,
        token: str | CurrentToken = "",
        workspace: str = "default",
        *,
        timeout_s: float = ANSWER_TIMEOUT_S,
        revive: Callable[[], bool] | None = None,
        caller: str | None = None,
        incognito: bool = False,
        read_only: bool = False,
        folder: str = "",
    ) -> None:
        self.url = url.rstrip("/")
        self.workspace = workspace
        self._token = token
        self.headers = {} if caller is None else {CALLER_HEADER: caller}
        if incognito:
            self.headers[INCOGNITO_HEADER] = "true"
        if read_only:
            self.headers[READ_ONLY_HEADER] = "true"
        if folder:
            self.headers[FOLDER_HEADER] = quote(os.fsencode(folder))
        # The data directory's token is only for its own server, and another program may have the port.
        open_socket = self._connect_to_own_server if isinstance(token, CurrentToken) else None
        self._connections = KeptConnections(self.url, timeout_s, open_socket)
        # Restarts an unreachable server; called once.
        self._revive = revive

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        workspace: str | None = None,
        *,
        timeout_s: float = ANSWER_TIMEOUT_S,
        revive: Callable[[], bool] | None = None,
        caller: str | None = None,
        read_only: bool = False,
        folder: str = "",
    ) -> Self:
        """Return a client of the server and workspace in the settings or of `workspace`, for calls from `folder`."""
        # Only a server creates the token: a client must not create a data directory.
        token = CurrentToken(settings.paths.token_file)
        named = workspace or settings.workspace
        return cls(
            settings.url,
            token,
            named,
            timeout_s=timeout_s,
            revive=revive,
            caller=caller,
            incognito=environment_incognito(),
            read_only=read_only or environment_read_only(),
            folder=folder,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._connections.close()

    def call(
        self,
        method: str,
        path: str | tuple[str, ...],
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        workspace: str | None = None,
    ) -> Any:
        """Send one request and return the answer's JSON; raise ReverieError for anything but success.

        The path may be a tuple: the parts of the path of a record.
        """
        path = path if isinstance(path, str) else build_path(*path)
        headers = {"Accept": "application/json", WORKSPACE_HEADER: workspace or self.workspace, **self.headers}
        data = None
        if body is not None:
            data = _encode(json.dumps(body, ensure_ascii=False), "body")
            headers["Content-Type"] = "application/json"
        target = f"{path}?{urlencode(_check_query(query))}" if query else path
        return read_answer(self.exchange(method, target, data, headers), self.url)

    def exchange(self, method: str, target: str, data: bytes | None, headers: Mapping[str, str]) -> HttpAnswer:
        """Send a request with the token, again if the token was renewed or created after it was read here."""
        shown = self._current_token()
        answer = self._send(method, target, data, headers, shown)
        if answer.status == HTTPStatus.UNAUTHORIZED and (renewed := self._current_token()) != shown:
            answer = self._send(method, target, data, headers, renewed)
        if answer.status == HTTPStatus.UNAUTHORIZED and not isinstance(self._token, str):
            raise TokenRefused(f"{self.url} does not accept the token in {self._token.file}. {HOW_TO_RESTART}")
        return answer

    def stream(self, path: str, query: Mapping[str, Any], workspace: str | None = None) -> Iterator[Block]:
        """Yield the blocks of a stream of events until it ends; raise ReverieError for any other answer."""
        target = f"{path}?{urlencode(_check_query(_without_empty(query)))}"
        headers = {"Accept": "text/event-stream", WORKSPACE_HEADER: workspace or self.workspace, **self.headers}
        if token := self._current_token():
            headers["Authorization"] = f"Bearer {token}"
        try:
            with self._connections.stream(target, headers) as answer:
                media_type = answer.headers.get("Content-Type", "")
                if answer.status != HTTPStatus.OK or not media_type.startswith("text/event-stream"):
                    retry_after = answer.headers.get("Retry-After", "")
                    read_answer(HttpAnswer(answer.status, media_type, answer.read(), retry_after), self.url)
                    raise NotReverie(self.url, answer.status)
                yield from read_blocks(answer)
        except NotConnected as error:
            raise ServerUnreachable(f"No Reverie server answers at {self.url}. {HOW_TO_START}") from error
        except BrokenOff as error:
            raise AnswerLost(f"The connection to the server at {self.url} ended ({error}).") from error

    def _connect_to_own_server(self) -> socket.socket:
        assert isinstance(self._token, CurrentToken)
        address = urlsplit(self.url)
        deadline = time.monotonic() + CONNECT_WITHIN_S
        return connect_to_server(str(self._token.file.parent), address.hostname or "", address.port or 80, deadline)

    def _current_token(self) -> str:
        return self._token if isinstance(self._token, str) else self._token()

    def _send(self, method: str, target: str, data: bytes | None, headers: Mapping[str, str], token: str) -> HttpAnswer:
        shown = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            return self._connections.send(method, target, data, {**headers, **shown})
        except BrokenOff as error:
            raise AnswerLost(f"The server at {self.url} closed the connection before it answered ({error}).") from error
        except NotConnected as error:
            revive, self._revive = self._revive, None
            if revive is not None and revive():
                return self._send(method, target, data, headers, self._current_token())
            raise ServerUnreachable(f"No Reverie server answers at {self.url}. {HOW_TO_START}") from error

    def health(self) -> dict[str, Any]:
        """Return the version of the server and whether its encoder is loaded."""
        return self.request("GET", "/healthz")

    def remember(self, memory: Mapping[str, Any]) -> dict[str, Any]:
        """Store one memory and return its receipt."""
        return self.request("POST", "/v1/memories", memory)

    def recall(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the results of a recall."""
        return self.request("POST", "/v1/recall", question)

    def stats(self) -> dict[str, Any]:
        """Return the statistics of the workspace."""
        return self.request("GET", "/v1/stats")

    def switches(self, workspace: str) -> dict[str, Any]:
        """Return the switches that the server applies in a workspace."""
        return self.request("GET", "/v1/switches", workspace=workspace)

    def queue(self, workspace: str | None = None) -> dict[str, Any]:
        """Return the pending and the dead-lettered (permanently failed) work of a workspace."""
        return self.request("GET", "/v1/queue", workspace=workspace)

    def workspaces(self) -> dict[str, Any]:
        """Return the workspaces of the data directory."""
        return self.request("GET", "/v1/workspaces")

    def errors(self, limit: int = 50, *, open_only: bool = False) -> dict[str, Any]:
        """Return the newest background errors, optionally only unrepaired ones."""
        return self.request("GET", "/v1/errors", query={"limit": limit} | ({"open": "true"} if open_only else {}))

    def items(self, path: str, limit: int, page: int = LARGEST_PAGE, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield at most `limit` items of a list, page by page."""
        for answer in self._list_pages(path, limit, page, filters):
            yield from answer["items"]

    def list_items(self, path: str, limit: int, **filters: Any) -> dict[str, Any]:
        """Return at most `limit` items of a list as one page, with the cursor of the next items."""
        pages = list(self._list_pages(path, limit, LARGEST_PAGE, filters))
        items = [item for answer in pages for item in answer["items"]]
        return {"items": items, "next_cursor": pages[-1]["next_cursor"] if pages else None}

    def _list_pages(self, path: str, limit: int, page: int, filters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        left, cursor = limit, ""
        while left > 0 and cursor is not None:
            answer = self.request("GET", path, query={**filters, "limit": min(left, page), "cursor": cursor})
            yield answer
            left -= len(answer["items"])
            cursor = answer["next_cursor"]

    def memory(self, memory_id: str, team: str | None = None) -> dict[str, Any]:
        """Return one memory of this machine or of a team, with provenance, edges, entities and history."""
        return self.request("GET", ("memories", memory_id), query={"from": team})

    def purge(self, memory_id: str) -> dict[str, Any]:
        """Remove every trace of a memory."""
        return self.request("DELETE", ("memories", memory_id), query={"hard": "true"})

    def graph(self, around: str, depth: int, limit: int, **viewer: Any) -> dict[str, Any]:
        """Return an entity, by id or name, and then the entities around it."""
        area = {"around": around, "depth": depth, "limit": limit}
        return self.request("GET", "/v1/graph", query=viewer | area)

    def source_items(self, source: str) -> Iterator[dict[str, Any]]:
        """Yield every known item of a source."""
        return self.items(build_path("sources", source, "items"), EVERYTHING, LARGEST_PAGE_OF_ITEMS)

    def put_items(self, source: str, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Sync the memories of a source with some of its items."""
        return self.request("PUT", ("sources", source, "items"), {"items": items})

    def forget_items(self, source: str, keys: Sequence[str], created: Sequence[str] = ()) -> dict[str, Any]:
        """Forget items that a source no longer has; `created` are memories that the same import created."""
        body = {"keys": keys} | ({"created": created} if created else {})
        return self.request("POST", ("sources", source, "forget"), body)

    def request(
        self,
        method: str,
        path: str | tuple[str, ...],
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        workspace: str | None = None,
    ) -> dict[str, Any]:
        """Send one request, without the empty values of its query, and return the object in the answer."""
        answer = self.call(method, path, body, _without_empty(query or {}), workspace)
        if not isinstance(answer, dict):
            raise NotReverie(self.url, HTTPStatus.OK)
        # In the answer to a change, `items` may be a number.
        items = answer.get("items", []) if method == "GET" else []
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ServerProblem(f"The server at {self.url} sent a list in another form. {HOW_TO_RESTART}")
        return answer


def build_path(*parts: str) -> str:
    """Return the path of a record. No part of it can change the other parts."""
    # A part of dots alone would be resolved as a step to another folder.
    return "/v1/" + "/".join(quote(_encode(part, "path"), safe="").replace(".", "%2E") for part in parts)


def _check_query(query: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, value in query.items():
        _encode(str(value), name)
    return query


def _encode(text: str, loc: str) -> bytes:
    """Return a text in UTF-8; raise InvalidField for a text with bytes of another encoding."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidField(FieldError(loc, "is not valid UTF-8")) from error


def _without_empty(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value not in (None, "")}
