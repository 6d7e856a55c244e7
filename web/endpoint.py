"""One declaration an endpoint: route, body, query, answer; the OpenAPI document is read from the same declarations."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, current_app, g, request
from pydantic import BaseModel, ValidationError

from config.paths import is_workspace_id
from config.settings import environment_workspace
from pipeline.bootstrap.web import WebContainer
from pipeline.errors import FieldError, InvalidField, MalformedRequest
from pipeline.records.people import Caller
from pipeline.services.memories import find_home, resolve_id
from pipeline.services.workspace import Workspace
from pipeline.services.workspaces import choose_workspace, note_claim
from web.contract import CALLER_HEADER, MCP, WORKSPACE_HEADER

# The parameter of a path that names a memory.
MEMORY_ID = "memory_id"
# The longest part of a path: a name is hardly longer, and what has none so long is not looked for.
MAX_PATH_PART_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Call:
    """What every endpoint is called with: the container, the id of the workspace that is meant, and who asks."""

    container: WebContainer
    workspace_id: str
    caller: Caller

    @property
    def workspace(self) -> Workspace:
        """Return the workspace that is meant, whether anything was written there or not."""
        return self.container.workspace(self.workspace_id)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What the OpenAPI document tells of an endpoint; one `of_folder` finds its workspace by a folder in its body.

    One that `reads` changes nothing in the workspace though it is no GET.
    What it takes its handler says: by its parameters `body` and `query`, and without a `summary` by its docstring.
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

    @property
    def writes(self) -> bool:
        """Tell whether it changes what a workspace holds."""
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
            taken = handler.__annotations__
            # A workspace may be read only.
            problems = endpoint.problems
            if endpoint.writes and HTTPStatus.CONFLICT not in problems:
                problems = tuple(sorted((*problems, HTTPStatus.CONFLICT.value)))
            described = replace(
                endpoint,
                summary=endpoint.summary or (handler.__doc__ or "").partition("\n")[0].removesuffix("."),
                body=taken.get("body"),
                query=taken.get("query"),
                problems=problems,
            )

            def view(**path: str) -> Response:
                _check_path(path)
                call = Call(container(), workspace_of_request(), g.caller)
                request_parts = _validate_request(described)
                if described.writes:
                    call.workspace.require_writable(by_tool=request.headers.get(CALLER_HEADER) == MCP)
                if MEMORY_ID in path:
                    path[MEMORY_ID] = resolve_id(call.workspace, path[MEMORY_ID])
                    call = replace(call, workspace_id=find_home(call.workspace, path[MEMORY_ID]).id)
                # Of a folder, another workspace may be in use than the one that no header names.
                if described.method != "GET" and not described.of_folder:
                    call.container.prefetcher.notify_activity(call.workspace_id)
                return _render(described, handler(call, **request_parts, **path))

            self.endpoints.append(described)
            rule = endpoint.path.replace("{", "<").replace("}", ">")
            self.blueprint.add_url_rule(rule, handler.__name__, view, methods=[endpoint.method])
            return handler

        return register


def container() -> WebContainer:
    """Return the services of the running app."""
    found: WebContainer = current_app.extensions["container"]
    return found


def json_response(value: Any, status: int = 200) -> Response:
    """Render JSON, in UTF-8 and in the order given."""
    return Response(json.dumps(value, ensure_ascii=False), status, content_type="application/json")


def workspace_of_request() -> str:
    """Return the workspace that the header names; raise MalformedRequest when it cannot be one."""
    workspace = request.headers.get(WORKSPACE_HEADER, "default")
    if not is_workspace_id(workspace):
        raise MalformedRequest(f"{WORKSPACE_HEADER} must match [a-z0-9][a-z0-9._-]{{0,63}}")
    return workspace


def workspace_of_folder(call: Call, folder: str, *, to_write: bool = False) -> Workspace:
    """Return the workspace that the header names, else the one that a folder belongs to, and note that it is in use.

    To write, a project's own workspace is meant even before there is one.
    """
    # A .reverie.toml that cannot be taken is left out: the command line tells of it, an agent could do nothing.
    choice = choose_workspace(
        Path(folder) if folder else None,
        call.container.settings,
        explicit=call.workspace_id if WORKSPACE_HEADER in request.headers else None,
        environment=environment_workspace(),
        to_write=to_write,
        exists=call.container.databases.exists,
    )
    if choice.identity is not None:
        try:
            note_claim(call.container.settings, choice.identity, to_write=to_write)
        except OSError as error:
            call.container.operations.record_error("claims", f"{type(error).__name__}: {error}")
    call.container.prefetcher.notify_activity(choice.workspace)
    return call.container.workspace(choice.workspace)


def _render(endpoint: Endpoint, answer: Any) -> Response:
    if isinstance(answer, Response):
        return answer
    if endpoint.answer is None:
        return json_response(answer, endpoint.status)
    # The model that the document describes is what serializes.
    text = endpoint.answer.model_validate(answer).model_dump_json(by_alias=True)
    return Response(text, endpoint.status, content_type="application/json")


def _check_path(path: Mapping[str, str]) -> None:
    for name, value in path.items():
        if len(value) > MAX_PATH_PART_CHARS:
            raise MalformedRequest(f"{name} must have at most {MAX_PATH_PART_CHARS} characters")


def _validate_request(endpoint: Endpoint) -> dict[str, BaseModel]:
    """Return the body and the query of the request, as far as the endpoint takes them."""
    found: dict[str, BaseModel] = {}
    try:
        if endpoint.body is not None:
            raw = request.get_data(cache=False)
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
