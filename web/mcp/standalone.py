"""The server of the tools of one stdio session in this process: no stack, no port, no other process.

It opens the files of the data directory as the web server does. Each write is committed durably before its answer,
and a stack or another session may use the same files at the same time.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ulid import ULID
from werkzeug.datastructures import Headers

from config.paths import READ_ONLY_HEADER, WORKSPACE_HEADER
from config.process import STANDALONE, Role, RoleInUse, configure_logging, limit_heaps
from config.settings import Settings, environment_incognito, environment_read_only
from pipeline.bootstrap import mask
from pipeline.bootstrap.web import WebContainer
from pipeline.errors import Conflict, EncoderUnavailable
from pipeline.http.event_stream import Block, read_blocks
from pipeline.index.encoders import usual_model
from pipeline.records import Viewer
from pipeline.records.people import HOME_OWNER
from pipeline.services.events import EventFilter, find_end, parse_cursor, read_events
from web.api.caller_scope import viewer_of
from web.api.events import Reader
from web.app import APIS, create_app
from web.contract import INCOGNITO_HEADER
from web.mcp.bridge import Choose, stores_memory
from web.mcp.digestion_thread import DigestionThread, open_worker
from web.mcp.in_process import InProcessServer, Operations, Sender
from web.streams import Streams

HEAPS = 2


class StandaloneServer:
    """Runs the endpoints of the HTTP API for the tools of one session, in the workspace of its folder."""

    def __init__(
        self, container: WebContainer, digestion: DigestionThread, workspace: Choose, *, read_only: bool = False
    ) -> None:
        self._container = container
        self._digestion = digestion
        self._workspace = workspace
        self._read_only = read_only or environment_read_only()
        self._app = create_app(container)
        self._operations = Operations(APIS)
        switches = {INCOGNITO_HEADER: environment_incognito(), READ_ONLY_HEADER: self._read_only}
        self._switches = {header: "true" for header, is_on in switches.items() if is_on}

    def start(self) -> None:
        """Load the encoder in the background if it is compiled, and digest what the session writes."""
        with suppress(EncoderUnavailable):
            self._container.encoders.get(usual_model(self._container.settings))
        if not self._read_only:
            self._digestion.start()

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Run one endpoint and return its answer as JSON; raise ReverieError for anything but success."""
        chosen = self._workspace(to_write=not self._read_only and stores_memory(method, path))
        headers = Headers({WORKSPACE_HEADER: chosen, **self._switches})
        sender = Sender(HOME_OWNER, headers, str(ULID()))
        return InProcessServer(self._app, self._operations, sender).call(method, path, body, query)

    def events(self, after: str | None) -> Iterator[Block]:
        """Yield the events of the session's workspace for a limited time, also of other programs on the same files."""
        workspace = self._container.workspace(self._workspace(to_write=False))
        cursor = find_end(workspace) if after is None else parse_cursor(after, "after")
        wanted = EventFilter(viewer_of(Viewer(), replace(HOME_OWNER, is_agent=True)))
        reader = Reader(partial(read_events, workspace, wanted=wanted), cursor, workspace.id, lambda _ids: None)
        blocks = reader.stream(Streams(1, self._container.stopping), lambda: True)
        yield from read_blocks(line for block in blocks for line in block.splitlines())

    def close(self) -> None:
        """Stop every thread and close every file. Work that was not digested stays queued."""
        self._digestion.close()
        self._container.close()


def prepare_process(settings: Settings) -> None:
    """Log without secrets, and limit the memory that threads share, as a web server does."""
    limit_heaps(HEAPS)
    configure_logging("WARNING", mask, shows_values=not settings.paths.store_key.exists())


def open_standalone(settings: Settings, workspace: Choose, *, read_only: bool = False) -> StandaloneServer:
    """Return the server of a session; raise Conflict while a command replaces files of the data directory."""
    settings.paths.ensure()
    _check_role(settings)
    digestion = DigestionThread(partial(open_worker, settings))
    server = StandaloneServer(WebContainer(settings, digestion.notify), digestion, workspace, read_only=read_only)
    server.start()
    return server


def _check_role(settings: Settings) -> None:
    role = Role(settings.paths.root, STANDALONE)
    try:
        role.take()
    except RoleInUse as error:
        raise Conflict(
            "Cannot start: a command such as `reverie store encrypt` is replacing files of the data directory. "
            "Try again when it is finished."
        ) from error
    role.release()
