"""Declaration of pages and actions: path, query or form, and access."""

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from http import HTTPStatus
from inspect import Parameter, signature
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

from flask import Blueprint, Response, current_app, flash, g, redirect, render_template, request, session, url_for
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model
from pydantic_core import PydanticCustomError
from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Response as AnyResponse

from config.paths import is_workspace_id
from pipeline.bootstrap.web import WebContainer
from pipeline.features.memories.usecases import check_open
from pipeline.kernel.errors import FieldError, InvalidField, NotFound
from pipeline.kernel.feature import LAST
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import MAX_CONTENT_CHARS
from pipeline.kernel.records.people import Role, qualified_name
from pipeline.kernel.store.history import written_by
from pipeline.kernel.times import normalize_typed_time
from pipeline.kernel.workspace import Workspace
from pipeline.sessions.import_progress import read_imported_sessions
from web.dashboard.sign_in import is_forged
from web.http.access import Need, require
from web.http.call import check_name
from web.http.endpoint import SESSION_ID, container

PAGE_SIZE = 50
MAX_SEARCH_CHARS = 200
# Limit of every field, checked before validation; the text of a memory is the longest.
MAX_FIELD_CHARS = 2 * MAX_CONTENT_CHARS
MAX_BOXES = 100
# Undo fields are stored on the server until the next page shows them: a cookie has little room.
UNDOS = "dashboard_undos"
MOST_UNDOS = 64


def _to_utc_text(text: str) -> str:
    # A `datetime-local` field has no time zone; its label says UTC.
    try:
        return normalize_typed_time(text)
    except ValueError as error:
        raise PydanticCustomError("moment", "must be a date or time in UTC, such as 2026-03-01T12:00") from error


Moment = Annotated[str, AfterValidator(_to_utc_text)]
Search = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_SEARCH_CHARS)]


class Query(BaseModel):
    """Query string of a page; empty fields are ignored, unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Cursor = Annotated[int, Field(ge=0, lt=2**62)]


class Paged(Query):
    """Query of a list with its cursor."""

    before: Cursor | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A request: container, workspace id, validated query of a page or form of an action, and current time."""

    container: WebContainer
    workspace_id: str
    query: Any
    form: Any
    now: datetime

    @property
    def workspace(self) -> Workspace:
        """Return the workspace with the access of the caller; it may not exist yet."""
        return self.container.workspace(self.workspace_id).of(g.caller)

    def may_write(self, workspace_id: str) -> bool:
        """Return whether the role of the caller allows changes in a workspace."""
        return not self.workspace.sibling(workspace_id).access.is_reader


Handler = Callable[..., str | AnyResponse]


# Path parameters that contain the id of a memory.
MEMORIES = frozenset({"memory_id", "goal_id", "lesson_id", "denying_id", "denied_id"})
# Sections that do not change memories of the workspace.
WITHOUT_MEMORIES = frozenset({"settings", "workers", "claims", "me"})


@dataclass(frozen=True, slots=True)
class _Route:
    rule: str
    name: str
    call: Callable[..., AnyResponse]
    method: str


@dataclass(frozen=True, slots=True)
class Link:
    """A page in the navigation: label, endpoint, group and place; `with_people` if only other people need it."""

    label: str
    endpoint: str
    group: str
    place: float = LAST
    with_people: bool = False


class Section:
    """Pages and actions of one topic, all below `/w/<workspace>`, and the link to them in the navigation."""

    def __init__(self, name: str, needs: Need | None = None, link: Link | None = None) -> None:
        self.name = name
        self.needs = needs
        self.link = link
        self.routes: list[_Route] = []

    def page(
        self, rule: str, query: type[Query] = Query, *, empty_too: bool = False, needs: Need | None = None
    ) -> Callable[[Handler], Handler]:
        """Register a page: its handler gets a View and the path parameters, and returns HTML or a response.

        Its other parameters are fields of the query string, like those of `query`. Workspaces without memories show an
        empty page, unless `empty_too`. `needs` overrides the access of the section (default: read; for actions: write).
        """

        def register(handler: Handler) -> Handler:
            def call(view: View, **path: str) -> str | AnyResponse:
                if not empty_too and not view.workspace.exists:
                    return show("nothing_yet.html", view, title="No memories yet", sessions=describe_imported(view))
                return handler(view, **path)

            self._add(rule, handler, call, query, "GET", needs or self.needs or Role.READER)
            return handler

        return register

    def action(
        self, rule: str, form: type[BaseModel] = BaseModel, *, needs: Need | None = None
    ) -> Callable[[Handler], Handler]:
        """Register an action. Its parameters that are not in the path are fields of its form, like those of `form`.

        Most handlers return `back(…)`.
        """

        def register(handler: Handler) -> Handler:
            self._add(rule, handler, handler, form, "POST", needs or self.needs or Role.WRITER)
            return handler

        return register

    def _add(self, rule: str, handler: Handler, call: Handler, base: type[BaseModel], method: str, need: Need) -> None:
        fields = _list_fields(handler, rule)
        model = create_model(handler.__name__, __base__=base, **fields)

        @wraps(handler)
        def answer(workspace: str, **path: str) -> AnyResponse:
            if not is_workspace_id(workspace):
                raise NotFound("This is not a valid workspace name. Check the address.")
            require(g.caller, need, workspace, container().people)
            if method == "POST" and is_forged(request.form.get("csrf", "")):
                return error_page(HTTPStatus.FORBIDDEN, "This form has expired. Reload the page and try again.")
            if method == "POST" and self.name not in WITHOUT_MEMORIES:
                container().workspace(workspace).of(g.caller).access.require_change()
            sent = _validate(model, _values(model, request.form if method == "POST" else request.args))
            view = View(container(), workspace, sent, sent, datetime.now(UTC))
            if container().people.exists:
                for name in MEMORIES.intersection(path):
                    check_open(view.workspace, path[name])
            if SESSION_ID in path:
                name = check_name(SESSION_ID, path[SESSION_ID])
                path[SESSION_ID] = qualified_name(view.workspace.person_id, name) or ""
            with written_by(view.workspace.person_id):
                result = call(view, **path, **{name: getattr(sent, name) for name in fields})
            return Response(result, mimetype="text/html") if isinstance(result, str) else result

        self.routes.append(_Route(f"/w/<workspace>{rule}", f"{self.name}_{handler.__name__}", answer, method))

    def enter(self, blueprint: Blueprint) -> None:
        """Register all routes with the blueprint; `list_all` in the section `goals` becomes `goals_list_all`."""
        for route in self.routes:
            blueprint.add_url_rule(route.rule, route.name, route.call, methods=[route.method])


def show(template: str, view: View, **values: Any) -> str:
    """Render a page with the common layout."""
    if "id" in session and session.get("workspace") != view.workspace_id:
        session["workspace"] = view.workspace_id
    return render_template(template, view=view, workspace=view.workspace_id, now=view.now, **values)


def describe_imported(view: View) -> str | None:
    """Describe the running import of sessions, or the imported sessions of the workspace."""
    imported = read_imported_sessions([view.workspace], view.container.stores.transcripts)
    return imported.describe(view.now)


def back(
    view: View, message: str, *, to: str | None = None, undo: tuple[str, Mapping[str, str]] | None = None
) -> AnyResponse:
    """Redirect to the page of the form, or to `to`, and show a message there.

    `undo` is the path and the fields of the action that reverts the change.
    """
    flashed: dict[str, Any] = {"text": message, "undo": None}
    if undo is not None:
        key = secrets.token_urlsafe(16)
        undos().put(key, dict(undo[1]))
        flashed["undo"] = {"path": undo[0], "key": key}
    # Flask accepts all serializable values, but its type annotation allows only text.
    flash(flashed)  # type: ignore[arg-type]
    return redirect(to or _came_from() or url_for("dashboard.overview_home", workspace=view.workspace_id), 303)


def next_page(next_cursor: int | None, *, name: str = "before", anchor: str | None = None, **also: Any) -> str | None:
    """Return the address of the next page of a list; `also` overrides parameters."""
    if next_cursor is None:
        return None
    parameters = {**request.args.to_dict(flat=False), **(request.view_args or {}), **also}
    values = {**parameters, name: next_cursor, "_anchor": anchor}
    return url_for(str(request.endpoint), **values)


def error_page(status: int, message: str) -> Response:
    """Return an error page."""
    kind = HTTPStatus(status)
    known: str | None = g.get("workspace")
    workspace = known if known is not None and is_workspace_id(known) else None
    page = render_template("error.html", title=kind.phrase, message=message, workspace=workspace, view=None)
    return Response(page, status, mimetype="text/html")


def _list_fields(handler: Handler, rule: str) -> dict[str, Any]:
    """Return the type and the default of each parameter of a handler that is neither the view nor in the path."""
    others = {"view", "_view", *re.findall(r"<(?:\w+:)?(\w+)>", rule)}
    return {
        name: (parameter.annotation, ... if parameter.default is Parameter.empty else parameter.default)
        for name, parameter in signature(handler).parameters.items()
        if name not in others
    }


def _values(model: type[BaseModel], submitted: MultiDict[str, str]) -> dict[str, Any]:
    # Checkboxes with the same name form a list; other fields have a single value.
    several = {name for name, field in model.model_fields.items() if "tuple" in str(field.annotation)}
    return {
        name: submitted.getlist(name) if name in several else submitted[name] for name in submitted if name != "csrf"
    }


def _validate(model: type[BaseModel], values: Mapping[str, Any]) -> BaseModel:
    for name, value in values.items():
        most = MAX_FIELD_CHARS if isinstance(value, str) else MAX_BOXES
        if len(value) > most:
            raise InvalidField(FieldError(name, f"must have at most {most} characters or boxes"))
    try:
        return model.model_validate({name: value for name, value in values.items() if value != ""})
    except ValidationError as error:
        errors = error.errors(include_input=False, include_url=False, include_context=False)
        raise InvalidField(*(FieldError(".".join(map(str, e["loc"])) or "form", e["msg"]) for e in errors)) from error


def _came_from() -> str | None:
    """Return the path of the page that submitted the form, None for pages of other sites."""
    parts = urlsplit(request.headers.get("Referer", ""))
    if parts.netloc != request.host or not (parts.path == "/" or parts.path.startswith("/w/")):
        return None
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def undos() -> LruCache[str, Mapping[str, str]]:
    """Return the fields of the undo actions of the running app by their keys."""
    return cast(LruCache[str, Mapping[str, str]], current_app.extensions.setdefault(UNDOS, LruCache(MOST_UNDOS)))
