"""Read the messages of a session from the log of a host whose sessions Reverie also imports."""

from collections.abc import Callable, Mapping
from pathlib import Path

from pipeline.errors import UnreadableTranscript
from pipeline.records.transcripts import TranscriptMark
from pipeline.services.log_messages import list_log_messages
from pipeline.text.unfinished_turns import INTERRUPTED, USER, find_finished
from web.hooks.codex_rollout import find_start, read_lines
from web.hooks.transcript import MOST_MESSAGES


def _is_qwen_chat(file: Path, session_id: str) -> bool:
    folders = [folder.name for folder in file.parents]
    return file.name == f"{session_id}.jsonl" and folders[:1] == ["chats"] and folders[2:3] == ["projects"]


def _is_copilot_log(file: Path, session_id: str) -> bool:
    return [file.name, *(folder.name for folder in file.parents)][:3] == ["events.jsonl", session_id, "session-state"]


# By reader: whether a path is the log of a session. An event must not make the server read another file.
PATHS: Mapping[str, Callable[[Path, str], bool]] = {"qwen-code": _is_qwen_chat, "copilot-cli": _is_copilot_log}


def read_session_log(
    agent: str, file: Path, session_id: str, mark: TranscriptMark | None, *, is_answered: bool = True
) -> tuple[list[dict[str, str]], TranscriptMark | None]:
    """Return the messages of finished turns after a mark in a session's log, and the mark after them.

    Raises UnreadableTranscript for a file that is not the session's log.
    """
    try:
        target = file.resolve()
        if not (file.is_absolute() and PATHS[agent](target, session_id)):
            raise UnreadableTranscript(file, f"leads to {target}, which is not the log of {session_id}")
        if not target.exists():
            return [], None
        lines, behind = read_lines(target, find_start(target, mark))
    except OSError as error:
        raise UnreadableTranscript(file, f"cannot be read ({error.strerror})") from error
    except (RuntimeError, ValueError) as error:
        raise UnreadableTranscript(file, f"cannot be followed ({type(error).__name__})") from error
    messages = list_log_messages(agent, target, lines)
    if messages and messages[-1]["role"] == USER and not is_answered:
        messages.append({"role": USER, "content": INTERRUPTED})
    finished = find_finished((item["role"], item["content"]) for item in messages)
    return [messages[number] for number in finished][-MOST_MESSAGES:], behind
