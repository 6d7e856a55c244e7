"""One declaration per endpoint: route, body, query and answer. The OpenAPI document is generated from it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

from flask import Blueprint, Response, current_app, g, request
from pydantic import BaseModel, ValidationError
from werkzeug.http import parse_etags

from pipeline.bootstrap.web import WebContainer
from pipeline.features.memories.usecases import check_expected, check_open
from pipeline.features.team.servers import LOCAL
from pipeline.kernel.errors import READ_ONLY_SESSION, FieldError, InvalidField, MalformedRequest, ReadOnly
from pipeline.kernel.feature import LAST
from pipeline.kernel.records.people import Role, qualified_name
from pipeline.kernel.store.history import written_by
from pipeline.kernel.workspace import find_home, resolve_id
from web.http.access import Need
from web.http.access_log import note_answer, note_workspace
from web.http.call import Call, EndpointRequest, check_name, create_call
from web.http.limits import check_queue

# Parameters of a path: a memory, a goal (which is a memory too) and a session.
MEMORY_ID = "memory_id"
GOAL_ID, SESSION_ID = "goal_id", "session_id"
# The longest parameter of a path. No name is longer, so a longer one is not looked up.
MAX_PATH_PART_CHARS = 2000
MAX_IF_MATCH_CHARS = 4096


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The declaration of an endpoint.

    `of_folder`: the workspace is found by a folder in the body. `reads`: it changes nothing although it is not a GET.
    `keeps_memories`: it changes people, maintenance or conversations, and works where memories are read-only.
    `needs`: a right other than reading or writing. `of_team`: a team's server answers if the body names a team in `to`,
    or the query in `from`. `body` and `query` come from the parameters of the handler, the summary from its docstring.
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
    def rule(self) -> str:
        """Return its path as a routing rule."""
        return self.path.replace("{", "<").replace("}", ">")

    @property
    def need(self) -> Need:
        """Return the caller's required right. The default is to read, or to write if the endpoint changes anything."""
        return self.needs or (Role.WRITER if self.writes else Role.READER)

    @property
    def is_conditional(self) -> bool:
        """Return whether it changes a memory only in the state that `If-Match` names."""
        return self.writes and f"{{{MEMORY_ID}}}" in self.path

    @property
    def writes(self) -> bool:
        """Return whether it changes the memories of a workspace."""
        return self.acts and not self.keeps_memories

    @property
    def acts(self) -> bool:
        """Return whether it changes anything: the access log is then written before the answer is sent."""
        return self.method != "GET" and not self.reads


Handler = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """An endpoint with its handler. HTTP and the MCP tools of the server both run it."""

    endpoint: Endpoint
    handler: Handler

    def run(self, container: WebContainer, sent: EndpointRequest, path: Mapping[str, str]) -> Any:
        """Check the caller and the request, run the handler, and return its answer as a model or as JSON."""
        endpoint, path = self.endpoint, dict(path)
        _check_path(path)
        call = create_call(container, sent, _list_expected(sent) if endpoint.is_conditional else None)
        # The owner's folder belongs to a workspace that no header names; the handler checks the right there.
        if not (endpoint.of_folder and call.caller.person is None):
            call.require(endpoint.need)
        if call.caller.is_read_only and endpoint.acts:
            raise ReadOnly(READ_ONLY_SESSION)
        parts = _validate_request(endpoint, sent)
        is_change = endpoint.writes and isinstance(endpoint.need, Role)
        if is_change:
            call.workspace.access.require_change()
            check_queue(call.workspace)
        if endpoint.of_team and (team := _named_team(parts)) is not None:
            return _ask_team(call, team, sent)
        call = _resolve_path(call, path, is_change=is_change)
        if call.expected is not None:
            # The handlers that edit and delete check it again, within the transaction.
            check_expected(call.workspace, path[MEMORY_ID], call.expected)
        note_workspace(call.workspace_id, acts=endpoint.acts)
        with written_by(call.caller.person_id):
            return self._create_answer(self.handler(call, **parts, **path))

    def _create_answer(self, answer: Any) -> Any:
        if self.endpoint.answer is None or isinstance(answer, Response):
            return answer
        # The model that the OpenAPI document describes also serializes the answer.
        model = self.endpoint.answer.model_validate(answer)
        note_answer(model)
        return model


class Api:
    """A blueprint whose routes are declared as endpoints."""

    def __init__(self, name: str, place: float = LAST, group: str | None = None) -> None:
        """Declare an API with its place among the others, and the group of routes in which it is documented."""
        self.name, self.place, self.group = name, place, group or name
        self.blueprint = Blueprint(name, __name__)
        self.operations: list[Operation] = []

    @property
    def endpoints(self) -> list[Endpoint]:
        """Return the declarations of its routes."""
        return [operation.endpoint for operation in self.operations]

    def route(self, endpoint: Endpoint) -> Callable[[Handler], Handler]:
        """Register a handler. It gets a Call, the body, the query and the parameters of the path.

        Its return value becomes the JSON body of the answer.
        """

        def register(handler: Handler) -> Handler:
            operation = Operation(_describe(endpoint, handler), handler)
            self.operations.append(operation)

            def view(**path: str) -> Response:
                return _answer(operation, path)

            self.blueprint.add_url_rule(endpoint.rule, handler.__name__, view, methods=[endpoint.method])
            return handler

        return register


def _describe(endpoint: Endpoint, handler: Handler) -> Endpoint:
    """Return an endpoint with the summary and the models of its handler."""
    parameters = handler.__annotations__
    # A session or a workspace may be read-only, and a team's server may be unreachable.
    problems = {HTTPStatus.CONFLICT.value} if endpoint.acts else set()
    problems |= {HTTPStatus.PRECONDITION_FAILED.value} if endpoint.is_conditional else set()
    problems |= {HTTPStatus.BAD_GATEWAY.value} if endpoint.of_team else set()
    return replace(
        endpoint,
        summary=endpoint.summary or (handler.__doc__ or "").partition("\n")[0].removesuffix("."),
        body=parameters.get("body"),
        query=parameters.get("query"),
        problems=tuple(sorted({*endpoint.problems, *problems})),
    )


def _answer(operation: Operation, path: dict[str, str]) -> Response:
    """Answer the HTTP request by an operation."""
    sent = EndpointRequest(
        request.method,
        request.path,
        request.headers,
        request.args.to_dict(),
        partial(request.get_data, cache=operation.endpoint.of_team),
        g.caller,
    )
    answer, status = operation.run(container(), sent, path), operation.endpoint.status
    if isinstance(answer, Response):
        return answer
    if not isinstance(answer, BaseModel):
        return json_response(answer, status)
    response = Response(answer.model_dump_json(by_alias=True), status, content_type="application/json")
    if (tag := g.get("state_tag")) is not None:
        response.set_etag(tag)
    return response


def note_state(tag: str) -> None:
    """Send the state of a memory as the ETag of the answer."""
    g.state_tag = tag


def _resolve_path(call: Call, path: dict[str, str], *, is_change: bool) -> Call:
    """Replace names in the path by the stored names; return the call for the workspace that has the memory."""
    if SESSION_ID in path:
        path[SESSION_ID] = check_name(SESSION_ID, path[SESSION_ID])
        path[SESSION_ID] = qualified_name(call.caller.person_id, path[SESSION_ID]) or path[SESSION_ID]
    if MEMORY_ID in path:
        path[MEMORY_ID] = resolve_id(call.workspace, path[MEMORY_ID])
        home = find_home(call.workspace, path[MEMORY_ID])
        if is_change:
            # The personal store may have settings of its own.
            home.access.require_change()
        call = replace(call, workspace_id=home.id)
    memory_id = path.get(MEMORY_ID) or path.get(GOAL_ID)
    if memory_id is not None and call.container.people.exists:
        check_open(call.workspace, memory_id)
    return call


def _list_expected(sent: EndpointRequest) -> frozenset[str] | None:
    """Return the strong tags of `If-Match`; None without the header, or if any state is permitted."""
    if "If-Match" not in sent.headers:
        return None
    named = sent.headers["If-Match"]
    if len(named) > MAX_IF_MATCH_CHARS:
        raise MalformedRequest(f"If-Match must have at most {MAX_IF_MATCH_CHARS} characters.")
    tags = parse_etags(named)
    return None if tags.star_tag else frozenset(tags.as_set())


def container() -> WebContainer:
    """Return the services of the running app."""
    return cast(WebContainer, current_app.extensions["container"])


def json_response(value: Any, status: int = 200) -> Response:
    """Return a JSON response in UTF-8 that keeps the order of the fields."""
    return Response(json.dumps(value, ensure_ascii=False), status, content_type="application/json")


def _named_team(parts: Mapping[str, BaseModel]) -> str | None:
    """Return the team that a request is for, None for this machine."""
    name = next((team for part in parts.values() if (team := getattr(part, "team", None)) is not None), LOCAL)
    return None if name == LOCAL else name


def _ask_team(call: Call, name: str, sent: EndpointRequest) -> Any:
    """Forward the request to a team's server, which checks it, and return the JSON of its answer."""
    if call.caller.person is not None:
        raise InvalidField(
            FieldError("to", f"must be {LOCAL}: only the owner of this data directory can use another team's server")
        )
    body = None
    if sent.method != "GET":
        body = json.loads(sent.read_body())
        del body["to"]
    return call.container.teams.send(name, sent.method, quote(sent.path), call.workspace_id, body)


def _check_path(path: Mapping[str, str]) -> None:
    for name, value in path.items():
        if len(value) > MAX_PATH_PART_CHARS:
            raise MalformedRequest(f"{name} must have at most {MAX_PATH_PART_CHARS} characters.")


def _validate_request(endpoint: Endpoint, sent: EndpointRequest) -> dict[str, BaseModel]:
    """Return the body and the query of a request, if the endpoint has them."""
    parts: dict[str, BaseModel] = {}
    try:
        if endpoint.body is not None:
            content = sent.read_body()
            parts["body"] = endpoint.body.model_validate_json(content if content or endpoint.body_required else b"{}")
        if endpoint.query is not None:
            parts["query"] = endpoint.query.model_validate(sent.query, strict=False)
    except ValidationError as error:
        raise _error_of_validation(error) from error
    return parts


def _error_of_validation(error: ValidationError) -> InvalidField | MalformedRequest:
    errors = error.errors(include_input=False, include_url=False, include_context=False)
    if any(item["type"] == "json_invalid" for item in errors):
        return MalformedRequest("The body is not valid JSON.")
    return InvalidField(*(FieldError(".".join(map(str, item["loc"])) or "body", item["msg"]) for item in errors))
