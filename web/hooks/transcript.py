"""What was said in a session, read from the transcript in which Claude Code keeps it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.services.turns import Message, Role
from pipeline.times import utc_now
from web.hooks.codex_rollout import read_lines

SUFFIX = ".jsonl"
# Where Claude Code keeps transcripts, in whatever folder it has its own files.
PROJECTS = "projects"
MOST_MESSAGES = 400


def read_transcript(file: Path, session_id: str, offset: int | None) -> tuple[list[Message], int | None]:
    """Return what was said from an offset of a session's transcript on, and the offset behind it.

    Nothing is read but a file of the session's name where transcripts are.
    """
    place = file.resolve()
    if not (file.is_absolute() and place.name == f"{session_id}{SUFFIX}" and place.parent.parent.name == PROJECTS):
        return [], None
    if not place.is_file():
        return [], None
    lines, behind = read_lines(place, offset or 0)
    found = [message for line in lines if (message := _read_message(line, session_id)) is not None]
    return found[-MOST_MESSAGES:], behind


def _read_message(line: str, session_id: str) -> Message | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    said = entry.get("message") if isinstance(entry, dict) else None
    # What a subagent says, a summary, and what the program says in the person's place is nobody's word.
    if not isinstance(said, dict) or any(entry.get(name) for name in ("isSidechain", "isMeta", "isCompactSummary")):
        return None
    if entry.get("type") not in (Role.USER, Role.ASSISTANT) or entry.get("toolUseResult") is not None:
        return None
    text = _text(said)
    at = entry.get("timestamp")
    return Message(session_id, Role(entry["type"]), text, at if isinstance(at, str) else utc_now()) if text else None


def _text(said: Mapping[str, Any]) -> str:
    content = said.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        str(part["text"])
        for part in parts
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )
