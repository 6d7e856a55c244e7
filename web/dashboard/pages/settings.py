"""Settings: what holds, where it comes from and what would change it; incognito sessions; and the token."""

import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from flask import session, url_for
from pydantic import BaseModel, Field
from werkzeug.wrappers import Response

from config.declared import Secret
from config.saving import save_workspace_setting
from config.settings import (
    ENVIRONMENT_ONLY,
    ENVIRONMENT_PREFIX,
    SETTINGS,
    WORKSPACE_SETTINGS,
    SettingOrigin,
    Settings,
    SettingsError,
    UnreadableSettings,
    environment_of,
    environment_with,
    explain_settings,
)
from pipeline.bootstrap import mask
from pipeline.bootstrap.web import WebContainer
from pipeline.errors import Conflict, FieldError, InvalidField, NotFound
from pipeline.records.people import Role, own_name
from pipeline.services import incognito
from pipeline.services.incognito import IncognitoSession
from web.access import Access
from web.api.bodies import SessionId
from web.dashboard.view import PAGE_SIZE, Query, Section, View, back, show

section = Section("settings", Role.OWNER)

OTHERS = 0o077
# Python refuses to read numbers of thousands of digits; no setting comes near.
MAX_VALUE_CHARS = 32
# Where a setting may come from besides a file.
DEFAULT, ENVIRONMENT, UNKNOWN = "default", "environment", "unknown"


class SettingsQuery(Query):
    """Where the list of sessions goes on."""

    below: str | None = None


class SettingForm(BaseModel):
    """A setting that a workspace may have of its own, and its value; without one the home's holds again."""

    name: str
    value: Annotated[str, Field(max_length=MAX_VALUE_CHARS)] | None = None


class SessionForm(BaseModel):
    """A session."""

    session_id: SessionId


@dataclass(frozen=True, slots=True)
class Token:
    """Where the token stands, since when (seconds since the epoch), and who may read it."""

    file: Path
    made: float
    mode: int

    @property
    def is_open(self) -> bool:
        """Tell whether others than its owner may read it."""
        return bool(self.mode & OTHERS)


@dataclass(frozen=True, slots=True)
class HomeSetting:
    """A setting of the home: the value in force as text, and where that comes from.

    `origin` is `default`, `environment`, `unknown` or a file, whose `line` sets it; `waiting` is what the next start
    takes instead, if that differs.
    """

    name: str
    help: str
    value: str
    origin: str
    line: int | None
    waiting: str | None
    environment_only: bool

    @property
    def variable(self) -> str:
        """Return the variable of the environment that sets it."""
        return _variable(self.name)

    @property
    def is_plain(self) -> bool:
        """Tell whether nobody has set it."""
        return self.origin == DEFAULT and self.waiting is None


@dataclass(frozen=True, slots=True)
class WorkspaceSetting:
    """A setting that a workspace may have of its own: the value in force, its own, and the one that the home gives it.

    What the environment has `fixed` nothing else changes; `least` and `most` are the limits of a number.
    """

    name: str
    help: str
    value: int | bool
    own: int | bool | None
    given: int | bool
    fixed: bool
    least: int | None
    most: int | None

    @property
    def variable(self) -> str:
        """Return the variable of the environment that sets it."""
        return _variable(self.name)


@dataclass(frozen=True, slots=True)
class SettingsOverview:
    """Every setting of a home and what one workspace may have of its own, or why a file of theirs cannot be taken."""

    home: tuple[HomeSetting, ...]
    own: Mapping[str, WorkspaceSetting]
    problem: str | None


@section.page("/settings", SettingsQuery, empty_too=True)
def list_all(view: View) -> str:
    """Show every setting."""
    sessions = _sessions(view)
    listed = sessions[:PAGE_SIZE]
    return show(
        "settings.html",
        view,
        title="Settings",
        settings=explain_for_page(view.container, view.workspace_id),
        home_config=view.container.settings.paths.config,
        own_config=view.container.stores.configs.place(view.workspace_id),
        sessions=listed,
        sessions_url=_next_sessions(listed[-1]) if len(sessions) > PAGE_SIZE else None,
        token=_token(view),
    )


@section.action("/settings/value", SettingForm)
def set_value(view: View) -> Response:
    """Give this workspace a value of its own, or take it away."""
    name, given = view.form.name, view.form.value
    if name not in WORKSPACE_SETTINGS:
        raise NotFound(f"There is no workspace setting {name}. Change server settings in config.toml.")
    before = explain_for_page(view.container, view.workspace_id).own[name].own
    _save(view, name, None if given is None else _parse_value(name, given))
    undo = (
        url_for("dashboard.settings_set_value"),
        {"name": name, "value": "" if before is None else _format_value(before)},
    )
    now = explain_for_page(view.container, view.workspace_id).own[name]
    whose = "the default" if now.own is None else "in this workspace"
    return back(view, f"{name} is {_format_value(now.value)}, {whose}.", undo=undo)


@section.action("/settings/sessions/silence", SessionForm)
def begin_incognito(view: View) -> Response:
    """Make a session incognito."""
    incognito.begin_incognito(view.workspace, _session(view))
    undo = (url_for("dashboard.settings_end_incognito"), {"session_id": view.form.session_id})
    return back(view, "The session is incognito. Reverie stores nothing from it.", undo=undo)


@section.action("/settings/sessions/unsilence", SessionForm)
def end_incognito(view: View) -> Response:
    """Let a session be stored again."""
    incognito.end_incognito(view.workspace, _session(view))
    undo = (url_for("dashboard.settings_begin_incognito"), {"session_id": view.form.session_id})
    return back(view, "The session is no longer incognito.", undo=undo)


@section.page("/settings/token", empty_too=True, needs=Access.HOME)
def token(view: View) -> str:
    """Tell what a new token brings with it, and ask."""
    return show("new_token.html", view, title="Create a new token?", token=_token(view))


@section.action("/settings/token/new", needs=Access.HOME)
def renew_token(view: View) -> Response:
    """Put a new token in the place of the present one; this browser stays signed in."""
    view.container.settings.paths.renew_token()
    # Signed anew, with the token of now, even if nothing else in it changes.
    session.modified = True
    to = url_for("dashboard.settings_list_all", _anchor="token")
    return back(view, "New token created. The old token no longer works, and all other browsers are signed out.", to=to)


def _session(view: View) -> str:
    named: str = view.form.session_id
    return own_name(view.workspace.person_id, named) or named


def _sessions(view: View) -> list[IncognitoSession]:
    try:
        return incognito.list_incognito(view.workspace, PAGE_SIZE + 1, view.query.below)
    except NotFound:
        # Nothing was written yet, so nobody is incognito either.
        return []


def _next_sessions(last: IncognitoSession) -> str:
    return url_for("dashboard.settings_list_all", below=last.place, _anchor="record")


def _token(view: View) -> Token | None:
    paths = view.container.settings.paths
    if not paths.token_file.is_file():
        return None
    status = paths.token_file.stat()
    return Token(paths.token_file, status.st_mtime, stat.S_IMODE(status.st_mode))


def _parse_value(name: str, given: str) -> int | bool:
    if SETTINGS[name].type is bool:
        if given not in ("true", "false"):
            raise InvalidField(FieldError(name, "must be true or false"))
        return given == "true"
    if not (given.isascii() and given.isdigit()):
        raise InvalidField(FieldError(name, "must be a whole number"))
    return int(given)


def _save(view: View, name: str, value: int | bool | None) -> None:
    try:
        save_workspace_setting(view.container.stores.configs, view.workspace_id, name, value)
    except UnreadableSettings as error:
        raise Conflict(str(error)) from error
    except SettingsError as error:
        raise InvalidField(FieldError(name, str(error))) from error


def _format_value(value: int | bool) -> str:
    return str(value).lower()


def explain_for_page(container: WebContainer, workspace_id: str) -> SettingsOverview:
    """Tell of every setting, as it is in force now."""
    home, problem = _explain(container, None)
    mine, own_problem = _explain(container, workspace_id)
    in_force = container.workspace(workspace_id).settings
    place = container.stores.configs.place(workspace_id)
    return SettingsOverview(
        tuple(_home_setting(container.settings, one) for name, one in home.items() if name not in WORKSPACE_SETTINGS),
        {
            name: _workspace_setting(in_force, home[name], mine[name], place)
            for name in home
            if name in WORKSPACE_SETTINGS
        },
        problem or own_problem,
    )


def _explain(container: WebContainer, workspace_id: str | None) -> tuple[dict[str, SettingOrigin], str | None]:
    try:
        own = None if workspace_id is None else container.stores.configs.read(workspace_id)
        found = explain_settings(environment_of(container.settings.paths), own)
    except SettingsError as error:
        running = {
            name: SettingOrigin(name, getattr(container.settings, name), UNKNOWN, setting.help)
            for name, setting in SETTINGS.items()
        }
        return running, str(error)
    return {one.name: one for one in found}, None


def _home_setting(running: Settings, found: SettingOrigin) -> HomeSetting:
    value = getattr(running, found.name)
    origin = found.origin
    if found.name == "home":
        # The explanation was given this home, wherever it came from.
        origin = ENVIRONMENT if _variable("home") in environment_with({}) else DEFAULT
        waits = False
    else:
        waits = found.value != value
    return HomeSetting(
        found.name,
        found.help,
        _format_masked(value),
        origin,
        None if origin in (DEFAULT, ENVIRONMENT, UNKNOWN) else _find_line(Path(origin), found.name),
        _format_masked(found.value) if waits else None,
        found.name in ENVIRONMENT_ONLY,
    )


def _workspace_setting(in_force: Settings, home: SettingOrigin, mine: SettingOrigin, place: str) -> WorkspaceSetting:
    limits = SETTINGS[home.name]
    return WorkspaceSetting(
        home.name,
        home.help,
        getattr(in_force, home.name),
        mine.value if mine.origin == place else None,
        home.value,
        mine.origin == ENVIRONMENT,
        limits.least,
        limits.most,
    )


def _format_masked(value: Any) -> str:
    if isinstance(value, Secret):
        return "set, hidden" if value.reveal() else "not set"
    if isinstance(value, bool):
        return "true" if value else "false"
    # An address may hold a password.
    return mask(str(value)) or "empty"


def _find_line(file: Path, name: str) -> int | None:
    setting = re.compile(rf"""\s*["']?{re.escape(name)}["']?\s*=""")
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, start=1) if setting.match(line)), None)


def _variable(name: str) -> str:
    return f"{ENVIRONMENT_PREFIX}{name.upper()}"
