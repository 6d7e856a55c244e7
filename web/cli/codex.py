"""Codex's notification of a finished turn: what was done is read from its rollout and sent like any host's events."""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from web.cli.command import Command, State, pass_state

if TYPE_CHECKING:
    from config.settings import Settings

TURN_COMPLETE = "agent-turn-complete"
HOOK = "/hooks/claude-code"
# Codex does not wait for the program, but nobody sees one that hangs.
TIMEOUT_S = 5.0
LONGEST_ROLLOUT = 64 << 20
MOST_CALLS = 200
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_EXIT_CODE = re.compile(r"\A[^\n]*\n?(?:.*\n){0,4}?.*\b(?:exited with code|exit code:?) (-?\d+)", re.IGNORECASE)
_ID = re.compile(r"[\w-]{1,100}")


class _CodexCommand(Command):
    """The command; the variable with which Codex moves its folder comes as a parameter that nobody types."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(click.Option(["--codex_home"], envvar="CODEX_HOME", hidden=True))


def main() -> None:
    """Run as the program that Codex starts."""
    from web.cli import cli

    cli.main(["codex-notify", *sys.argv[1:]])


@click.command("codex-notify", cls=_CodexCommand)
@click.option("--home", metavar="PATH", help="The home, where it is not that of the environment.")
@click.option("--host", metavar="ADDRESS", help="Where the server listens, likewise.")
@click.option("--port", metavar="N", help="The port of the server, likewise.")
@click.argument("notification", metavar="JSON")
@pass_state
def codex_notify(state: State, /, *, notification: str, codex_home: str | None, **moved: str | None) -> None:
    """Take Codex's notification of a finished turn; whatever is wrong with it is said and disturbs nobody."""
    try:
        notice = json.loads(notification)
    except ValueError:
        notice = None
    if not isinstance(notice, dict) or notice.get("type") != TURN_COMPLETE:
        click.echo("nothing to note", err=True)
        return
    folder = Path(codex_home).expanduser() if codex_home else Path.home() / ".codex"
    from web.kept_connections import BrokenOff, NotConnected

    try:
        _send(_settings(state, moved), state.named_workspace, list(read_events(notice, folder)))
    except (OSError, BrokenOff, NotConnected) as error:
        click.echo(f"not noted: {type(error).__name__}", err=True)


def _settings(state: State, moved: Mapping[str, str | None]) -> "Settings":
    from config.settings import ENVIRONMENT_PREFIX, environment_with, load_settings

    given = {f"{ENVIRONMENT_PREFIX}{name.upper()}": value for name, value in moved.items() if value}
    return load_settings(environment_with(given)) if given else state.settings


def _send(settings: "Settings", workspace: str | None, events: Sequence[Mapping[str, Any]]) -> None:
    from web.contract import WORKSPACE_HEADER
    from web.kept_connections import KeptConnections

    file = settings.paths.token_file
    token = file.read_text(encoding="ascii").strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    # Otherwise the folder decides about the workspace, as it does for every host.
    if workspace is not None:
        headers[WORKSPACE_HEADER] = workspace
    with closing(KeptConnections(settings.url, TIMEOUT_S)) as connections:
        for event in events:
            connections.send("POST", HOOK, json.dumps(event).encode(), headers)


def read_events(notification: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a finished turn as the events of a hook: each thing that was done, then its end."""
    session = str(notification.get("thread-id") or "")
    common = {"session_id": session, "cwd": str(notification.get("cwd") or "")}
    rollout = find_rollout(folder, session)
    for call in [] if rollout is None else read_last_turn(rollout)[-MOST_CALLS:]:
        yield common | call
    yield common | {"hook_event_name": "Stop"}


def find_rollout(folder: Path, session: str) -> Path | None:
    """Return the file in which Codex keeps a session."""
    if _ID.fullmatch(session) is None:
        return None
    found = sorted((folder / "sessions").glob(f"*/*/*/rollout-*{session}.jsonl"))
    return found[-1] if found and found[-1].stat().st_size <= LONGEST_ROLLOUT else None


def read_last_turn(rollout: Path) -> list[dict[str, Any]]:
    """Return the tool calls since the last message of a person, as events in the form of Claude Code's."""
    calls: dict[str, list[dict[str, Any]]] = {}
    for line in rollout.read_text(encoding="utf-8", errors="replace").splitlines():
        payload = _payload(line)
        kind = payload.get("type")
        call_id = str(payload.get("call_id") or payload.get("id") or "")
        if kind == "user_message":
            calls.clear()
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            calls[call_id] = _call_events(payload)
        elif kind in ("function_call_output", "custom_tool_call_output") and call_id in calls:
            failed = _has_failed(payload.get("output"))
            for event in calls[call_id]:
                event["hook_event_name"] = "PostToolUseFailure" if failed else "PostToolUse"
    return [event for events in calls.values() for event in events]


def _payload(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        # The last line may be half written.
        return {}
    payload = entry.get("payload") if isinstance(entry, dict) else None
    return payload if isinstance(payload, dict) else {}


def _call_events(call: Mapping[str, Any]) -> list[dict[str, Any]]:
    name = str(call.get("name") or "local_shell")
    given = _call_arguments(call)
    patch = given.get("input") if name == "apply_patch" else None
    if isinstance(patch, str):
        return [_event("apply_patch", {"path": file.strip()}) for file in _PATCHED.findall(patch)]
    return [_event(name, given)]


def _event(tool: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": given}


def _call_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(call.get("action"), dict):
        return dict(call["action"])
    arguments = call.get("arguments", call.get("input"))
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        given = None
    return given if isinstance(given, dict) else {"input": arguments}


def _has_failed(output: Any) -> bool:
    """Tell whether the output of a call says that it failed, in any of the forms that Codex has given it."""
    try:
        read = json.loads(output) if isinstance(output, str) else output
    except ValueError:
        read = None
    if isinstance(read, dict):
        metadata = read.get("metadata")
        code = metadata.get("exit_code") if isinstance(metadata, dict) else read.get("exit_code")
        return read.get("success") is False or code not in (None, 0)
    found = _EXIT_CODE.search(output) if isinstance(output, str) else None
    return found is not None and found[1] != "0"
