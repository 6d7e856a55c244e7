"""Settings: what holds and why, what this workspace has of its own, off the record, and the token."""

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from flask import session, url_for
from pydantic import BaseModel, Field
from werkzeug.wrappers import Response

from config.settings import WORKSPACE_SETTINGS, Settings, SettingsError, UnreadableSettings, save_workspace_setting
from pipeline.errors import Conflict, FieldError, InvalidField, NotFound
from pipeline.services import incognito
from pipeline.services.incognito import IncognitoSession
from web.api.bodies import SessionId
from web.dashboard.view import PAGE_SIZE, Query, Section, View, back, show
from web.dashboard.workspace_settings import explain_for_page
from web.hosts.install_state import TokenFile, find_token_files

section = Section("settings")

OTHERS = 0o077
# Python refuses to read numbers of thousands of digits; no setting comes near.
MAX_VALUE_CHARS = 32


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
    """Where the token stands, since when (seconds since the epoch), who may read it, and which files hold a copy."""

    file: Path
    made: float
    mode: int
    holders: tuple[TokenFile, ...]

    @property
    def is_open(self) -> bool:
        """Tell whether others than its owner may read it."""
        return bool(self.mode & OTHERS)


@section.page("/settings", SettingsQuery, empty_too=True)
def every(view: View) -> str:
    """Show every setting."""
    sessions = _sessions(view)
    listed = sessions[:PAGE_SIZE]
    return show(
        "settings.html",
        view,
        title="Settings",
        told=explain_for_page(view.container, view.workspace_id),
        home_config=view.container.settings.paths.config,
        own_config=view.container.settings.paths.workspace(view.workspace_id).config,
        sessions=listed,
        sessions_url=_more(listed[-1]) if len(sessions) > PAGE_SIZE else None,
        token=_token(view),
    )


@section.action("/settings/value", SettingForm)
def set_value(view: View) -> Response:
    """Give this workspace a value of its own, or take it away."""
    name, given = view.form.name, view.form.value
    if name not in WORKSPACE_SETTINGS:
        raise NotFound("no setting of that name differs between workspaces")
    before = explain_for_page(view.container, view.workspace_id).own[name].own
    _write(view, name, None if given is None else _number(name, given))
    undo = (url_for("dashboard.settings_set_value"), {"name": name, "value": "" if before is None else _told(before)})
    now = explain_for_page(view.container, view.workspace_id).own[name]
    whose = "as the home has it" if now.own is None else "in this workspace"
    return back(view, f"{name} is {_told(now.value)}, {whose}.", undo=undo)


@section.action("/settings/sessions/silence", SessionForm)
def silence(view: View) -> Response:
    """Take a session off the record."""
    incognito.begin_incognito(view.workspace, view.form.session_id)
    undo = (url_for("dashboard.settings_unsilence"), {"session_id": view.form.session_id})
    return back(view, "The session is off the record: nothing that it says is stored.", undo=undo)


@section.action("/settings/sessions/unsilence", SessionForm)
def unsilence(view: View) -> Response:
    """Put a session back on the record."""
    incognito.end_incognito(view.workspace, view.form.session_id)
    undo = (url_for("dashboard.settings_silence"), {"session_id": view.form.session_id})
    return back(view, "The session is on the record again.", undo=undo)


@section.page("/settings/token", empty_too=True)
def token(view: View) -> str:
    """Tell what a new token brings with it, and ask."""
    return show("new_token.html", view, title="Make a new token?", token=_token(view))


@section.action("/settings/token/new")
def renew_token(view: View) -> Response:
    """Put a new token in the place of the present one; this browser stays signed in."""
    view.container.settings.paths.renew_token()
    # Signed anew, with the token of now, even if nothing else in it changes.
    session.modified = True
    to = url_for("dashboard.settings_every", _anchor="token")
    return back(view, "There is a new token. Every other browser is signed out, and the old one opens nothing.", to=to)


def _sessions(view: View) -> list[IncognitoSession]:
    try:
        return incognito.list_incognito(view.workspace, PAGE_SIZE + 1, view.query.below)
    except NotFound:
        # Nothing was written yet, so nobody is incognito either.
        return []


def _more(last: IncognitoSession) -> str:
    return url_for("dashboard.settings_every", below=last.place, _anchor="record")


def _token(view: View) -> Token | None:
    paths = view.container.settings.paths
    if not paths.token_file.is_file():
        return None
    status = paths.token_file.stat()
    holders = find_token_files(paths.root, view.container.token)
    return Token(paths.token_file, status.st_mtime, stat.S_IMODE(status.st_mode), tuple(holders))


def _number(name: str, given: str) -> int | bool:
    if Settings.model_fields[name].annotation is bool:
        if given not in ("true", "false"):
            raise InvalidField(FieldError(name, "must be true or false"))
        return given == "true"
    if not (given.isascii() and given.isdigit()):
        raise InvalidField(FieldError(name, "must be a whole number"))
    return int(given)


def _write(view: View, name: str, value: int | bool | None) -> None:
    try:
        save_workspace_setting(view.container.settings.paths, view.workspace_id, name, value)
    except UnreadableSettings as error:
        raise Conflict(str(error)) from error
    except SettingsError as error:
        raise InvalidField(FieldError(name, str(error))) from error


def _told(value: int | bool) -> str:
    return str(value).lower()
