"""Sessions of MCP over HTTP: what a client subscribed to, and how far it has read.

Requests are independent of a session: only subscriptions need one. It is in the memory of one web server, so after a
restart a client must connect again to subscribe.
"""

import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from pipeline.features.changes.events import Cursor
from pipeline.kernel.errors import FieldError, InvalidField, NotFound
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import SHORT_ID
from pipeline.kernel.records.people import Caller
from web.mcp.catalog import BRIEF, MEMORY
from web.mcp.offered_tools import ChangedLists, Switches
from web.mcp.rendering import WHOLE

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
        self._sessions: LruCache[str, HttpSession] = LruCache(most)

    def open(self, caller: Caller, workspace_id: str, switches: Switches) -> str:
        """Open a session and return its id."""
        session_id = secrets.token_urlsafe(ID_BYTES)
        self._sessions.put(session_id, HttpSession(_owner(caller, workspace_id), switches))
        return session_id

    def find(self, session_id: str, caller: Caller, workspace_id: str) -> HttpSession | None:
        """Return the session of an id; None if it is unknown, or of another caller or workspace."""
        owner = _owner(caller, workspace_id)
        return self._sessions.find(session_id, lambda session: session.owner == owner)


def _owner(caller: Caller, workspace_id: str) -> tuple[str | None, str | None, str]:
    return caller.person_id, caller.token_id, workspace_id


BEFORE_ID = MEMORY["uriTemplate"].partition("{")[0]
MOST_RESOURCES = 100


def find_memory_id(uri: str) -> str | None:
    """Return the id that a resource names, None for the brief; raise NotFound if there is no such resource."""
    if uri == BRIEF["uri"]:
        return None
    if uri.startswith(BEFORE_ID) and len(uri) > len(BEFORE_ID):
        return unquote(uri.removeprefix(BEFORE_ID))
    raise NotFound(f"There is no such resource. Use {BRIEF['uri']} or {MEMORY['uriTemplate']}.")


class Subscriptions:
    """The resources that one session subscribed to. Several threads may use one object."""

    def __init__(self, most: int = MOST_RESOURCES) -> None:
        self._most = most
        # The end of each subscribed memory's id; None for the brief, which any change concerns.
        self._ends: dict[str, str | None] = {}
        self._lock = threading.Lock()

    @property
    def uris(self) -> list[str]:
        """Return the subscribed resources."""
        with self._lock:
            return list(self._ends)

    def add(self, uri: str) -> None:
        """Subscribe to a resource; raise NotFound for one that cannot exist, InvalidField if there are too many.

        Whether a memory exists is not checked: the answer would reveal memories that the session may not see.
        """
        memory_id = find_memory_id(uri)
        end = None if memory_id is None else memory_id.strip().strip("[]").upper()
        if end is not None and not (SHORT_ID <= len(end) <= WHOLE and end.isalnum()):
            raise NotFound("There is no such memory. Use an id from recall or prepare.")
        with self._lock:
            if uri not in self._ends and len(self._ends) >= self._most:
                raise InvalidField(FieldError("uri", f"exceeds the {self._most} resources of a session"))
            self._ends[uri] = end

    def remove(self, uri: str) -> None:
        """Unsubscribe from a resource."""
        with self._lock:
            self._ends.pop(uri, None)

    def find_changed(self, memory_ids: Iterable[str | None]) -> list[str]:
        """Return the resources that changes of these memories concern; None stands for a change of any memory."""
        changed = list(memory_ids)
        with self._lock:
            return [
                uri
                for uri, end in self._ends.items()
                if any(end is None or memory_id is None or memory_id.endswith(end) for memory_id in changed)
            ]

    def names(self, memory_id: str) -> bool:
        """Return whether a subscribed resource names this memory."""
        with self._lock:
            return any(end is not None and memory_id.endswith(end) for end in self._ends.values())
