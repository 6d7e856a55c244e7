"""Settings with their values and origins, incognito sessions, and the token."""

import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from flask import session, url_for
from pydantic import Field
from werkzeug.wrappers import Response

from config.declared import Secret
from config.settings import (
    ENVIRONMENT_ONLY,
    ENVIRONMENT_PREFIX,
    SETTINGS,
    WORKSPACE_SETTINGS,
    SettingOrigin,
    Settings,
    environment_of,
    environment_with,
    explain_settings,
)
from config.toml_files import SettingsError, UnreadableSettings
from config.workspace_configs import save_workspace_setting
from pipeline.bootstrap import mask
from pipeline.bootstrap.web import WebContainer
from pipeline.kernel.errors import Conflict, FieldError, InvalidField, NotFound
from pipeline.kernel.records.people import Role, qualified_name
from pipeline.kernel.store.agent_sessions import IncognitoSession
from pipeline.sessions import incognito
from web.dashboard.view import PAGE_SIZE, Link, Section, View, back, show
from web.http.access import Right
from web.http.bodies import SessionId

section = Section("settings", Role.OWNER, Link("Settings", "settings_list_all", "Maintenance"))

OTHERS = 0o077
# Python refuses to parse numbers with thousands of digits; settings need far fewer.
MAX_VALUE_CHARS = 32
# Origins of a setting other than a file.
DEFAULT, ENVIRONMENT, UNKNOWN = "default", "environment", "unknown"


@dataclass(frozen=True, slots=True)
class Token:
    """The token file, its modification time (seconds since the epoch) and its mode."""

    file: Path
    made: float
    mode: int

    @property
    def is_open(self) -> bool:
        """Return whether other users can read the file."""
        return bool(self.mode & OTHERS)


@dataclass(frozen=True, slots=True)
class HomeSetting:
    """A server setting with its current value as text.

    `origin` is `default`, `environment`, `unknown` or a file; `line` is the line in that file. `waiting` is the value
    after the next start, if it differs.
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
        """Return the name of the environment variable."""
        return _variable(self.name)

    @property
    def is_plain(self) -> bool:
        """Return whether the setting has its default value."""
        return self.origin == DEFAULT and self.waiting is None


@dataclass(frozen=True, slots=True)
class WorkspaceSetting:
    """A setting that a workspace can override: current value, workspace value (`own`) and server value (`given`).

    `fixed` means that an environment variable sets it. `least` and `most` are the limits of a number.
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
        """Return the name of the environment variable."""
        return _variable(self.name)


@dataclass(frozen=True, slots=True)
class SettingsOverview:
    """All server and workspace settings, and the problem of an invalid settings file."""

    home: tuple[HomeSetting, ...]
    own: Mapping[str, WorkspaceSetting]
    problem: str | None


@section.page("/settings", empty_too=True)
def list_all(view: View, *, below: str | None = None) -> str:
    """Show all settings; `below` is the cursor of the list of incognito sessions."""
    sessions = _sessions(view, below)
    listed = sessions[:PAGE_SIZE]
    return show(
        "settings.html",
        view,
        title="Settings",
        settings=explain_for_page(view.container, view.workspace_id),
        home_config=view.container.settings.paths.config,
        own_config=view.container.stores.configs.place(view.workspace_id),
        sessions=listed,
        sessions_url=None
        if len(sessions) <= PAGE_SIZE
        else url_for("dashboard.settings_list_all", below=listed[-1].place, _anchor="record"),
        token=_token(view),
    )


@section.action("/settings/value")
def set_value(
    view: View, *, name: str, value: Annotated[str, Field(max_length=MAX_VALUE_CHARS)] | None = None
) -> Response:
    """Set a workspace setting; without a value, the server setting applies again."""
    if name not in WORKSPACE_SETTINGS:
        raise NotFound(f"There is no workspace setting {name}. Change server settings in config.toml.")
    before = explain_for_page(view.container, view.workspace_id).own[name].own
    _save(view, name, None if value is None else _parse_value(name, value))
    undo = (
        url_for("dashboard.settings_set_value"),
        {"name": name, "value": "" if before is None else _format_value(before)},
    )
    now = explain_for_page(view.container, view.workspace_id).own[name]
    whose = "the default" if now.own is None else "in this workspace"
    return back(view, f"{name} is {_format_value(now.value)}, {whose}.", undo=undo)


@section.action("/settings/sessions/silence")
def begin_incognito(view: View, *, session_id: SessionId) -> Response:
    """Make a session incognito."""
    incognito.begin_incognito(view.workspace, _qualify(view, session_id))
    undo = (url_for("dashboard.settings_end_incognito"), {"session_id": session_id})
    return back(view, "The session is incognito. Reverie stores nothing from it.", undo=undo)


@section.action("/settings/sessions/unsilence")
def end_incognito(view: View, *, session_id: SessionId) -> Response:
    """End the incognito mode of a session."""
    incognito.end_incognito(view.workspace, _qualify(view, session_id))
    undo = (url_for("dashboard.settings_begin_incognito"), {"session_id": session_id})
    return back(view, "The session is no longer incognito.", undo=undo)


@section.page("/settings/token", empty_too=True, needs=Right.HOME)
def token(view: View) -> str:
    """Show the effects of a new token, and ask for confirmation."""
    return show("new_token.html", view, title="Create a new token?", token=_token(view))


@section.action("/settings/token/new", needs=Right.HOME)
def renew_token(view: View) -> Response:
    """Replace the token; this browser stays signed in."""
    view.container.settings.paths.renew_token()
    # Mark the session as modified, so that its cookie is signed with the new token.
    session.modified = True
    to = url_for("dashboard.settings_list_all", _anchor="token")
    return back(view, "New token created. The old token no longer works, and all other browsers are signed out.", to=to)


def _qualify(view: View, session_id: str) -> str:
    return qualified_name(view.workspace.person_id, session_id) or session_id


def _sessions(view: View, below: str | None) -> list[IncognitoSession]:
    try:
        return incognito.list_incognito(view.workspace, PAGE_SIZE + 1, below)
    except NotFound:
        # The workspace does not exist yet, so it has no incognito sessions.
        return []


def _token(view: View) -> Token | None:
    paths = view.container.settings.paths
    if not paths.token_file.is_file():
        return None
    status = paths.token_file.stat()
    return Token(paths.token_file, status.st_mtime, stat.S_IMODE(status.st_mode))


def _parse_value(name: str, text: str) -> int | bool:
    if SETTINGS[name].type is bool:
        if text not in ("true", "false"):
            raise InvalidField(FieldError(name, "must be true or false"))
        return text == "true"
    if not (text.isascii() and text.isdigit()):
        raise InvalidField(FieldError(name, "must be an integer"))
    return int(text)


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
    """Return all settings with their current values and origins."""
    home, problem = _explain(container, None)
    mine, own_problem = _explain(container, workspace_id)
    in_force = container.workspace(workspace_id).settings
    file = container.stores.configs.place(workspace_id)
    return SettingsOverview(
        tuple(
            _home_setting(container.settings, origin) for name, origin in home.items() if name not in WORKSPACE_SETTINGS
        ),
        {
            name: _workspace_setting(in_force, home[name], mine[name], file)
            for name in home
            if name in WORKSPACE_SETTINGS
        },
        problem or own_problem,
    )


def _explain(container: WebContainer, workspace_id: str | None) -> tuple[dict[str, SettingOrigin], str | None]:
    try:
        own = None if workspace_id is None else container.stores.configs.read(workspace_id)
        origins = explain_settings(environment_of(container.settings.paths), own)
    except SettingsError as error:
        running = {
            name: SettingOrigin(name, getattr(container.settings, name), UNKNOWN, setting.help)
            for name, setting in SETTINGS.items()
        }
        return running, str(error)
    return {origin.name: origin for origin in origins}, None


def _home_setting(running: Settings, next_start: SettingOrigin) -> HomeSetting:
    value = getattr(running, next_start.name)
    origin = next_start.origin
    if next_start.name == "home":
        # `explain_settings` got the data directory from the caller, so its origin is found here.
        origin = ENVIRONMENT if _variable("home") in environment_with({}) else DEFAULT
        waits = False
    else:
        waits = next_start.value != value
    return HomeSetting(
        next_start.name,
        next_start.help,
        _format_masked(value),
        origin,
        None if origin in (DEFAULT, ENVIRONMENT, UNKNOWN) else _find_line(Path(origin), next_start.name),
        _format_masked(next_start.value) if waits else None,
        next_start.name in ENVIRONMENT_ONLY,
    )


def _workspace_setting(in_force: Settings, home: SettingOrigin, mine: SettingOrigin, file: str) -> WorkspaceSetting:
    limits = SETTINGS[home.name]
    return WorkspaceSetting(
        home.name,
        home.help,
        getattr(in_force, home.name),
        mine.value if mine.origin == file else None,
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
    # A URL can contain a password.
    return mask(str(value)) or "empty"


def _find_line(file: Path, name: str) -> int | None:
    setting = re.compile(rf"""\s*["']?{re.escape(name)}["']?\s*=""")
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, start=1) if setting.match(line)), None)


def _variable(name: str) -> str:
    return f"{ENVIRONMENT_PREFIX}{name.upper()}"
