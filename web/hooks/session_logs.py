"""Read the messages of a session from the log of a host whose sessions Reverie also imports."""

from collections.abc import Callable, Mapping
from pathlib import Path

from pipeline.errors import UnreadableTranscript
from pipeline.records.transcripts import TranscriptMark
from pipeline.services.log_messages import list_log_messages
from pipeline.text.unfinished_turns import INTERRUPTED, USER, find_finished
from pipeline.transcripts.antigravity import AGENT as ANTIGRAVITY, CUT, FULL
from web.hooks.codex_rollout import find_start, read_lines
from web.hooks.transcript import MOST_MESSAGES


def _is_qwen_chat(file: Path, session_id: str) -> bool:
    folders = [folder.name for folder in file.parents]
    return file.name == f"{session_id}.jsonl" and folders[:1] == ["chats"] and folders[2:3] == ["projects"]


def _is_copilot_log(file: Path, session_id: str) -> bool:
    return [file.name, *(folder.name for folder in file.parents)][:3] == ["events.jsonl", session_id, "session-state"]


def _is_antigravity_log(file: Path, session_id: str) -> bool:
    folders = [folder.name for folder in file.parents]
    return file.name in (FULL, CUT) and folders[:4] == ["logs", ".system_generated", session_id, "brain"]


# By reader: whether a path is the log of a session. An event must not make the server read another file.
PATHS: Mapping[str, Callable[[Path, str], bool]] = {
    "qwen-code": _is_qwen_chat,
    "copilot-cli": _is_copilot_log,
    ANTIGRAVITY: _is_antigravity_log,
}
# The records of these logs are numbered, so their ids are equal in each session. They have times instead.
NUMBERED = frozenset({ANTIGRAVITY})
# The end of a log that is searched for the prompt.
LONGEST_END = 1 << 20


def read_session_log(
    agent: str, file: Path, session_id: str, mark: TranscriptMark | None, *, is_answered: bool = True
) -> tuple[list[dict[str, str]], TranscriptMark | None]:
    """Return the messages of finished turns after a mark in a session's log, and the mark after them.

    Raises UnreadableTranscript for a file that is not the session's log.
    """
    lines, behind = _read_log(agent, file, session_id, lambda log: find_start(log, mark))
    messages = list_log_messages(agent, file, lines)
    if agent in NUMBERED:
        messages = [{name: value for name, value in message.items() if name != "id"} for message in messages]
    if messages and messages[-1]["role"] == USER and not is_answered:
        messages.append({"role": USER, "content": INTERRUPTED})
    finished = find_finished((item["role"], item["content"]) for item in messages)
    return [messages[number] for number in finished][-MOST_MESSAGES:], behind


def find_open_prompt(agent: str, file: Path, session_id: str) -> str:
    """Return the prompt that a session's log ends with; empty if it has an answer.

    Raises UnreadableTranscript for a file that is not the session's log.
    """
    lines, _ = _read_log(agent, file, session_id, lambda log: max(0, log.stat().st_size - LONGEST_END))
    messages = list_log_messages(agent, file, lines)
    return messages[-1]["content"] if messages and messages[-1]["role"] == USER else ""


def _read_log(
    agent: str, file: Path, session_id: str, choose_start: Callable[[Path], int | None]
) -> tuple[list[str], TranscriptMark | None]:
    """Return the lines of a session's log from an offset, and the mark after them; none if it does not exist."""
    try:
        target = file.resolve()
        if not (file.is_absolute() and PATHS[agent](target, session_id)):
            raise UnreadableTranscript(file, f"leads to {target}, which is not the log of {session_id}")
        return read_lines(target, choose_start(target)) if target.exists() else ([], None)
    except OSError as error:
        raise UnreadableTranscript(file, f"cannot be read ({error.strerror})") from error
    except (RuntimeError, ValueError) as error:
        raise UnreadableTranscript(file, f"cannot be followed ({type(error).__name__})") from error
