"""One declaration an endpoint: route, body, query, answer; the OpenAPI document is read from the same declarations."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flask import Blueprint, Response, current_app, g, request
from pydantic import BaseModel, ValidationError

from config.paths import WORKSPACE_HEADER, is_workspace_id
from config.settings import SETTINGS
from pipeline.bootstrap.web import WebContainer
from pipeline.errors import FieldError, InvalidField, MalformedRequest
from pipeline.records import OWNED
from pipeline.records.people import Caller, Role, own_name
from pipeline.services.memories import check_expected, check_open
from pipeline.services.workspaces import choose_workspace, note_claim
from pipeline.store.history import written_by
from pipeline.team.servers import LOCAL
from pipeline.workspace import Workspace, find_home, resolve_id
from web.access import Need, may_enter, may_write, require
from web.access_log import note_answer, note_workspace
from web.contract import CALLER_HEADER, INCOGNITO_HEADER, MCP, PROJECT_HEADER
from web.limits import check_queue

# The parameter of a path that names a memory.
MEMORY_ID = "memory_id"
# And those that name a goal, which is a memory, and a session.
GOAL_ID, SESSION_ID = "goal_id", "session_id"
# The longest part of a path: a name is hardly longer, and what has none so long is not looked for.
MAX_PATH_PART_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Call:
    """What every endpoint is called with: the container, the id of the workspace that is meant, and who asks."""

    container: WebContainer
    workspace_id: str
    caller: Caller
    # The states of a memory that the request permits; None permits any.
    expected: frozenset[str] | None = None
    # Whether nothing of the request may be stored. Kept here: some workspaces are entered after the request has ended.
    is_incognito: bool = False

    @property
    def workspace(self) -> Workspace:
        """Return the workspace that is meant, whether anything was written there or not."""
        return self.enter(self.workspace_id)

    def enter(self, workspace_id: str, need: Role = Role.READER) -> Workspace:
        """Return a workspace as the caller may use it; raise NotFound or Forbidden where they may not."""
        self.require(need, workspace_id)
        workspace = workspace_of_caller(self.container, self.caller, workspace_id)
        return workspace.as_incognito() if self.is_incognito else workspace

    def may_enter(self, workspace_id: str) -> bool:
        """Tell whether the caller may know of a workspace."""
        return may_enter(self.caller, workspace_id, self.container.people)

    def may_write(self, workspace_id: str) -> bool:
        """Tell whether the caller may change a workspace."""
        return may_write(self.caller, workspace_id, self.container.people)

    def require(self, need: Need, workspace_id: str | None = None) -> None:
        """Raise NotFound or Forbidden unless the caller may do, in a workspace, what a role is needed for."""
        require(self.caller, need, workspace_id or self.workspace_id, self.container.people)

    @property
    def project(self) -> str:
        """Return the workspace that a team is asked of: the project's own, whether it exists on this machine or not."""
        return _workspace_named(PROJECT_HEADER) or self.workspace_id


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What the OpenAPI document tells of an endpoint; one `of_folder` finds its workspace by a folder in its body.

    One that `reads` changes nothing though it is no GET. One that `keeps_memories` changes something else: people,
    upkeep, what is said; it also works where memories are read-only. Each says in `needs` if a caller needs more. One
    `of_team` is asked of a team's server where its body names one in `to`, or its query in `from`. What it takes its
    handler says: by its parameters `body` and `query`, and without a `summary` by its docstring.
    """

    method: str
    path: str
    summary: str = ""
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    status: int = 200
    body_required: bool = True
    media_type: str = "application/json"
    problems: tuple[int, ...] = field(default=())
    of_folder: bool = False
    reads: bool = False
    keeps_memories: bool = False
    needs: Need | None = None
    of_team: bool = False

    @property
    def need(self) -> Need:
        """Return what the caller needs: by default to read, and to change anything, to write."""
        return self.needs or (Role.WRITER if self.writes else Role.READER)

    @property
    def is_conditional(self) -> bool:
        """Tell whether it changes a memory only in the state that `If-Match` names."""
        return self.writes and f"{{{MEMORY_ID}}}" in self.path

    @property
    def writes(self) -> bool:
        """Tell whether it changes what a workspace holds."""
        return self.acts and not self.keeps_memories

    @property
    def acts(self) -> bool:
        """Tell whether it changes anything, so that the access log has it before the caller has an answer."""
        return self.method != "GET" and not self.reads


Handler = Callable[..., Any]


class Api:
    """A blueprint whose routes are declared as endpoints."""

    def __init__(self, name: str) -> None:
        self.blueprint = Blueprint(name, __name__)
        self.endpoints: list[Endpoint] = []

    def route(self, endpoint: Endpoint) -> Callable[[Handler], Handler]:
        """Register a handler: it gets a Call, what it takes of the request and the path's parameters.

        What it returns becomes the JSON body.
        """

        def register(handler: Handler) -> Handler:
            described = _describe(endpoint, handler)

            def view(**path: str) -> Response:
                return _answer(described, handler, path)

            self.endpoints.append(described)
            rule = endpoint.path.replace("{", "<").replace("}", ">")
            self.blueprint.add_url_rule(rule, handler.__name__, view, methods=[endpoint.method])
            return handler

        return register


def _describe(endpoint: Endpoint, handler: Handler) -> Endpoint:
    """Return an endpoint with what its handler says of it."""
    taken = handler.__annotations__
    # A workspace may be read only; a team's server may be away.
    more = {HTTPStatus.CONFLICT.value} if endpoint.writes else set()
    more |= {HTTPStatus.PRECONDITION_FAILED.value} if endpoint.is_conditional else set()
    more |= {HTTPStatus.BAD_GATEWAY.value} if endpoint.of_team else set()
    return replace(
        endpoint,
        summary=endpoint.summary or (handler.__doc__ or "").partition("\n")[0].removesuffix("."),
        body=taken.get("body"),
        query=taken.get("query"),
        problems=tuple(sorted({*endpoint.problems, *more})),
    )


def _answer(endpoint: Endpoint, handler: Handler, path: dict[str, str]) -> Response:
    _check_path(path)
    expected = _list_expected() if endpoint.is_conditional else None
    call = Call(container(), workspace_of_request(), g.caller, expected, _is_incognito_request())
    # Of a folder, the home's owner means another workspace than the one that no header names.
    if not (endpoint.of_folder and call.caller.person is None):
        call.require(endpoint.need)
    request_parts = _validate_request(endpoint)
    if endpoint.writes and isinstance(endpoint.need, Role):
        call.workspace.require_writable(by_tool=request.headers.get(CALLER_HEADER) == MCP)
        check_queue(call.workspace)
    if endpoint.of_team and (team := _named_team(request_parts)) is not None:
        return json_response(_ask_team(call, team), endpoint.status)
    call = _name_in_full(call, path)
    if call.expected is not None:
        # The routes that edit and delete check it again, within the transaction.
        check_expected(call.workspace, path[MEMORY_ID], call.expected)
    note_workspace(call.workspace_id, acts=endpoint.acts)
    # Of a folder, another workspace may be in use than the one that no header names.
    if endpoint.method != "GET" and not endpoint.of_folder:
        call.container.prefetcher.notify_activity(call.workspace_id)
    with written_by(call.caller.person_id):
        return _render(endpoint, handler(call, **request_parts, **path))


def _name_in_full(call: Call, path: dict[str, str]) -> Call:
    """Let a path name its memory and its session as they are stored; return the call of where the memory is kept."""
    if SESSION_ID in path:
        path[SESSION_ID] = check_name(SESSION_ID, path[SESSION_ID])
        path[SESSION_ID] = own_name(call.caller.person_id, path[SESSION_ID]) or path[SESSION_ID]
    if MEMORY_ID in path:
        path[MEMORY_ID] = resolve_id(call.workspace, path[MEMORY_ID])
        home = find_home(call.workspace, path[MEMORY_ID])
        call = replace(call, workspace_id=home.id)
    named = path.get(MEMORY_ID) or path.get(GOAL_ID)
    if named is not None and call.container.people.exists:
        check_open(call.workspace, named)
    return call


def _list_expected() -> frozenset[str] | None:
    """Return the strong tags of `If-Match`; None without the header, or where any state will do."""
    if "If-Match" not in request.headers or request.if_match.star_tag:
        return None
    return frozenset(request.if_match.as_set())


def check_name(loc: str, name: str) -> str:
    """Return a name that a caller sent; raise MalformedRequest for one that could be another person's."""
    if OWNED in name:
        raise MalformedRequest(f"{loc} must not hold {OWNED}")
    return name


def workspace_of_caller(container: WebContainer, caller: Caller, workspace_id: str) -> Workspace:
    """Return a workspace as its caller works on it."""
    if caller.person is None:
        return container.workspace(workspace_id)
    is_reader = not caller.may(workspace_id, Role.WRITER)
    return container.workspace(workspace_id).of_person(caller.person.id, is_reader=is_reader)


def container() -> WebContainer:
    """Return the services of the running app."""
    found: WebContainer = current_app.extensions["container"]
    return found


def json_response(value: Any, status: int = 200) -> Response:
    """Render JSON, in UTF-8 and in the order given."""
    return Response(json.dumps(value, ensure_ascii=False), status, content_type="application/json")


def workspace_of_request() -> str:
    """Return the workspace that the header names; raise MalformedRequest when it cannot be one."""
    return _workspace_named(WORKSPACE_HEADER) or "default"


def _workspace_named(header: str) -> str | None:
    named = request.headers.get(header)
    if named is not None and not is_workspace_id(named):
        raise MalformedRequest(f"{header} must match [a-z0-9][a-z0-9._-]{{0,63}}")
    return named


def _is_incognito_request() -> bool:
    """Tell whether the sender wants nothing of this request stored; raise MalformedRequest for an unknown word."""
    try:
        return bool(SETTINGS["incognito"].parse(request.headers.get(INCOGNITO_HEADER, False)))
    except ValueError as error:
        raise MalformedRequest(f"{INCOGNITO_HEADER} {error}") from error


def workspace_of_folder(call: Call, folder: str, *, to_write: bool = False) -> Workspace:
    """Return the workspace that the header names, else the one that a folder belongs to, and note that it is in use.

    To write, a project's own workspace is meant even before there is one. A person's folder is on their own machine:
    nothing is looked up here, and only the header counts.
    """
    found = workspace_finder(call, to_write=to_write)(folder)
    call.container.prefetcher.notify_activity(found.id)
    return found


def workspace_finder(call: Call, *, to_write: bool) -> Callable[[str], Workspace]:
    """Return what finds the workspace of a folder for this caller, also after the request has ended."""
    if call.caller.person is not None:
        return lambda _folder: call.workspace
    explicit = call.workspace_id if WORKSPACE_HEADER in request.headers else None
    return partial(_find_workspace, call, explicit, to_write=to_write)


def _find_workspace(call: Call, explicit: str | None, folder: str, *, to_write: bool) -> Workspace:
    choice = choose_workspace(
        Path(folder) if folder else None,
        call.container.settings,
        explicit=explicit,
        environment=None,
        to_write=to_write,
    )
    if choice.identity is not None:
        try:
            note_claim(call.container.settings, choice.identity, to_write=to_write)
        except OSError as error:
            call.container.operations.record_error("claims", f"{type(error).__name__}: {error}")
        if choice.identity.problem is not None:
            call.container.report_unused_file(choice.identity.problem)
    return call.enter(choice.workspace)


def _render(endpoint: Endpoint, answer: Any) -> Response:
    if isinstance(answer, Response):
        return answer
    if endpoint.answer is None:
        return json_response(answer, endpoint.status)
    # The model that the document describes is what serializes.
    model = endpoint.answer.model_validate(answer)
    note_answer(model)
    return Response(model.model_dump_json(by_alias=True), endpoint.status, content_type="application/json")


def _named_team(parts: Mapping[str, BaseModel]) -> str | None:
    """Return the team that a request is for, None for this machine."""
    name = next((team for part in parts.values() if (team := getattr(part, "team", None)) is not None), LOCAL)
    return None if name == LOCAL else name


def _ask_team(call: Call, name: str) -> Any:
    """Hand the request to a team's server, which checks it by itself, and return what it answers."""
    if call.caller.person is not None:
        raise InvalidField(FieldError("to", f"must be {LOCAL}: another team's server knows this home's owner alone"))
    body = None
    if request.method != "GET":
        body = json.loads(request.get_data())
        del body["to"]
    return call.container.teams.send(name, request.method, quote(request.path), call.project, body)


def _check_path(path: Mapping[str, str]) -> None:
    for name, value in path.items():
        if len(value) > MAX_PATH_PART_CHARS:
            raise MalformedRequest(f"{name} must have at most {MAX_PATH_PART_CHARS} characters")


def _validate_request(endpoint: Endpoint) -> dict[str, BaseModel]:
    """Return the body and the query of the request, as far as the endpoint takes them."""
    found: dict[str, BaseModel] = {}
    try:
        if endpoint.body is not None:
            raw = request.get_data(cache=endpoint.of_team)
            found["body"] = endpoint.body.model_validate_json(raw if raw or endpoint.body_required else b"{}")
        if endpoint.query is not None:
            found["query"] = endpoint.query.model_validate(request.args.to_dict(), strict=False)
    except ValidationError as error:
        raise _as_problem(error) from error
    return found


def _as_problem(error: ValidationError) -> InvalidField | MalformedRequest:
    found = error.errors(include_input=False, include_url=False, include_context=False)
    if any(item["type"] == "json_invalid" for item in found):
        return MalformedRequest("the body is not valid JSON")
    return InvalidField(*(FieldError(".".join(map(str, item["loc"])) or "body", item["msg"]) for item in found))
