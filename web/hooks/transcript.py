"""Read the messages of a session from Claude Code's transcript."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import UnreadableTranscript
from pipeline.records.transcripts import TranscriptMark
from pipeline.text.unfinished_turns import FAILED, INTERRUPTED, USER, find_finished
from web.hooks.codex_rollout import find_start, read_lines
from web.hooks.modes import READ_ONLY_MODES

SUFFIX = ".jsonl"
# The folder of transcripts within Claude Code's own folder.
PROJECTS = "projects"
MOST_MESSAGES = 400
ROLES = (USER, "assistant")

# Role and content, and if known the id, time and folder of the record. A plain dict, because the hook client reads
# transcripts while an agent waits, and a validated model takes a second to import.
Said = dict[str, str]


def read_transcript(
    file: Path, session_id: str, mark: TranscriptMark | None, *, is_answered: bool = True
) -> tuple[list[Said], TranscriptMark | None]:
    """Return the messages of finished turns after a mark in a session's transcript, and the mark after them.

    `is_answered` is whether the host reported the end of the last turn: its answer may not be written yet. A
    transcript that was rewritten since is read from its start. Raises UnreadableTranscript for a file that is not the
    session's transcript.
    """
    target = _locate(file, session_id)
    if target is None:
        return [], None
    try:
        lines, behind = read_lines(target, find_start(target, mark))
    except OSError as error:
        raise UnreadableTranscript(file, f"cannot be read ({error.strerror})") from error
    return _list_finished(lines, session_id, is_answered=is_answered)[-MOST_MESSAGES:], behind


def _locate(file: Path, session_id: str) -> Path | None:
    """Return the file that a path leads to, None if it does not exist yet.

    A path may lead through links: to a session's transcript in a folder of transcripts, or to a file that is within
    the folder of transcripts that the path names.
    """
    try:
        target = file.resolve()
        if not (file.is_absolute() and (_is_transcript(target, session_id) or _leads_within(file, target, session_id))):
            raise UnreadableTranscript(
                file, f"leads to {target}, which is not {session_id}{SUFFIX} in a folder of {PROJECTS}"
            )
        if not target.exists():
            return None
        if not target.is_file():
            raise UnreadableTranscript(file, "is not a file")
    except (OSError, RuntimeError, ValueError) as error:
        raise UnreadableTranscript(file, f"cannot be followed ({type(error).__name__})") from error
    return target


def _is_transcript(file: Path, session_id: str) -> bool:
    return file.name == f"{session_id}{SUFFIX}" and file.parent.parent.name == PROJECTS


def _leads_within(file: Path, target: Path, session_id: str) -> bool:
    named = _is_transcript(file, session_id) and ".." not in file.parts and target.suffix == SUFFIX
    return named and target.is_relative_to(file.parent.parent.resolve())


def _list_finished(lines: Iterable[str], session_id: str, *, is_answered: bool) -> list[Said]:
    """Return the messages of finished turns."""
    messages: list[Said] = []
    # The positions of messages in plan mode, which are not stored.
    planned: set[int] = set()
    is_planned = False
    prompt: Mapping[str, Any] | None = None
    for entry in (_read_entry(line, session_id) for line in lines):
        if entry is None:
            continue
        message = _read_message(entry)
        if entry["type"] != USER:
            prompt = None
        elif message is not None:
            # A prompt that was interrupted before its answer is left in the file: the next one has the same parent.
            if prompt is not None and prompt.get("parentUuid") == entry.get("parentUuid", ""):
                messages.append({"role": USER, "content": INTERRUPTED})
            prompt, is_planned = entry, entry.get("permissionMode") in READ_ONLY_MODES
        if message is not None:
            planned |= {len(messages)} if is_planned else set()
            messages.append(message)
    if prompt is not None and not is_answered:
        messages.append({"role": USER, "content": INTERRUPTED})
    finished = find_finished((item["role"], item["content"]) for item in messages)
    return [messages[number] for number in finished if number not in planned]


def _read_entry(line: str, session_id: str) -> Mapping[str, Any] | None:
    """Return a record of the person or the agent, None for other records."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    # Skip messages of subagents, summaries and messages of the program: the person did not write them.
    if not isinstance(entry, dict) or any(entry.get(name) for name in ("isSidechain", "isMeta", "isCompactSummary")):
        return None
    # A forked session copies records of the original session, which are read there.
    is_foreign = entry.get("sessionId") not in (None, session_id)
    is_message = entry.get("type") in ROLES and isinstance(entry.get("message"), dict)
    return None if is_foreign or not is_message else entry


def _read_message(entry: Mapping[str, Any]) -> Said | None:
    text = None if entry.get("toolUseResult") is not None else _text(entry["message"])
    if not text:
        return None
    if entry.get("isApiErrorMessage"):
        text = f"{FAILED} {text}"
    known = {"id": entry.get("uuid"), "at": entry.get("timestamp"), "cwd": entry.get("cwd")}
    return {
        "role": entry["type"],
        "content": text,
        **{key: value for key, value in known.items() if isinstance(value, str) and value},
    }


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        str(part["text"])
        for part in parts
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )
