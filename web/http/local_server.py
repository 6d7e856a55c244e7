"""Answer a command about people in its own process, while no server of the data directory runs.

The first person of a team's server is added before it starts: it refuses to start without a valid token.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from ulid import ULID
from werkzeug.datastructures import Headers

from config.paths import READ_ONLY_HEADER, WORKSPACE_HEADER
from config.settings import Settings, environment_read_only
from pipeline.bootstrap.web import WebContainer
from pipeline.kernel.records.people import HOME_OWNER
from web.features.people import http as people
from web.http.lazy_app import prepare_app
from web.http.metrics import Metrics
from web.mcp.in_process import InProcessServer, Sender, route_operations


def answer_here(
    settings: Settings, workspace_id: str, method: str, path: str, body: Any, query: Mapping[str, Any] | None
) -> Any:
    """Run an endpoint for people as the owner; return its answer as JSON or raise ReverieError."""
    is_read_only = environment_read_only()
    headers = Headers({WORKSPACE_HEADER: workspace_id, READ_ONLY_HEADER: str(is_read_only)})
    sender = Sender(HOME_OWNER, headers, str(ULID()), is_agent=False)
    # Reading creates no data directory; no worker runs that would have to be woken.
    creates = method != "GET" and not is_read_only
    with closing(WebContainer(settings, lambda *_: None, creates=creates)) as container:
        app = prepare_app(container, Metrics(container))
        return InProcessServer(app, route_operations([people.api]), sender).call(method, path, body, query)
