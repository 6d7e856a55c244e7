"""How a page is declared: its path, its query or form, what it renders."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from http import HTTPStatus
from types import MappingProxyType
from typing import Annotated, Any
from urllib.parse import urlsplit

from flask import Blueprint, Response, current_app, flash, g, redirect, render_template, request, session, url_for
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import PydanticCustomError
from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Response as AnyResponse

from config.paths import is_workspace_id
from pipeline.bootstrap.web import WebContainer
from pipeline.errors import FieldError, InvalidField, NotFound
from pipeline.records import MAX_CONTENT_CHARS
from pipeline.records.people import Role, own_name
from pipeline.services.memories import check_open, written_by
from pipeline.services.workspace import Workspace
from pipeline.times import normalize_typed_time
from web.access import Need, may_write, require
from web.dashboard.sign_in import is_forged
from web.endpoint import SESSION_ID, check_name, container, workspace_of_caller

PAGE_SIZE = 50
MAX_SEARCH_CHARS = 200
# No field holds more, whatever the models say of each; the longest is a memory's text.
MAX_FIELD_CHARS = 2 * MAX_CONTENT_CHARS
MAX_BOXES = 100
# What a change can be taken back with is kept until the page that offers it is drawn: a cookie has room for little.
UNDOS = "dashboard_undos"
MOST_UNDOS = 64


def _to_utc_text(given: str) -> str:
    # A browser's `datetime-local` tells no zone; its label says that UTC is meant.
    try:
        return normalize_typed_time(given)
    except ValueError as error:
        raise PydanticCustomError("moment", "must be a date or time in UTC, such as 2026-03-01T12:00") from error


Moment = Annotated[str, AfterValidator(_to_utc_text)]
Search = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_SEARCH_CHARS)]


class Query(BaseModel):
    """What stands behind the question mark; empty fields of a form count as not given, unknown ones as a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Cursor = Annotated[int, Field(ge=0, lt=2**62)]


class Paged(Query):
    """The query of a list: from below which cursor."""

    before: Cursor | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What a page is asked for: the container, the workspace's id, the validated query or form, and the present."""

    container: WebContainer
    workspace_id: str
    query: Any
    form: Any
    now: datetime

    @property
    def workspace(self) -> Workspace:
        """Return the workspace that is looked at, as who looks may use it, whether anything was written or not."""
        return workspace_of_caller(self.container, g.caller, self.workspace_id)

    def may_write(self, workspace_id: str) -> bool:
        """Tell whether who looks may change a workspace."""
        return may_write(g.caller, workspace_id, self.container.people)


Handler = Callable[..., str | AnyResponse]


# The parameters of a path that name a memory.
MEMORIES = frozenset({"memory_id", "goal_id", "lesson_id", "denying_id", "denied_id"})
# Sections that change nothing that is remembered in the workspace itself.
UPKEEP = frozenset({"settings", "workers", "claims", "me"})


@dataclass(frozen=True, slots=True)
class _Route:
    rule: str
    name: str
    call: Callable[..., AnyResponse]
    method: str


class Section:
    """Pages and actions on one subject, all of them below `/w/<workspace>`."""

    def __init__(self, name: str, needs: Need | None = None) -> None:
        self.name = name
        self.needs = needs
        self.routes: list[_Route] = []

    def page(
        self, rule: str, query: type[Query] = Query, *, empty_too: bool = False, needs: Need | None = None
    ) -> Callable[[Handler], Handler]:
        """Register a page: gets a View and the path's parameters, returns HTML or a response.

        Of a workspace without any memory a page tells just that, unless `empty_too`. Who `needs` more than to read, or
        for an action to write, says so here or for the whole section.
        """

        def register(handler: Handler) -> Handler:
            def call(view: View, **path: str) -> str | AnyResponse:
                if not empty_too and not _exists(view):
                    return show("nothing_yet.html", view, title="No memories yet")
                return handler(view, **path)

            self._add(rule, handler, call, query=query, need=needs or self.needs or Role.READER)
            return handler

        return register

    def action(
        self, rule: str, form: type[BaseModel] | None = None, *, needs: Need | None = None
    ) -> Callable[[Handler], Handler]:
        """Register a change, asked for by a form of ours; most return `back(…)`."""

        def register(handler: Handler) -> Handler:
            self._add(rule, handler, handler, form=form, need=needs or self.needs or Role.WRITER)
            return handler

        return register

    def _add(
        self,
        rule: str,
        handler: Handler,
        call: Handler,
        *,
        query: type[Query] | None = None,
        form: type[BaseModel] | None = None,
        need: Need,
    ) -> None:
        @wraps(handler)
        def answer(workspace: str, **path: str) -> AnyResponse:
            if not is_workspace_id(workspace):
                raise NotFound("This is not a valid workspace name. Check the address.")
            require(g.caller, need, workspace, container().people)
            if query is None and is_forged(request.form.get("csrf", "")):
                return error_page(HTTPStatus.FORBIDDEN, "This form has expired. Reload the page and try again.")
            if query is None and self.name not in UPKEEP:
                container().workspace(workspace).require_writable()
            view = View(
                container(),
                workspace,
                None if query is None else _validate(query, _values(query, request.args)),
                None if form is None else _validate(form, _values(form, request.form)),
                datetime.now(UTC),
            )
            if query is None:
                view.container.prefetcher.notify_activity(workspace)
            if container().people.exists:
                for name in MEMORIES.intersection(path):
                    check_open(view.workspace, path[name])
            if SESSION_ID in path:
                path[SESSION_ID] = own_name(view.workspace.person_id, check_name(SESSION_ID, path[SESSION_ID])) or ""
            with written_by(view.workspace.person_id):
                found = call(view, **path)
            return Response(found, mimetype="text/html") if isinstance(found, str) else found

        method = "GET" if query is not None else "POST"
        self.routes.append(_Route(f"/w/<workspace>{rule}", f"{self.name}_{handler.__name__}", answer, method))

    def enter(self, blueprint: Blueprint) -> None:
        """Register everything with the blueprint; a handler `list_all` of the section `goals` is `goals_list_all`."""
        for route in self.routes:
            blueprint.add_url_rule(route.rule, route.name, route.call, methods=[route.method])


def show(template: str, view: View, **values: Any) -> str:
    """Render a page within the frame of all pages."""
    if "id" in session and session.get("workspace") != view.workspace_id:
        session["workspace"] = view.workspace_id
    return render_template(template, view=view, workspace=view.workspace_id, now=view.now, **values)


def back(
    view: View, message: str, *, to: str | None = None, undo: tuple[str, Mapping[str, str]] | None = None
) -> AnyResponse:
    """Return to where the form stood, or to a path of ours, and tell what was done.

    `undo` is the path of the action that takes it back, and its fields.
    """
    flashed: dict[str, Any] = {"text": message, "undo": None}
    if undo is not None:
        flashed["undo"] = {"path": undo[0], "key": undos().keep(undo[1])}
    # Flask takes whatever its sessions can hold; its types know texts alone.
    flash(flashed)  # type: ignore[arg-type]
    return redirect(to or _came_from() or url_for("dashboard.overview_home", workspace=view.workspace_id), 303)


def next_page(next_cursor: int | None, *, name: str = "before", anchor: str | None = None, **also: Any) -> str | None:
    """Return the address of the same list from below a cursor on; some of its query may be given here."""
    if next_cursor is None:
        return None
    given = {**request.args.to_dict(flat=False), **(request.view_args or {}), **also}
    values = {**given, name: next_cursor, "_anchor": anchor}
    return url_for(str(request.endpoint), **values)


def error_page(status: int, message: str) -> Response:
    """Return a page that tells what went wrong."""
    kind = HTTPStatus(status)
    known: str | None = g.get("workspace")
    workspace = known if known is not None and is_workspace_id(known) else None
    page = render_template("error.html", title=kind.phrase, message=message, workspace=workspace, view=None)
    return Response(page, status, mimetype="text/html")


def _exists(view: View) -> bool:
    return view.workspace.exists


def _values(model: type[BaseModel], given: MultiDict[str, str]) -> dict[str, Any]:
    # Several boxes of one name are a list; everything else is one text.
    several = {name for name, field in model.model_fields.items() if "tuple" in str(field.annotation)}
    return {name: given.getlist(name) if name in several else given[name] for name in given if name != "csrf"}


def _validate(model: type[BaseModel], values: Mapping[str, Any]) -> BaseModel:
    for name, value in values.items():
        most = MAX_FIELD_CHARS if isinstance(value, str) else MAX_BOXES
        if len(value) > most:
            raise InvalidField(FieldError(name, f"must have at most {most} characters or boxes"))
    try:
        return model.model_validate({name: value for name, value in values.items() if value != ""})
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False, include_context=False)
        raise InvalidField(*(FieldError(".".join(map(str, e["loc"])) or "form", e["msg"]) for e in found)) from error


def _came_from() -> str | None:
    """Return the path of the page that the form stood on, if it was one of ours."""
    parts = urlsplit(request.headers.get("Referer", ""))
    if parts.netloc != request.host or not parts.path.startswith("/w/"):
        return None
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


class Undos:
    """Keep the fields of actions that take something back; the oldest of many are forgotten."""

    def __init__(self, most: int = MOST_UNDOS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Mapping[str, str]] = OrderedDict()

    def keep(self, fields: Mapping[str, str]) -> str:
        """Keep an action's fields; return the key under which they are found again."""
        key = secrets.token_urlsafe(16)
        with self._lock:
            self._kept[key] = MappingProxyType(dict(fields))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return key

    def fields(self, key: str) -> Mapping[str, str] | None:
        """Return an action's fields, None when they are kept no more."""
        with self._lock:
            return self._kept.get(key)


def undos() -> Undos:
    """Return what the running app keeps."""
    known: Undos = current_app.extensions.setdefault(UNDOS, Undos())
    return known
