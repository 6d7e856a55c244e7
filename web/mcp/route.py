"""The route of MCP on the web server, with the checks that need no SDK."""

import threading
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Literal, cast

from flask import Flask, Response, current_app, g, request

from web.api.bodies import QueryString
from web.call import Call
from web.endpoint import Api, Endpoint, json_response
from web.mcp.messages import read_message
from web.problems import problem

if TYPE_CHECKING:
    from web.mcp.front import FrontServer

PATH = "/mcp"
JSON = "application/json"
EXTENSION = "mcp"

api = Api("mcp")


class ProfileQuery(QueryString):
    """The profile: which tools to offer."""

    profile: Literal["core", "full"] = "core"


class FrontServers:
    """The MCP servers of an app, one per profile, created at the first request."""

    def __init__(self, app: Flask, apis: Sequence[Api]) -> None:
        self._app = app
        self._apis = apis
        self._made: dict[str, FrontServer] = {}
        self._making = threading.Lock()

    def get(self, profile: str) -> "FrontServer":
        """Return the server of a profile."""
        with self._making:
            if profile not in self._made:
                from web.mcp.front import FrontServer
                from web.mcp.in_process import Operations

                self._made[profile] = FrontServer(self._app, Operations(self._apis), profile)
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
    from web.mcp.front import SENDER
    from web.mcp.in_process import Sender

    environ = request.environ | {
        "QUERY_STRING": "",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
        SENDER: Sender(call.caller, call.headers, g.request_id),
    }
    servers: FrontServers = current_app.extensions[EXTENSION]
    return cast(Response, Response.from_app(servers.get(query.profile), environ, buffered=True))


def register_servers(app: Flask, apis: Sequence[Api]) -> None:
    """Serve MCP by an app, with tools that use the endpoints of its APIs."""
    app.extensions[EXTENSION] = FrontServers(app, apis)
