"""The client of hooks where a team's server is asked: it sees no folder and no file of this machine.

So the workspace is told by the folder here, and what was said in a turn is read here. The server's address and this
person's token stand in the home; no word of a command holds them.
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

from config.paths import WORKSPACE_HEADER
from config.settings import Settings, environment_incognito, environment_with, environment_workspace, load_settings
from pipeline.errors import UnreadableTranscript
from pipeline.http.connections import BrokenOff, KeptConnections, NotConnected
from pipeline.services.team_servers import TeamServer, find_team, is_resting, let_rest
from pipeline.services.workspaces import choose_workspace
from web.contract import INCOGNITO_HEADER
from web.hooks.client import LONGEST_EVENT
from web.hooks.event_fields import shorten_event
from web.json_text import read_object

# Less than the three seconds that hosts give, with what Python takes to start, and less than a connection is waited
# for: so a server that is late is told from one that is not there.
WITHIN_S = 1.8
# Claude Code gives it one second, and tells its user of one that was longer.
SESSION_END = "SessionEnd"
SESSION_END_WITHIN_S = 0.6
STOP = "Stop"
# The headers and the event.
_Request = tuple[dict[str, str], dict[str, Any]]
MOST_SAID = 200
MAX_SAID_CHARS = 200_000


def describe_headers(name: str, variables: Mapping[str, str]) -> bytes:
    """Return the headers of requests to the server called `name` about this folder."""
    settings = load_settings(environment_with(variables))
    return json.dumps(headers_for(settings, find_team(settings.paths.servers, name), Path.cwd())).encode()


def answer(host: str, name: str, variables: Mapping[str, str], event: bytes) -> bytes:
    """Return what the server called `name` answers to a host's event, nothing where it does not in time."""
    settings = load_settings(environment_with(variables))
    server = find_team(settings.paths.servers, name)
    if is_resting(settings.paths.servers, name):
        return b""
    said = read_object(event).fields
    cwd = said.get("cwd")
    folder = cwd if isinstance(cwd, str) and cwd else str(Path.cwd())
    requests = _split_by_workspace(said, folder, lambda place: headers_for(settings, server, Path(place)))
    is_last = said.get("hook_event_name") == SESSION_END
    answers: SimpleQueue[bytes] = SimpleQueue()
    send = partial(_send, server.url, f"/hooks/{host}", requests, answers)
    # A name that is looked up and an answer that comes byte by byte know no deadline: what is late is left behind.
    threading.Thread(target=send, daemon=True).start()
    try:
        return answers.get(timeout=SESSION_END_WITHIN_S if is_last else WITHIN_S)
    except Empty:
        if not is_last:
            let_rest(settings.paths.servers, name)
        return b""


def _render(event: dict[str, Any]) -> bytes:
    return shorten_event(json.dumps(event).encode(), LONGEST_EVENT)


def _send(url: str, path: str, requests: Sequence[_Request], answers: "SimpleQueue[bytes]") -> None:
    """Put what a server answers to the first of some requests once all are sent, nothing where it cannot be asked."""
    bodies = []
    with closing(KeptConnections(url, WITHIN_S)) as connections:
        for headers, event in requests:
            try:
                sent = connections.send("POST", path, _render(event), headers)
            except (NotConnected, BrokenOff):
                break
            bodies.append(sent.body if sent.status == HTTPStatus.OK else b"")
    answers.put(bodies[0] if bodies else b"")


def headers_for(settings: Settings, server: TeamServer, folder: Path) -> dict[str, str]:
    """Return the headers of a request about a folder: who asks, and the workspace of its project."""
    choice = choose_workspace(folder, settings, explicit=None, environment=environment_workspace(), to_write=True)
    headers = {"Authorization": f"Bearer {server.token}", WORKSPACE_HEADER: choice.workspace}
    return headers | ({INCOGNITO_HEADER: "true"} if environment_incognito() else {})


def _split_by_workspace(
    event: dict[str, Any], folder: str, find_headers: Callable[[str], dict[str, str]]
) -> list[_Request]:
    """Return an event for each workspace that words of its turn belong to, first for the one of the event's folder.

    No path of a transcript or a folder of a record leaves this machine: neither is of use elsewhere.
    """
    find_headers = cache(find_headers)
    workspace = find_headers(folder)[WORKSPACE_HEADER]
    turns: dict[str, list[dict[str, str]]] = {workspace: []}
    found = {workspace: find_headers(folder)}
    turn = _read_turn(event)
    for message in turn or ():
        place = message.pop("cwd", folder)
        headers = find_headers(place if Path(place).is_absolute() else folder)
        found[headers[WORKSPACE_HEADER]] = headers
        turns.setdefault(headers[WORKSPACE_HEADER], []).append(message)
    return [
        (found[name] | {"Content-Type": "application/json"}, event if turn is None else event | {"said": said})
        for name, said in turns.items()
    ]


def _read_turn(event: dict[str, Any]) -> list[dict[str, str]] | None:
    """Return what was said in the turn that an event ends, None where the event ends none or brings it itself."""
    transcript = event.pop("transcript_path", None)
    if event.get("hook_event_name") != STOP or not isinstance(transcript, str) or "said" in event:
        return None
    from web.hooks.transcript import read_transcript

    try:
        messages, _ = read_transcript(Path(transcript), str(event.get("session_id", "")), None)
    except UnreadableTranscript:
        # The turn ends anyway, and the agent is not disturbed.
        return []
    begins = max((place for place, one in enumerate(messages) if one["role"] == "user"), default=0)
    return [one | {"content": one["content"][:MAX_SAID_CHARS]} for one in messages[begins:][-MOST_SAID:]]
