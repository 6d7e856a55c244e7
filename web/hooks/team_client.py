"""The hook client for a team's server, which cannot see the folders and files of this machine.

Therefore this client finds the workspace of the folder and reads the messages of a turn. The server's address and the
person's token are in the data directory, never in the command.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from config.foreign_variables import find_claude_folder
from config.paths import READ_ONLY_HEADER, WORKSPACE_HEADER
from config.settings import (
    Settings,
    environment_incognito,
    environment_read_only,
    environment_with,
    environment_workspace,
    load_settings,
)
from pipeline.features.team.connections import find_team
from pipeline.features.team.servers import TeamServer, is_unresponsive, let_rest
from pipeline.features.workspaces.usecases import choose_workspace
from pipeline.kernel.errors import Conflict, UnreadableTranscript
from pipeline.kernel.http.connections import BrokenOff, KeptConnections, NotConnected
from web.hooks.client import LONGEST_EVENT
from web.hooks.event_fields import shorten_event, unify_fields
from web.http.contract import INCOGNITO_HEADER
from web.http.json_text import read_object

# With the start of Python less than the three seconds that hosts allow.
WITHIN_S = 1.8
# Longer than the client waits, so that a slow server is distinguished from an unreachable one.
CONNECTION_S = 2 * WITHIN_S
STOP = "Stop"
# The headers and the event.
_Request = tuple[dict[str, str], dict[str, Any]]
MOST_SAID = 200


def describe_headers(name: str, variables: Mapping[str, str]) -> bytes:
    """Return the headers of requests about this folder to the server `name`; raise Conflict if it is no project.

    Claude Code 2.1.332 asks for them in its own folder, whatever the project is.
    """
    folder = Path.cwd()
    if folder.is_relative_to(find_claude_folder().resolve()):
        raise Conflict(f"{folder} is Claude Code's own folder. Run `reverie setup claude-code --server URL` again.")
    settings = load_settings(environment_with(variables))
    return json.dumps(headers_for(settings, find_team(settings.paths.servers, name), folder)).encode()


def answer(host: str, name: str, variables: Mapping[str, str], event: bytes) -> bytes:
    """Return the answer of the server `name` to a host's event, nothing if it does not answer in time."""
    settings = load_settings(environment_with(variables))
    server = find_team(settings.paths.servers, name)
    if is_unresponsive(settings.paths.servers, name):
        return b""
    fields = unify_fields(read_object(event)).fields
    cwd = fields.get("cwd")
    folder = cwd if isinstance(cwd, str) and cwd else str(Path.cwd())
    requests = _split_by_workspace(
        host, fields, folder, lambda folder_of_record: headers_for(settings, server, Path(folder_of_record))
    )
    answers: SimpleQueue[bytes] = SimpleQueue()
    send = partial(_send, server.url, f"/hooks/{host}", requests, answers)
    # A DNS lookup and a slow answer have no deadline, so they run in a thread that is abandoned if it is late.
    threading.Thread(target=send, daemon=True).start()
    try:
        return answers.get(timeout=WITHIN_S)
    except Empty:
        let_rest(settings.paths.servers, name)
        return b""


def _render(event: dict[str, Any]) -> bytes:
    return shorten_event(json.dumps(event).encode(), LONGEST_EVENT)


def _send(url: str, path: str, requests: Sequence[_Request], answers: "SimpleQueue[bytes]") -> None:
    """Send all requests, then put the answer to the first one; it is empty if the server is unreachable."""
    bodies = []
    with closing(KeptConnections(url, CONNECTION_S)) as connections:
        for headers, event in requests:
            try:
                sent = connections.send("POST", path, _render(event), headers)
            except (NotConnected, BrokenOff):
                break
            bodies.append(sent.body if sent.status == HTTPStatus.OK else b"")
    answers.put(bodies[0] if bodies else b"")


def headers_for(settings: Settings, server: TeamServer, folder: Path) -> dict[str, str]:
    """Return the headers of a request about a folder: the token, and the workspace of the project."""
    choice = choose_workspace(folder, settings, explicit=None, environment=environment_workspace(), is_of_team=True)
    headers = {"Authorization": f"Bearer {server.token}", WORKSPACE_HEADER: choice.workspace}
    switches = {INCOGNITO_HEADER: environment_incognito(), READ_ONLY_HEADER: environment_read_only()}
    return headers | {header: "true" for header, is_on in switches.items() if is_on}


def _split_by_workspace(
    host: str, event: dict[str, Any], folder: str, find_headers: Callable[[str], dict[str, str]]
) -> list[_Request]:
    """Return one request per workspace that the messages of a turn belong to, first the event's own workspace.

    Paths of transcripts and folders of records are not sent: they are useless on another machine.
    """
    find_headers = cache(find_headers)
    workspace = find_headers(folder)[WORKSPACE_HEADER]
    turns: dict[str, list[dict[str, str]]] = {workspace: []}
    headers_of = {workspace: find_headers(folder)}
    turn = _read_turn(host, event)
    for message in turn or ():
        record_folder = message.pop("cwd", folder)
        headers = find_headers(record_folder if Path(record_folder).is_absolute() else folder)
        headers_of[headers[WORKSPACE_HEADER]] = headers
        turns.setdefault(headers[WORKSPACE_HEADER], []).append(message)
    return [
        (headers_of[name] | {"Content-Type": "application/json"}, event if turn is None else event | {"said": messages})
        for name, messages in turns.items()
    ]


def _read_turn(host: str, event: dict[str, Any]) -> list[dict[str, str]] | None:
    """Return the messages of the turn that an event ends; None if it ends no turn or contains the messages."""
    transcript = event.pop("transcript_path", None)
    if event.get("hook_event_name") != STOP or not isinstance(transcript, str) or "said" in event:
        return None
    from pipeline.sessions.events import describe_messages
    from web.hooks.session_files import read_session

    try:
        parts = read_session(host, Path(transcript), str(event.get("session_id", "")), None)
        return describe_messages(parts, only_last_turn=True)[-MOST_SAID:]
    except UnreadableTranscript:
        # The turn ends anyway, and the agent gets no error.
        return []
