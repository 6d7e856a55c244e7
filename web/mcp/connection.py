"""The connection of a session over stdio to its server. It starts the stack if no server answers."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from config.paths import WORKSPACE_HEADER
from pipeline.kernel.errors import AnswerLost, ReverieError, ServerUnreachable
from pipeline.kernel.http.problems import NotReverie, read_answer
from web.hooks.spool.writes import spool_write
from web.http.client import Client
from web.http.contract import MCP, SESSION_HEADER
from web.stack.stack import Stack

START_DEADLINE_S = 10.0
POLL_S = 0.1
# Imported memories of a project belong to its own workspace.
TAKEN_IN = "/v1/sources/"

Answer = TypeVar("Answer")


class Choose(Protocol):
    """Chooses the workspace of the folder. With `to_write`, it records the workspace that a project's file claims."""

    def __call__(self, *, to_write: bool = False) -> str:
        """Return its id."""


class MessageClient(Client):
    """Sends messages of JSON-RPC, and requests to the HTTP API."""

    def post_message(self, target: str, message: bytes, headers: Mapping[str, str], workspace: str) -> dict[str, Any]:
        """Send a message and return its answer, also an error; raise ReverieError if there is none."""
        answer = self.exchange("POST", target, message, {WORKSPACE_HEADER: workspace, **self.headers, **headers})
        with suppress(ValueError):
            content = json.loads(answer.body)
            if isinstance(content, dict) and "jsonrpc" in content:
                return content
        read_answer(answer, self.url)
        raise NotReverie(self.url, answer.status)


class Connection:
    """Sends the requests of a session to its server. Several threads may use one object.

    `folder` is that of the session, and `session` that of its agent if the host names it. The server of a team has no
    `stack` here: it is not started, and nothing for it is stored on this machine.
    """

    def __init__(
        self,
        client: MessageClient,
        workspace: Choose,
        stack: Stack | None = None,
        *,
        folder: str = "",
        session: str | None = None,
        read_only: bool = False,
        deadline_s: float = START_DEADLINE_S,
    ) -> None:
        self.folder = folder
        self.session = session
        self._client = client
        self._workspace = workspace
        self._stack = stack
        self._read_only = read_only
        self._deadline_s = deadline_s

    def post(
        self, target: str, message: bytes, headers: Mapping[str, str], *, stores: bool, may_repeat: bool
    ) -> dict[str, Any]:
        """Send a message of the protocol and return the answer to it.

        Raises ServerUnreachable if the stack does not start in time, and AnswerLost if the connection broke after a
        request that may not be repeated.
        """
        workspace = self._choose(to_write=stores)
        named = {} if self.session is None else {SESSION_HEADER: quote(self.session, safe="")}
        return self._repeat(
            lambda: self._client.post_message(target, message, {**named, **headers}, workspace), may_repeat
        )

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Send a request to the HTTP API and return the answer's JSON."""
        workspace = self._choose(to_write=path.startswith(TAKEN_IN) and method == "PUT")
        # A note of a run may be missing or come twice.
        may_repeat = method == "GET"
        return self._repeat(lambda: self._client.call(method, path, body, query, workspace), may_repeat)

    def spool(self, method: str, path: str, body: Any) -> ReverieError | None:
        """Write a request into the spool of this machine; return None if it cannot wait there."""
        if self._read_only or self._stack is None:
            return None
        return spool_write(self._stack.settings, method, path, body, self._choose(to_write=True), MCP)

    def close(self) -> None:
        """Close every connection, and stop the stack if it ends with this session."""
        self._client.close()
        if self._stack is not None:
            self._stack.close()

    def _choose(self, *, to_write: bool) -> str:
        return self._workspace(to_write=to_write and not self._read_only)

    def _repeat(self, send: Callable[[], Answer], may_repeat: bool) -> Answer:
        pause = threading.Event()
        end = time.monotonic() + self._deadline_s
        while True:
            try:
                return send()
            except AnswerLost as error:
                if not may_repeat:
                    raise AnswerLost(
                        f"{error} The request may have been carried out: check before you repeat it."
                    ) from error
                if time.monotonic() >= end:
                    raise
            except ServerUnreachable as error:
                if self._stack is None:
                    raise
                self._start(self._stack)
                if time.monotonic() >= end:
                    raise ServerUnreachable(self._stack.explain()) from error
            pause.wait(POLL_S)

    @staticmethod
    def _start(stack: Stack) -> None:
        try:
            stack.start()
        except OSError as error:
            raise ServerUnreachable(f"Cannot start Reverie: {error}. Start it with `reverie up`.") from error
