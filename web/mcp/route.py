"""The routes of MCP on the web server, with the checks that need no SDK."""

import json
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import unquote

from flask import Flask, Response, current_app, g, request

from pipeline.features.changes.events import (
    Cursor,
    Event,
    EventFilter,
    EventPage,
    EventType,
    find_end,
    parse_cursor,
    read_events,
)
from pipeline.kernel.errors import FieldError, InvalidField, NotFound
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import SHORT_ID, Viewer
from pipeline.kernel.records.people import Caller
from web.features.changes.events import LAST_EVENT_ID, open_streams, stream_response, watch_access
from web.http.access import viewer_of
from web.http.access_log import note_later
from web.http.bodies import QueryString
from web.http.call import Call
from web.http.endpoint import Api, Endpoint, json_response
from web.http.problems import problem
from web.http.streams import MEDIA_TYPE, RETRY_MS, Step, Streams, format_retry
from web.mcp.messages import read_message
from web.mcp.offered_tools import BRIEF, MEMORY, ChangedLists, Switches
from web.mcp.rendering import WHOLE

if TYPE_CHECKING:
    from web.mcp.front import FrontServer

# Without subscriptions, a client asks this often whether its lists have changed.
IDLE_RETRY_MS = 30_000
# A client that reads slowly gets the rest after it reconnects.
MAX_NOTIFICATIONS = 2000


SESSION_ID_HEADER = "Mcp-Session-Id"
MOST_SESSIONS = 1000
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
            raise NotFound(
                f"Subscriptions need a session: send `initialize`, then the {SESSION_ID_HEADER} of its answer."
            )
        return self.session


class HttpSessions:
    """The sessions of a web server by their ids; the least recently used ones are dropped.

    Requests are independent of a session: only subscriptions need one. It is in the memory of one web server, so after
    a restart a client must connect again to subscribe.
    """

    def __init__(self, most: int = MOST_SESSIONS) -> None:
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
        """Return the resources that change with these memories; None means that any memory may have changed."""
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


class NotificationStream:
    """One connection of a client, from a cursor on."""

    def __init__(
        self,
        session: HttpSession,
        after: Cursor,
        read: Callable[[Cursor], EventPage],
        read_switches: Callable[[], Switches],
        note_memories: Callable[[list[str]], None],
    ) -> None:
        self._session = session
        self._cursor = after
        self._read = read
        self._read_switches = read_switches
        self._note_memories = note_memories
        self._is_newest = session.open_stream()

    def send(self, streams: Streams, has_access: Callable[[], bool]) -> Iterator[bytes]:
        """Yield notifications until a limit is reached, a newer stream opens, access ends, or the server stops."""
        yield format_retry(RETRY_MS) + self._format_lists(self._read_switches())
        if not self._session.subscriptions.uris:
            # A stream occupies a thread of the server.
            yield format_retry(IDLE_RETRY_MS)
            return
        yield from streams.follow(
            lambda: self._read_step() if has_access() and self._is_newest() else None,
            self._note_sent,
            MAX_NOTIFICATIONS,
        )

    def _read_step(self) -> Step:
        page, switches = self._read(self._cursor), self._read_switches()
        uris = self._find_changed(page.events) if switches.is_enabled else []
        self._cursor = page.cursor
        return Step(
            self._format_lists(switches) + _format_updates(uris, page.cursor), len(uris), page.cursor, page.more
        )

    def _note_sent(self) -> None:
        # Only now: a stream that is opened later repeats what was not handed to a connection.
        self._session.cursor = self._cursor

    def _find_changed(self, events: Iterable[Event]) -> list[str]:
        ids = [None if event.type is EventType.RESET else event.memory_id for event in events]
        named = [memory_id for memory_id in ids if memory_id and self._session.subscriptions.names(memory_id)]
        if named:
            self._note_memories(named)
        return self._session.subscriptions.find_changed(ids)

    def _format_lists(self, switches: Switches) -> bytes:
        changed = self._session.compare(switches)
        blocks = [_format(f"notifications/{name}/list_changed") for name in changed._fields if getattr(changed, name)]
        return b"".join(blocks)


def _format_updates(uris: list[str], cursor: Cursor) -> bytes:
    """Return a notification per resource. The last one has the cursor: an incomplete block is sent again."""
    blocks = [_format("notifications/resources/updated", {"uri": uri}) for uri in uris]
    return b"".join([*blocks[:-1], *(f"id: {cursor}\n".encode() + block for block in blocks[-1:])])


def _format(method: str, params: dict[str, Any] | None = None) -> bytes:
    message = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
    return f"data: {json.dumps(message)}\n\n".encode()


PATH = "/mcp"
JSON = "application/json"
EXTENSION = "mcp"
# A session is notified of memories, not of jobs.
MEMORY_EVENTS = frozenset(EventType) - {EventType.JOB_DONE}

api = Api("mcp")


class ProfileQuery(QueryString):
    """The profile: which tools to offer."""

    profile: Literal["core", "full", "none"] = "core"


class FrontServers:
    """The MCP servers of an app, one per profile, created at the first request."""

    def __init__(self, app: Flask, apis: Sequence[Api]) -> None:
        self._app = app
        self._apis = apis
        self.sessions = HttpSessions()
        self._made: dict[str, FrontServer] = {}
        self._making = threading.Lock()

    def get(self, profile: str) -> "FrontServer":
        """Return the server of a profile."""
        with self._making:
            if profile not in self._made:
                from web.mcp.front import FrontServer
                from web.mcp.in_process import route_operations

                self._made[profile] = FrontServer(self._app, route_operations(self._apis), profile)
            return self._made[profile]


@api.route(
    Endpoint(
        "POST",
        PATH,
        "Answer one message of the Model Context Protocol in JSON",
        problems=(413, 415),
        of_folder=True,
        reads=True,
    )
)
def speak(call: Call, query: ProfileQuery) -> Response:
    """Pass a message to the SDK; its tools run endpoints of this app for the caller."""
    if request.mimetype != JSON:
        return problem(415, f"The Content-Type must be {JSON}.")
    # Reading the body rejects one that is too large.
    message = read_message(request.get_data(cache=False))
    if not isinstance(message, str):
        refusals = [refusal.render() for refusal in message]
        return json_response(refusals if len(refusals) > 1 else refusals[0], 400)
    body = message.encode()
    from web.mcp.front import SENDER, SUBSCRIBER
    from web.mcp.in_process import Sender

    servers = _find_servers()
    environ = request.environ | {
        "QUERY_STRING": "",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
        SENDER: Sender(call.caller, call.headers, g.request_id),
        SUBSCRIBER: Subscriber(_find_session(servers.sessions, call), lambda: find_end(call.workspace)),
    }
    response = cast(Response, Response.from_app(servers.get(query.profile), environ, buffered=True))
    is_handshake = '"initialize"' in message and json.loads(message).get("method") == "initialize"
    if response.status_code == HTTPStatus.OK and is_handshake:
        response.headers[SESSION_ID_HEADER] = servers.sessions.open(
            call.caller, call.workspace_id, _read_switches(call)
        )
    return response


@api.route(Endpoint("GET", PATH, media_type=MEDIA_TYPE, problems=(405, 406)))
def notify(call: Call) -> Response:
    """Stream the notifications of an MCP session as server-sent events."""
    if SESSION_ID_HEADER not in call.headers:
        refusal = problem(
            405, f"Only a session has notifications. Send the {SESSION_ID_HEADER} of the answer to `initialize`."
        )
        refusal.headers["Allow"] = "OPTIONS, POST"
        return refusal
    if not request.accept_mimetypes.quality(MEDIA_TYPE):
        return problem(406, f"The Accept header must name {MEDIA_TYPE}.")
    session = _find_session(_find_servers().sessions, call)
    if session is None:
        return problem(404, "This session is unknown; the server may have been restarted. Send `initialize` again.")
    last = call.headers.get(LAST_EVENT_ID)
    after = parse_cursor(last, LAST_EVENT_ID) if last else session.cursor or Cursor()
    viewer = viewer_of(Viewer(), replace(call.caller, is_agent=True))
    read = partial(read_events, call.workspace, wanted=EventFilter(viewer, MEMORY_EVENTS))
    stream = NotificationStream(
        session, after, read, lambda: _read_switches(call), note_later(call.container.access_log)
    )
    return stream_response(stream.send(open_streams(call), watch_access(call)))


def _find_session(sessions: HttpSessions, call: Call) -> HttpSession | None:
    return sessions.find(call.headers.get(SESSION_ID_HEADER, ""), call.caller, call.workspace_id)


def _find_servers() -> FrontServers:
    return cast(FrontServers, current_app.extensions[EXTENSION])


def _read_switches(call: Call) -> Switches:
    access = call.workspace.of(replace(call.caller, is_agent=True)).access
    return Switches(access.is_enabled, may_write=access.refusal is None)


def register_servers(app: Flask, apis: Sequence[Api]) -> None:
    """Serve MCP by an app, with tools that use the endpoints of its APIs."""
    app.extensions[EXTENSION] = FrontServers(app, apis)
