"""The way from a tool to the web server: starts the stack when it is down, and waits for it a little."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from config.settings import Settings, environment_incognito
from pipeline.errors import AnswerLost, ReverieError, ServerUnreachable
from web.client import Client
from web.contract import MCP

START_DEADLINE_S = 10.0
POLL_S = 0.1
HEALTH_TIMEOUT_S = 5.0
# A server that has just answered is not asked for its health before the next request.
FRESH_S = 2.0

# What only reads, though it is posted: asked again where its answer was lost.
READS = frozenset({"/v1/recall", "/v1/recall/why", "/v1/prepare", "/v1/hook-runs"})
NEW = frozenset({"/v1/memories", "/v1/memories/batch", "/v1/goals"})
# What is taken in of a project belongs to the project.
TAKEN_IN = ("/v1/facts/", "/v1/sources/")

log = logging.getLogger(__name__)


class Started(Protocol):
    """A stack that was started in the background."""

    def is_running(self) -> bool:
        """Tell whether it still runs."""


Start = Callable[[], Started]


class Choose(Protocol):
    """Chooses the workspace to read or to write now: a project's own is used as soon as it is there."""

    def __call__(self, *, to_write: bool = False) -> str:
        """Return its id."""


class Bridge:
    """Calls the web server for the workspace of its folder; safe to use from several threads."""

    def __init__(
        self,
        settings: Settings,
        workspace: Choose,
        start: Start,
        project: Callable[[], str | None] = lambda: None,
        *,
        deadline_s: float = START_DEADLINE_S,
    ) -> None:
        self.workspace = workspace
        self._project = project
        self._settings = settings
        self._start = start
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._probe = Client.from_settings(settings, timeout_s=HEALTH_TIMEOUT_S)
        self._client: Client | None = None
        self._started: Started | None = None
        self._answered_at = float("-inf")

    def start_in_background(self) -> None:
        """Start the stack when nothing answers, without waiting for either."""
        threading.Thread(target=self._start_if_down, name="start", daemon=True).start()

    def _start_if_down(self) -> None:
        try:
            with self._lock:
                if not self._answers():
                    self._start_once()
        except ReverieError as error:
            # The first tool that is called says the same to the model.
            log.warning("%s", error)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send one request; raise ServerUnreachable when the stack does not come up in time.

        A server that went away is waited for, and asked again whatever it never got and whatever only reads.
        """
        end = time.monotonic() + self._deadline_s
        while True:
            client = self._ready()
            try:
                chosen = self.workspace(to_write=_stores(method, path))
                answer = client.call(method, path, body, query, chosen, self._project())
            except ServerUnreachable as error:
                self._answered_at = float("-inf")
                if isinstance(error, AnswerLost) and not _reads(method, path):
                    raise AnswerLost(
                        f"{error}; it may have been done all the same: look before you repeat it"
                    ) from error
                if time.monotonic() >= end:
                    raise
            else:
                self._answered_at = time.monotonic()
                return answer

    def close(self) -> None:
        """Close every connection; a stack that was started goes on."""
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
                # Not earlier: the server makes the token before it first answers.
                self._client = Client.from_settings(self._settings, self.workspace(), caller=MCP)
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
            # A client that knew another server's token must not be asked again.
            self._client = None
            return False
        return True

    def _start_once(self) -> None:
        if self._started is None or not self._started.is_running():
            try:
                self._started = self._start()
            except OSError as error:
                raise ServerUnreachable(f"Reverie could not be started: {error}") from error

    def _why(self) -> str:
        log = self._settings.paths.logs / "reverie.log"
        state = "is still starting" if self._started is None or self._started.is_running() else "could not be started"
        return f"Reverie {state} at {self._settings.url}; try again in a moment, or see {log}"


class TeamBridge:
    """Calls a team's server for the project of its folder; nothing is started, and nothing is kept here."""

    def __init__(self, url: str, token: str, workspace: Choose) -> None:
        self._workspace = workspace
        self._client = Client(url, token, caller=MCP, incognito=environment_incognito())

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Send one request; what only reads is asked again where its answer was lost."""
        # A project's own workspace from the first question on: others may have written to it.
        chosen = self._workspace(to_write=True)
        try:
            return self._client.call(method, path, body, query, chosen)
        except AnswerLost:
            if not _reads(method, path):
                raise
        return self._client.call(method, path, body, query, chosen)

    def close(self) -> None:
        """Close every connection."""
        self._client.close()


class RefusingBridge:
    """Answers every call with the reason why the settings name no server: a host shows it where a tool is called."""

    def __init__(self, problem: str) -> None:
        self._problem = problem

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Raise ServerUnreachable with the reason."""
        del method, path, body, query
        raise ServerUnreachable(self._problem)

    def close(self) -> None:
        """Do nothing: no connection was opened."""


def _reads(method: str, path: str) -> bool:
    return method == "GET" or path in READS


def _stores(method: str, path: str) -> bool:
    """Tell whether a request stores something new; what changes a memory goes where the memory is."""
    return (method == "POST" and path in NEW) or (method == "PUT" and path.startswith(TAKEN_IN))
