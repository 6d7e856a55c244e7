"""One call of an endpoint: its request, its caller, and the workspaces that the caller may use.

Nothing here depends on Flask: an MCP tool on the server calls endpoints without an HTTP request.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from werkzeug.datastructures import Headers

from config.paths import READ_ONLY_HEADER, WORKSPACE_HEADER, is_workspace_id
from config.settings import SETTINGS
from pipeline.bootstrap.web import WebContainer
from pipeline.features.maintenance.operations import summarize_workspace
from pipeline.features.workspaces.usecases import choose_workspace, describe_earlier, list_earlier, note_claim
from pipeline.kernel.errors import MalformedRequest
from pipeline.kernel.records import OWNED
from pipeline.kernel.records.people import Caller, Role
from pipeline.kernel.workspace import Workspace
from web.http.access import Need, may_enter, require
from web.http.contract import CALLER_HEADER, FOLDER_HEADER, INCOGNITO_HEADER, MCP

DEFAULT_WORKSPACE = "default"


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """The request of an endpoint: over HTTP, or by an MCP tool in this process. `path` and `query` are decoded."""

    method: str
    path: str
    headers: Headers
    query: Mapping[str, str]
    read_body: Callable[[], bytes]
    caller: Caller


@dataclass(frozen=True, slots=True)
class Call:
    """The first argument of every endpoint: the services, the caller, and the workspace that the request names."""

    container: WebContainer
    workspace_id: str
    caller: Caller
    headers: Headers
    # The states of a memory that the request permits; None permits any state.
    expected: frozenset[str] | None = None
    # The folder on this machine that the request comes from.
    folder: Path | None = None

    @property
    def workspace(self) -> Workspace:
        """Return the workspace that the request names. It need not exist yet."""
        return self.enter(self.workspace_id)

    @property
    def named_workspace(self) -> str | None:
        """Return the workspace that a header of the request names, None without that header."""
        return _workspace_of_header(self.headers, WORKSPACE_HEADER)

    def enter(self, workspace_id: str, need: Role = Role.READER) -> Workspace:
        """Return a workspace as the caller may use it; raise NotFound or Forbidden if they may not."""
        self.require(need, workspace_id)
        return self.container.workspace(workspace_id).of(self.caller).from_folder(self.folder)

    def may_enter(self, workspace_id: str) -> bool:
        """Return whether the caller may see that a workspace exists."""
        return may_enter(self.caller, workspace_id, self.container.people)

    def require(self, need: Need, workspace_id: str | None = None) -> None:
        """Raise NotFound or Forbidden unless the caller has a role or a right in a workspace."""
        require(self.caller, need, workspace_id or self.workspace_id, self.container.people)


def create_call(container: WebContainer, request: EndpointRequest, expected: frozenset[str] | None) -> Call:
    """Return the call of a request; raise MalformedRequest for a header that is not valid."""
    workspace_id = _workspace_of_header(request.headers, WORKSPACE_HEADER) or DEFAULT_WORKSPACE
    caller = replace(
        request.caller,
        is_agent=request.headers.get(CALLER_HEADER) == MCP,
        is_incognito=_read_switch(request.headers, "incognito", INCOGNITO_HEADER),
        is_read_only=_read_switch(request.headers, "read_only", READ_ONLY_HEADER),
    )
    call = Call(container, workspace_id, caller, request.headers, expected)
    folder = request.headers.get(FOLDER_HEADER, "")
    return replace(call, folder=Path(unquote(folder))) if folder else call


def _workspace_of_header(headers: Headers, header: str) -> str | None:
    workspace_id = headers.get(header)
    if workspace_id is not None and not is_workspace_id(workspace_id):
        raise MalformedRequest(f"The header {header} must match [a-z0-9][a-z0-9._-]{{0,63}}.")
    return workspace_id


def _read_switch(headers: Headers, setting: str, header: str) -> bool:
    """Return whether a header turns a setting on for this request; raise MalformedRequest for another value."""
    try:
        return bool(SETTINGS[setting].parse(headers.get(header, False)))
    except ValueError as error:
        raise MalformedRequest(f"{header} {error}") from error


def check_name(loc: str, name: str) -> str:
    """Return a name that a caller sent; raise MalformedRequest for a name that could belong to another person."""
    if OWNED in name:
        raise MalformedRequest(f"{loc} must not contain {OWNED}.")
    return name


def workspace_of_folder(call: Call, folder: str, *, to_write: bool = False) -> Workspace:
    """Return the workspace that the header names, else the workspace of a folder.

    With `to_write`, record the workspace that a project's file claims. A person's folder is on their own machine: no
    folder is looked up here, and only the header counts.
    """
    workspace = workspace_finder(call, to_write=to_write)(folder)
    return workspace.from_folder(Path(folder)) if folder else workspace


def workspace_finder(call: Call, *, to_write: bool) -> Callable[[str], Workspace]:
    """Return a function that finds the workspace of a folder for this caller, also after the request has ended."""
    if call.caller.person is not None:
        return lambda _folder: call.workspace
    explicit = call.workspace_id if WORKSPACE_HEADER in call.headers else None
    return partial(_find_workspace, call, explicit, to_write=to_write)


def describe_earlier_memories(call: Call, folder: str) -> list[str]:
    """Describe the other workspaces of the owner that may contain earlier memories of a folder's project."""
    path, settings = Path(folder), call.container.settings
    if call.caller.person is not None or WORKSPACE_HEADER in call.headers or not path.is_absolute():
        return []
    is_used = call.container.stores.is_in_use
    choice = choose_workspace(path, settings, explicit=None, environment=None, is_used=is_used)
    names = list_earlier(settings, choice)
    counts = {name: summarize_workspace(call.container.workspace(name)).memories for name in names}
    earlier = [describe_earlier(name, count, choice.workspace) for name, count in counts.items() if count]
    return [f"{says} Ask the user first." for says in earlier]


def _find_workspace(call: Call, explicit: str | None, folder: str, *, to_write: bool) -> Workspace:
    path = Path(folder)
    choice = choose_workspace(
        # A relative folder would be looked up in the server's own working directory.
        path if path.is_absolute() else None,
        call.container.settings,
        explicit=explicit,
        environment=None,
        is_used=call.container.stores.is_in_use,
    )
    if choice.identity is not None:
        try:
            note_claim(call.container.settings, choice.identity, to_write=to_write and not call.caller.is_read_only)
        except OSError as error:
            call.container.operations.record_error("claims", f"{type(error).__name__}: {error}")
        if choice.identity.problem is not None:
            call.container.report_unused_file(choice.identity.problem)
    return call.enter(choice.workspace)
