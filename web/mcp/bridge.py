"""The connection from the tools of the stdio server to the web server. It starts the stack if it is down."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from config.settings import Settings, environment_incognito, environment_read_only
from pipeline.errors import AnswerLost, ReverieError, ServerUnreachable
from pipeline.http.event_stream import Block
from web.client import Client
from web.contract import MCP
from web.spool.writes import add_client_ids, has_client_ids, spool_write

START_DEADLINE_S = 10.0
POLL_S = 0.1
HEALTH_TIMEOUT_S = 5.0
# After an answer, the health of the server is not checked again for this long.
FRESH_S = 2.0

# POST requests that only read: they are repeated if their answer was lost.
READS = frozenset({"/v1/recall", "/v1/recall/why", "/v1/prepare", "/v1/hook-runs"})
EVENTS = "/v1/events"
NEW = frozenset({"/v1/memories", "/v1/memories/batch", "/v1/goals"})
# Imported memories of a project belong to its own workspace.
TAKEN_IN = ("/v1/facts/", "/v1/sources/")

log = logging.getLogger(__name__)


class Started(Protocol):
    """A stack that runs in the background."""

    def is_running(self) -> bool:
        """Return whether it still runs."""


Start = Callable[[], Started]


class Choose(Protocol):
    """Chooses the workspace of the folder. With `to_write`, it records the workspace that a project's file claims."""

    def __call__(self, *, to_write: bool = False) -> str:
        """Return its id."""


class Bridge:
    """Calls the web server for the workspace of its folder. Several threads may use one object."""

    def __init__(
        self,
        settings: Settings,
        workspace: Choose,
        start: Start,
        *,
        deadline_s: float = START_DEADLINE_S,
        read_only: bool = False,
        folder: str = "",
    ) -> None:
        self.workspace = workspace
        self._folder = folder
        self._settings = settings
        self._start = start
        self._deadline_s = deadline_s
        self._read_only = read_only
        self._lock = threading.Lock()
        self._probe = Client.from_settings(settings, timeout_s=HEALTH_TIMEOUT_S)
        self._client: Client | None = None
        self._started: Started | None = None
        self._answered_at = float("-inf")

    def start_in_background(self) -> None:
        """Start the stack if no server answers, without waiting."""
        threading.Thread(target=self._start_if_down, name="start", daemon=True).start()

    def _start_if_down(self) -> None:
        try:
            with self._lock:
                if not self._answers():
                    self._start_once()
        except ReverieError as error:
            # The first tool call reports the same error to the model.
            log.warning("%s", error)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send one request; raise ServerUnreachable if the stack does not start in time.

        After a lost connection, wait for the server and repeat a request that it did not get, that only reads or whose
        memories have ids. If no server answers, a new memory waits in the spool: raise Spooled.
        """
        body = add_client_ids(method, path, body)
        try:
            return self._call(method, path, body, query)
        except ServerUnreachable as error:
            is_perhaps_stored = isinstance(error, AnswerLost) and not has_client_ids(method, path, body)
            if self._read_only or is_perhaps_stored:
                raise
            spooled = spool_write(self._settings, method, path, body, self.workspace(to_write=True), MCP)
            raise (spooled or error) from error

    def _call(self, method: str, path: str, body: Any, query: Mapping[str, Any] | None) -> Any:
        end = time.monotonic() + self._deadline_s
        while True:
            client = self._ready()
            try:
                chosen = self.workspace(to_write=not self._read_only and stores_memory(method, path))
                answer = client.call(method, path, body, query, chosen)
            except ServerUnreachable as error:
                self._answered_at = float("-inf")
                if isinstance(error, AnswerLost) and not (_reads(method, path) or has_client_ids(method, path, body)):
                    raise AnswerLost(
                        f"{error} The request may have been carried out: check before you repeat it."
                    ) from error
                if time.monotonic() >= end:
                    raise
            else:
                self._answered_at = time.monotonic()
                return answer

    def events(self, after: str | None) -> Iterator[Block]:
        """Yield the events of the folder's workspace during one connection.

        Only the first connection starts a stack that is down: its user may have stopped it since.
        """
        if after is None:
            self._ready()
        with Client.from_settings(self._settings, self.workspace(), caller=MCP, read_only=self._read_only) as client:
            yield from client.stream(EVENTS, {"after": after})

    def close(self) -> None:
        """Close every connection; a started stack keeps running."""
        self._probe.close()
        if self._client is not None:
            self._client.close()

    def _ready(self) -> Client:
        with self._lock:
            if self._client is not None and time.monotonic() - self._answered_at < FRESH_S:
                return self._client
            self._wait()
            self._answered_at = time.monotonic()
            if self._client is None:
                # Not earlier: the server creates the token before its first answer.
                self._client = Client.from_settings(
                    self._settings, self.workspace(), caller=MCP, read_only=self._read_only, folder=self._folder
                )
            return self._client

    def _wait(self) -> None:
        if self._answers():
            return
        self._start_once()
        pause = threading.Event()
        end = time.monotonic() + self._deadline_s
        while not self._answers():
            if time.monotonic() >= end:
                raise ServerUnreachable(self._why())
            pause.wait(POLL_S)

    def _answers(self) -> bool:
        try:
            self._probe.health()
        except ServerUnreachable:
            # A client with the token of an earlier server must not be used again.
            self._client = None
            return False
        return True

    def _start_once(self) -> None:
        if self._started is None or not self._started.is_running():
            try:
                self._started = self._start()
            except OSError as error:
                raise ServerUnreachable(f"Cannot start Reverie: {error}. Start it with `reverie up`.") from error

    def _why(self) -> str:
        log = self._settings.paths.logs / "reverie.log"
        may_run = self._started is None or self._started.is_running()
        state = "is still starting" if may_run else "could not be started"
        return f"Reverie {state} at {self._settings.url}. Try again in a moment, or see {log}."


class TeamBridge:
    """Calls a team's server for the project of its folder. It starts no stack and stores nothing on this machine."""

    def __init__(self, url: str, token: str, workspace: Choose, *, read_only: bool = False) -> None:
        self._workspace = workspace
        self._read_only = read_only
        self._client = Client(
            url,
            token,
            caller=MCP,
            incognito=environment_incognito(),
            read_only=read_only or environment_read_only(),
        )

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Send one request; repeat a request that only reads if its answer was lost."""
        chosen = self._workspace(to_write=not self._read_only)
        try:
            return self._client.call(method, path, body, query, chosen)
        except AnswerLost:
            if not _reads(method, path):
                raise
        return self._client.call(method, path, body, query, chosen)

    def events(self, after: str | None) -> Iterator[Block]:
        """Yield the events of the project during one connection."""
        return self._client.stream(EVENTS, {"after": after}, self._workspace())

    def close(self) -> None:
        """Close every connection."""
        self._client.close()


class RefusingBridge:
    """Answers every call with the reason why the settings are invalid. A host shows it when a tool is called."""

    def __init__(self, problem: str) -> None:
        self._problem = problem

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Raise ServerUnreachable with the reason."""
        del method, path, body, query
        raise ServerUnreachable(self._problem)

    def events(self, after: str | None) -> Iterator[Block]:
        """Raise ServerUnreachable with the reason."""
        del after
        raise ServerUnreachable(self._problem)

    def close(self) -> None:
        """Do nothing, because there is no connection."""


def _reads(method: str, path: str) -> bool:
    return method == "GET" or path in READS


def stores_memory(method: str, path: str) -> bool:
    """Return whether a request stores a new memory. A change goes to the workspace of the memory."""
    return (method == "POST" and path in NEW) or (method == "PUT" and path.startswith(TAKEN_IN))
