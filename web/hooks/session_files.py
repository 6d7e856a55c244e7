"""The files of sessions that hook events name by their path. An event must not make the server read another file."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pipeline.kernel.errors import UnreadableTranscript
from pipeline.sessions.events import find_open_prompt, read_file
from pipeline.sessions.readers.antigravity import AGENT as ANTIGRAVITY, CUT, FULL
from pipeline.sessions.readers.reader import SessionPart

CLAUDE_CODE = "claude-code"
# By host, the reader of its sessions. Other hosts write Claude Code's format.
READERS: Mapping[str, str] = {"qwen-code": "qwen-code", "copilot": "copilot-cli", ANTIGRAVITY: ANTIGRAVITY}
SUFFIX = ".jsonl"
# The folder of transcripts within Claude Code's own folder.
PROJECTS = "projects"


def find_reader(host: str) -> str:
    """Return the agent whose reader reads a host's sessions."""
    return READERS.get(host, CLAUDE_CODE)


def read_session(host: str, file: Path, session_id: str, mark: str | None) -> Iterator[SessionPart]:
    """Yield what a session's file contains after a mark; nothing if there is no file yet.

    Raises UnreadableTranscript for a file that is not the session's.
    """
    agent = find_reader(host)
    target = _locate(agent, file, session_id)
    if target is not None:
        yield from read_file(agent, target, mark)


def read_open_prompt(host: str, file: Path, session_id: str) -> str:
    """Return the prompt that a session's file ends with; empty if it has an answer or there is no file."""
    target = _locate(READERS[host], file, session_id)
    return "" if target is None else find_open_prompt(READERS[host], target)


def _locate(agent: str, file: Path, session_id: str) -> Path | None:
    """Return the file that a path leads to, None if it does not exist yet.

    A path may lead through links: to a file of the session, or, for Claude Code, to a file that is within the folder
    of transcripts that the path names.
    """
    try:
        target = file.resolve()
        is_own = PATHS[agent](target, session_id)
        is_linked = agent == CLAUDE_CODE and _leads_within(file, target, session_id)
        if not (file.is_absolute() and (is_own or is_linked)):
            raise UnreadableTranscript(file, f"leads to {target}, which is not the transcript of {session_id}")
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


def _is_qwen_chat(file: Path, session_id: str) -> bool:
    folders = [folder.name for folder in file.parents]
    return file.name == f"{session_id}{SUFFIX}" and folders[:1] == ["chats"] and folders[2:3] == [PROJECTS]


def _is_antigravity_log(file: Path, session_id: str) -> bool:
    folders = [folder.name for folder in file.parents]
    return file.name in (FULL, CUT) and folders[:4] == ["logs", ".system_generated", session_id, "brain"]


# By reader: whether a path is the file of a session.
PATHS: Mapping[str, Callable[[Path, str], bool]] = {
    CLAUDE_CODE: _is_transcript,
    "qwen-code": _is_qwen_chat,
    "copilot-cli": lambda file, session_id: file.parts[-3:] == ("session-state", session_id, "events.jsonl"),
    ANTIGRAVITY: _is_antigravity_log,
}
