"""What was said in a session, read from the transcript in which Claude Code keeps it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from web.hooks.codex_rollout import read_lines

SUFFIX = ".jsonl"
# Where Claude Code keeps transcripts, in whatever folder it has its own files.
PROJECTS = "projects"
MOST_MESSAGES = 400
ROLES = ("user", "assistant")

# As an event of a hook takes it: the role, the content, and when it was said where that is known. The client of hooks
# reads transcripts too, while an agent waits: what a message is beyond that takes a second to load.
Said = dict[str, str]


def read_transcript(file: Path, session_id: str, offset: int | None) -> tuple[list[Said], int | None]:
    """Return what was said from an offset of a session's transcript on, and the offset behind it.

    Nothing is read but a file of the session's name where transcripts are.
    """
    place = file.resolve()
    if not (file.is_absolute() and place.name == f"{session_id}{SUFFIX}" and place.parent.parent.name == PROJECTS):
        return [], None
    if not place.is_file():
        return [], None
    lines, behind = read_lines(place, offset or 0)
    found = [message for line in lines if (message := _read_message(line)) is not None]
    return found[-MOST_MESSAGES:], behind


def _read_message(line: str) -> Said | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    said = entry.get("message") if isinstance(entry, dict) else None
    # What a subagent says, a summary, and what the program says in the person's place is nobody's word.
    if not isinstance(said, dict) or any(entry.get(name) for name in ("isSidechain", "isMeta", "isCompactSummary")):
        return None
    if entry.get("type") not in ROLES or entry.get("toolUseResult") is not None:
        return None
    text = _text(said)
    if not text:
        return None
    at = entry.get("timestamp")
    return {"role": entry["type"], "content": text} | ({"at": at} if isinstance(at, str) else {})


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
