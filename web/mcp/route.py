"""The routes of MCP on the web server, with the checks that need no SDK."""

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Literal, cast

from flask import Flask, Response, current_app, g, request

from pipeline.records import Viewer
from pipeline.services.events import Cursor, EventFilter, EventType, find_end, parse_cursor, read_events
from web.access_log import note_later
from web.api.bodies import QueryString
from web.api.caller_scope import viewer_of
from web.api.events import LAST_EVENT_ID, stream_response, streams_of, watch_access
from web.call import Call
from web.endpoint import Api, Endpoint, json_response
from web.mcp.http_sessions import HEADER, HttpSession, HttpSessions, Subscriber
from web.mcp.messages import read_message
from web.mcp.notification_stream import NotificationStream
from web.mcp.offered_tools import Switches
from web.problems import problem
from web.streams import MEDIA_TYPE

if TYPE_CHECKING:
    from web.mcp.front import FrontServer

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
    if response.status_code == HTTPStatus.OK and _is_handshake(message):
        response.headers[HEADER] = servers.sessions.open(call.caller, call.workspace_id, _read_switches(call))
    return response


@api.route(Endpoint("GET", PATH, media_type=MEDIA_TYPE, problems=(405, 406)))
def notify(call: Call) -> Response:
    """Stream the notifications of an MCP session as server-sent events."""
    if HEADER not in call.headers:
        refusal = problem(405, f"Only a session has notifications. Send the {HEADER} of the answer to `initialize`.")
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
    return stream_response(stream.send(streams_of(call.container), watch_access(call)))


def _find_session(sessions: HttpSessions, call: Call) -> HttpSession | None:
    return sessions.find(call.headers.get(HEADER, ""), call.caller, call.workspace_id)


def _find_servers() -> FrontServers:
    servers: FrontServers = current_app.extensions[EXTENSION]
    return servers


def _read_switches(call: Call) -> Switches:
    settings = call.workspace.settings
    return Switches(settings.enabled, may_write=settings.write_tools and not settings.read_only)


def _is_handshake(message: str) -> bool:
    return '"initialize"' in message and json.loads(message).get("method") == "initialize"


def register_servers(app: Flask, apis: Sequence[Api]) -> None:
    """Serve MCP by an app, with tools that use the endpoints of its APIs."""
    app.extensions[EXTENSION] = FrontServers(app, apis)
