"""Codex's notification of a finished turn: what was done is read from its rollout and sent like any host's events."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import ReverieError
from pipeline.records.transcripts import TranscriptMark
from web.cli.command import Command, State, find_user_home, pass_state
from web.hooks.codex_rollout import read_events, read_new_lines, read_said
from web.hosts.files import PRIVATE, write_atomically

if TYPE_CHECKING:
    from config.settings import Settings
    from pipeline.http.connections import KeptConnections

TURN_COMPLETE = "agent-turn-complete"
HOOK = "/hooks/codex"
# Codex does not wait for the program, but nobody sees one that hangs.
TIMEOUT_S = 5.0
MOST_EVENTS = 200
# Of sessions beyond these, only the last turn is told.
MOST_OFFSETS = 200
_ID = re.compile(r"[\w-]{1,100}")


class _CodexCommand(Command):
    """The command; the variable with which Codex moves its folder comes as a parameter that nobody types."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(click.Option(["--codex_home"], envvar="CODEX_HOME", hidden=True))


@click.command("codex-notify", cls=_CodexCommand)
@click.option("--home", metavar="PATH", help="The home, where it is not that of the environment.")
@click.option("--host", metavar="ADDRESS", help="Where the server listens, likewise.")
@click.option("--port", metavar="N", help="The port of the server, likewise.")
@click.option("--server", metavar="NAME", help="The team's server to tell, instead of this machine's own.")
@click.argument("notification", metavar="JSON")
@pass_state
def codex_notify(
    state: State, /, *, notification: str, codex_home: str | None, server: str | None, **moved: str | None
) -> None:
    """Take Codex's notification of a finished turn; whatever is wrong with it is said and disturbs nobody."""
    try:
        notice = json.loads(notification)
    except (ValueError, RecursionError):
        notice = None
    if not isinstance(notice, dict) or notice.get("type") != TURN_COMPLETE:
        click.echo("nothing to note", err=True)
        return
    from config.settings import SettingsError
    from pipeline.http.connections import BrokenOff, KeptConnections, NotConnected
    from web.own_server import OwnServerCheck

    try:
        settings = _settings(state, moved)
        folder = Path(codex_home).expanduser() if codex_home else find_user_home() / ".codex"
        url, headers = _own_server(settings, state) if server is None else _team_server(settings, server, notice)
        check = OwnServerCheck(settings.paths, settings.reachable_host, TIMEOUT_S) if server is None else None
        with closing(KeptConnections(url, TIMEOUT_S, check)) as connections:
            tell_turn(notice, folder, settings.paths.codex_turns, partial(_send, connections, headers))
    except (OSError, Refused, BrokenOff, NotConnected, ReverieError, SettingsError) as error:
        says = error if isinstance(error, Refused | ReverieError | SettingsError) else type(error).__name__
        click.echo(f"not noted: {says}", err=True)


class Refused(Exception):
    """Say that the server did not take an event: what it told of is told with the next turn."""


def _settings(state: State, moved: Mapping[str, str | None]) -> "Settings":
    from config.settings import ENVIRONMENT_PREFIX, environment_with, load_settings

    given = {f"{ENVIRONMENT_PREFIX}{name.upper()}": value for name, value in moved.items() if value}
    return load_settings(environment_with(given)) if given else state.settings


def _own_server(settings: "Settings", state: State) -> tuple[str, dict[str, str]]:
    """Return the address of this machine's own server, and the headers that it is asked with."""
    from config.paths import WORKSPACE_HEADER
    from config.settings import environment_incognito, environment_workspace
    from web.contract import INCOGNITO_HEADER

    headers = {"Authorization": f"Bearer {settings.paths.token_file.read_text(encoding='ascii').strip()}"}
    # Otherwise the folder decides about the workspace, as it does for every host.
    named = state.named_workspace or environment_workspace()
    if named is not None:
        headers[WORKSPACE_HEADER] = named
    if environment_incognito():
        headers[INCOGNITO_HEADER] = "true"
    return settings.url, headers


def _team_server(settings: "Settings", name: str, notice: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the same of a team's server, which sees no folder of this machine."""
    from pipeline.services.team_servers import find_team
    from web.hooks.team_client import headers_for

    team = find_team(settings.paths.servers, name)
    return team.url, headers_for(settings, team, Path(str(notice.get("cwd") or Path.cwd())))


def _send(connections: "KeptConnections", headers: Mapping[str, str], events: Sequence[Mapping[str, Any]]) -> None:
    from web.hooks.client import LONGEST_EVENT
    from web.hooks.event_fields import shorten_event

    for event in events:
        body = shorten_event(json.dumps(event).encode(), LONGEST_EVENT)
        answer = connections.send("POST", HOOK, body, {**headers, "Content-Type": "application/json"})
        if answer.status != HTTPStatus.OK:
            raise Refused(f"HTTP {answer.status}")


def tell_turn(
    notification: Mapping[str, Any], folder: Path, offsets: Path, send: Callable[[list[dict[str, Any]]], None]
) -> None:
    """Send what was done since the last time as the events of a hook, then the turn's end, and keep where it stopped.

    A turn that was broken off has no notification: what it did is told with the next.
    """
    session = str(notification.get("thread-id") or "")
    common = {"session_id": session, "cwd": str(notification.get("cwd") or "")}
    rollout = find_rollout(folder, session)
    events: list[dict[str, Any]] = []
    said: list[dict[str, str]] = []
    if rollout is not None:
        before = _read_mark(offsets / session)
        lines, behind = read_new_lines(rollout, before)
        events, said = _name_calls(read_events(lines), before)[-MOST_EVENTS:], read_said(lines)[-MOST_EVENTS:]
    send([common | event for event in [*events, {"hook_event_name": "Stop", "said": said}]])
    if rollout is not None:
        _keep_mark(offsets / session, behind)


def _name_calls(events: Sequence[dict[str, Any]], before: TranscriptMark | None) -> list[dict[str, Any]]:
    """Name each event by its place, so that the server knows an event that is sent again from a call made twice."""
    start = 0 if before is None else before.offset
    return [event | {"tool_use_id": f"{start}-{number}"} for number, event in enumerate(events)]


def find_rollout(folder: Path, session: str) -> Path | None:
    """Return the file in which Codex keeps a session."""
    if _ID.fullmatch(session) is None:
        return None
    return max((folder / "sessions").glob(f"*/*/*/rollout-*{session}.jsonl"), default=None)


def _read_mark(file: Path) -> TranscriptMark | None:
    try:
        offset, _, digest = file.read_text(encoding="ascii").partition(" ")
        return TranscriptMark(int(offset), digest or None)
    except (FileNotFoundError, ValueError):
        return None


def _keep_mark(file: Path, mark: TranscriptMark) -> None:
    file.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomically(file, f"{mark.offset} {mark.digest}".encode(), mode=PRIVATE)
    for other in sorted(file.parent.iterdir(), key=lambda one: one.stat().st_mtime)[:-MOST_OFFSETS]:
        other.unlink(missing_ok=True)
