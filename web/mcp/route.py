"""The route of MCP on the web server: what it checks before the SDK is loaded."""

import threading
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, cast

from flask import Flask, Response, current_app, request

from web.api.bodies import QueryString
from web.endpoint import Api, Call, Endpoint, json_response
from web.mcp.messages import read_message
from web.problems import problem

if TYPE_CHECKING:
    from web.mcp.front import FrontServer

PATH = "/mcp"
JSON = "application/json"
EXTENSION = "mcp"

api = Api("mcp")


class ProfileQuery(QueryString):
    """Which tools to offer."""

    profile: Literal["core", "full"] = "core"


class FrontServers:
    """The servers of an app, a profile each, made when somebody first asks."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._made: dict[str, FrontServer] = {}
        self._making = threading.Lock()

    def get(self, profile: str) -> "FrontServer":
        """Return the server of a profile."""
        with self._making:
            if profile not in self._made:
                from web.mcp.front import FrontServer

                self._made[profile] = FrontServer(self._app, profile, self._app.config["MAX_CONTENT_LENGTH"])
            return self._made[profile]


@api.route(
    Endpoint(
        "POST",
        PATH,
        "Speak the Model Context Protocol: one message, answered in JSON",
        problems=(413, 415),
        of_folder=True,
        reads=True,
    )
)
def speak(_call: Call, query: ProfileQuery) -> Response:
    """Hand a message to the SDK, whose tools ask this app as the caller."""
    if request.mimetype != JSON:
        return problem(415, f"Content-Type must be {JSON}")
    # Too long a body is refused here.
    message = read_message(request.get_data(cache=False))
    if not isinstance(message, str):
        refusals = [refusal.render() for refusal in message]
        return json_response(refusals if len(refusals) > 1 else refusals[0], 400)
    body = message.encode()
    environ = request.environ | {"QUERY_STRING": "", "CONTENT_LENGTH": str(len(body)), "wsgi.input": BytesIO(body)}
    servers: FrontServers = current_app.extensions[EXTENSION]
    return cast(Response, Response.from_app(servers.get(query.profile), environ, buffered=True))


def register_servers(app: Any) -> None:
    """Let an app serve MCP."""
    app.extensions[EXTENSION] = FrontServers(app)
