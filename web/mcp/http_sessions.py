"""Sessions of MCP over HTTP: what a client subscribed to, and how far it has read.

Requests are independent of a session: only subscriptions need one. It is in the memory of one web server, so after a
restart a client must connect again to subscribe.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.errors import NotFound
from pipeline.records.people import Caller
from pipeline.services.events import Cursor
from web.mcp.offered_tools import ChangedLists, Switches
from web.mcp.subscriptions import Subscriptions

HEADER = "Mcp-Session-Id"
MOST = 1000
ID_BYTES = 24


class HttpSession:
    """A session of one caller in one workspace. Several threads may use one object."""

    def __init__(self, owner: tuple[str | None, str | None, str], switches: Switches) -> None:
        self.owner = owner
        self.subscriptions = Subscriptions()
        # The position after the last change that the client was notified of; None before it subscribed.
        self.cursor: Cursor | None = None
        self._switches = switches
        self._stream = 0
        self._lock = threading.Lock()

    def subscribe(self, uri: str, find_end: Callable[[], Cursor]) -> None:
        """Subscribe to a resource; changes from now on are sent, also by a stream that is opened later."""
        is_first = not self.subscriptions.uris
        end = find_end()
        self.subscriptions.add(uri)
        if is_first:
            self.cursor = end

    def unsubscribe(self, uri: str) -> None:
        """Unsubscribe from a resource."""
        self.subscriptions.remove(uri)

    def open_stream(self) -> Callable[[], bool]:
        """Return whether a new stream is the newest one: a message must be sent on one stream only."""
        with self._lock:
            self._stream += 1
            number = self._stream
        return lambda: self._stream == number

    def compare(self, switches: Switches) -> ChangedLists:
        """Return which lists have changed since the last call, by the switches that are in force now."""
        with self._lock:
            before, self._switches = self._switches, switches
        return ChangedLists(before != switches, before.is_enabled != switches.is_enabled)


@dataclass(frozen=True, slots=True)
class Subscriber:
    """The session of a request, if it is known, and the function that returns the position of the last change."""

    session: HttpSession | None
    find_end: Callable[[], Cursor]

    def require_session(self) -> HttpSession:
        """Return the session; raise NotFound without one."""
        if self.session is None:
            raise NotFound(f"Subscriptions need a session: send `initialize`, then the {HEADER} of its answer.")
        return self.session


class HttpSessions:
    """The sessions of a web server by their ids; the least recently used ones are dropped."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._sessions: OrderedDict[str, HttpSession] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, caller: Caller, workspace_id: str, switches: Switches) -> str:
        """Open a session and return its id."""
        session_id = secrets.token_urlsafe(ID_BYTES)
        with self._lock:
            self._sessions[session_id] = HttpSession(_owner(caller, workspace_id), switches)
            if len(self._sessions) > self._most:
                self._sessions.popitem(last=False)
        return session_id

    def find(self, session_id: str, caller: Caller, workspace_id: str) -> HttpSession | None:
        """Return the session of an id; None if it is unknown, or of another caller or workspace."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None or session.owner != _owner(caller, workspace_id):
                return None
            self._sessions.move_to_end(session_id)
            return session


def _owner(caller: Caller, workspace_id: str) -> tuple[str | None, str | None, str]:
    return caller.person_id, caller.token_id, workspace_id
