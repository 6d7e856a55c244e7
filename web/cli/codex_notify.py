"""Receive Codex's notification of a finished turn: read its session file and send the actions as hook events."""

import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import click

from config.paths import WORKSPACE_HEADER
from config.settings import ENVIRONMENT_PREFIX, Settings, environment_with, environment_workspace, load_settings
from config.toml_files import SettingsError
from pipeline.features.team.connections import find_team
from pipeline.kernel.errors import ReverieError
from pipeline.sessions.events import SessionTurn, read_turn
from web.cli.command import Command, pass_state
from web.cli.state import State, find_user_home
from web.hooks.client import LONGEST_EVENT
from web.hooks.event_fields import shorten_event
from web.hooks.team_client import headers_for
from web.hosts.installed_files import PRIVATE, write_atomically
from web.http.client import Client

TURN_COMPLETE = "agent-turn-complete"
HOOK = "/hooks/codex"
# Codex does not wait for this program, so the user would not notice one that hangs.
TIMEOUT_S = 5.0
MOST_EVENTS = 200
# The number of sessions whose read position is kept; of older sessions, only the last turn is sent.
MOST_OFFSETS = 200
_ID = re.compile(r"[\w-]{1,100}")


@click.command("codex-notify", cls=Command)
# A parameter, because commands do not read the environment.
@click.option("--codex_home", envvar="CODEX_HOME", hidden=True)
@click.option("--home", metavar="PATH", help="Data directory. Defaults to REVERIE_HOME.")
@click.option("--host", metavar="ADDRESS", help="Server host. Defaults to the configured address.")
@click.option("--port", metavar="N", help="Server port. Defaults to the configured port.")
@click.option("--server", metavar="NAME", help="Send to the server of this team instead of the one on this machine.")
@click.argument("notification", metavar="JSON")
@pass_state
def codex_notify(
    state: State, /, *, notification: str, codex_home: str | None, server: str | None, **moved: str | None
) -> None:
    """Record a finished turn of Codex from its notification. Errors are printed, and the exit code stays 0."""
    try:
        notice = json.loads(notification)
    except (ValueError, RecursionError):
        notice = None
    if not isinstance(notice, dict) or notice.get("type") != TURN_COMPLETE:
        click.echo("nothing to record", err=True)
        return
    try:
        settings = _settings(state, moved)
        folder = Path(codex_home).expanduser() if codex_home else find_user_home() / ".codex"
        client, headers = _own_server(settings, state) if server is None else _team_server(settings, server, notice)
        with client:
            send_turn(notice, folder, settings.paths.codex_turns, partial(_send, client, headers))
    except (OSError, Refused, ReverieError, SettingsError) as error:
        reason = error if isinstance(error, Refused | ReverieError | SettingsError) else type(error).__name__
        click.echo(f"not recorded: {reason}", err=True)


class Refused(Exception):
    """Report that the server rejected an event; the next turn sends it again."""


def _settings(state: State, moved: Mapping[str, str | None]) -> Settings:
    variables = {f"{ENVIRONMENT_PREFIX}{name.upper()}": value for name, value in moved.items() if value}
    return load_settings(environment_with(variables)) if variables else state.settings


def _own_server(settings: Settings, state: State) -> tuple[Client, Mapping[str, str]]:
    """Return a client of the server on this machine, and the headers of its requests."""
    client = Client.from_settings(settings, timeout_s=TIMEOUT_S)
    # Without this header the server chooses the workspace by the folder, as for every host.
    named = state.named_workspace or environment_workspace()
    return client, client.headers if named is None else {**client.headers, WORKSPACE_HEADER: named}


def _team_server(settings: Settings, name: str, notice: Mapping[str, Any]) -> tuple[Client, Mapping[str, str]]:
    """Return a client of a team's server, and headers that name the workspace: it knows no folder of ours."""
    team = find_team(settings.paths.servers, name)
    headers = headers_for(settings, team, Path(str(notice.get("cwd") or Path.cwd())))
    return Client(team.url, team.token, timeout_s=TIMEOUT_S), headers


def _send(client: Client, headers: Mapping[str, str], events: Sequence[Mapping[str, Any]]) -> None:
    for event in events:
        body = shorten_event(json.dumps(event).encode(), LONGEST_EVENT)
        answer = client.exchange("POST", HOOK, body, {**headers, "Content-Type": "application/json"})
        if answer.status != HTTPStatus.OK:
            raise Refused(f"HTTP {answer.status}")


def send_turn(
    notification: Mapping[str, Any], folder: Path, offsets: Path, send: Callable[[list[dict[str, Any]]], None]
) -> None:
    """Send the actions since the last notification as hook events, then the end of the turn; save the read position.

    Codex sends no notification for an interrupted turn: its actions are sent with the next turn.
    """
    session = str(notification.get("thread-id") or "")
    common = {"session_id": session, "cwd": str(notification.get("cwd") or "")}
    rollout = find_rollout(folder, session)
    before = None if rollout is None else _read_mark(offsets / session)
    turn = SessionTurn() if rollout is None else read_turn("codex", rollout, before)
    calls = _name_calls(turn.calls, before or "")[-MOST_EVENTS:]
    send([common | event for event in [*calls, {"hook_event_name": "Stop", "said": turn.said[-MOST_EVENTS:]}]])
    if turn.mark:
        _save_mark(offsets / session, turn.mark)


def _name_calls(events: Sequence[dict[str, Any]], before: str) -> list[dict[str, Any]]:
    """Give each event an ID by its position: the server can tell a repeated event from a repeated call."""
    start = zlib.crc32(before.encode())
    return [event | {"tool_use_id": f"{start}-{number}"} for number, event in enumerate(events)]


def find_rollout(folder: Path, session: str) -> Path | None:
    """Return the file of a Codex session, None if there is none."""
    if _ID.fullmatch(session) is None:
        return None
    return max((folder / "sessions").glob(f"*/*/*/rollout-*{session}.jsonl"), default=None)


def _read_mark(file: Path) -> str | None:
    """Return the reader's mark at the end of the last reading of a session; None without a valid one."""
    try:
        mark = file.read_text(encoding="utf-8")
        # Commit d0a0c2d4 wrote another form.
        return mark if mark.startswith("{") else None
    except (FileNotFoundError, ValueError):
        return None


def _save_mark(file: Path, mark: str) -> None:
    file.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomically(file, mark.encode(), mode=PRIVATE)
    for other in sorted(file.parent.iterdir(), key=lambda path: path.stat().st_mtime)[:-MOST_OFFSETS]:
        other.unlink(missing_ok=True)
