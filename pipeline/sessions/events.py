"""Read a session's file, and put a turn into the form of hook events, for servers that cannot read the file."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.kernel.errors import UnreadableTranscript
from pipeline.kernel.store.turns import Role
from pipeline.sessions.prepare import clean_mark
from pipeline.sessions.readers.log_lines import format_mark
from pipeline.sessions.readers.reader import Said, SessionPart, ToolUse, TranscriptFile, load_reader

# The names of the flags of a message in a hook event.
MID_TURN, TAKEN_BACK = "mid_turn", "taken_back"
MAX_SAID_CHARS = 200_000
# The end of a file that is searched for the prompt.
LONGEST_END = 1 << 20


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """The tool calls and messages of a session as hook events have them, and the mark after them."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    said: list[dict[str, str]] = field(default_factory=list)
    mark: str = ""


def read_file(agent: str, file: Path, mark: str | None) -> Iterator[SessionPart]:
    """Yield what a file contains after a mark; raise UnreadableTranscript if it cannot be read."""
    try:
        with file.open("rb"):
            size = file.stat().st_size
    except OSError as error:
        raise UnreadableTranscript(file, f"cannot be read ({error.strerror})") from error
    # The session goes on: nothing that waits for a later record is settled.
    yield from load_reader(agent).read(TranscriptFile(agent, file, size, time.time()), mark)


def read_turn(agent: str, file: Path, mark: str | None) -> SessionTurn:
    """Return what was said and done after a mark; without one, in the last turn."""
    parts = list(read_file(agent, file, mark))
    entries = [entry for part in parts for entry in part.entries]
    prompts = (number for number, entry in enumerate(entries) if isinstance(entry, Said) and _is_prompt(entry))
    start = max(prompts, default=0) if mark is None else 0
    # Without a result, it is unknown whether a call ran.
    ran = (entry for entry in entries[start:] if isinstance(entry, ToolUse) and entry.ok is not None)
    said = describe_messages(parts, only_last_turn=mark is None)
    return SessionTurn([_describe_call(entry) for entry in ran], said, clean_mark(parts[-1].mark) if parts else "")


def find_open_prompt(agent: str, file: Path) -> str:
    """Return the prompt that a session's file ends with; empty if it has an answer."""
    mark, size = None, file.stat().st_size
    if size > LONGEST_END:
        with file.open("rb") as log:
            mark = format_mark(log, size - LONGEST_END, {})
    said = [entry for part in read_file(agent, file, mark) for entry in part.entries if isinstance(entry, Said)]
    return said[-1].content if said and said[-1].role is Role.USER else ""


def _describe_call(call: ToolUse) -> dict[str, Any]:
    event = {"hook_event_name": "PostToolUse", "tool_name": call.tool, "tool_input": dict(call.arguments)}
    if call.ok:
        return event
    failure = {"exit_code": call.exit_code, "output": call.error}
    return event | {"hook_event_name": "PostToolUseFailure", "tool_response": failure}


def describe_messages(parts: Iterable[SessionPart], *, only_last_turn: bool) -> list[dict[str, str]]:
    """Return messages in the form of a hook event, those that were taken back first; all, or those of the last turn."""
    taken_back, said = [], list[tuple[Said, str]]()
    for part in parts:
        taken_back += [(entry, part.session.cwd) for entry in dict.fromkeys(part.taken_back)]
        said += [(entry, part.session.cwd) for entry in part.entries if isinstance(entry, Said)]
    if only_last_turn:
        said = said[max((number for number, (entry, _) in enumerate(said) if _is_prompt(entry)), default=0) :]
    removed = [_describe(entry, cwd) | {TAKEN_BACK: TAKEN_BACK} for entry, cwd in taken_back]
    return removed + [_describe(entry, cwd) for entry, cwd in said]


def _is_prompt(said: Said) -> bool:
    return said.role is Role.USER and not said.is_mid_turn


def _describe(said: Said, cwd: str) -> dict[str, str]:
    known = {"id": said.id, "at": said.at, "cwd": said.folder or cwd, MID_TURN: MID_TURN if said.is_mid_turn else ""}
    content = said.content[:MAX_SAID_CHARS]
    return {"role": said.role.value, "content": content, **{name: value for name, value in known.items() if value}}
