"""Read the sessions of pi, and of the agents that are built on it: logs of messages that form a tree."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipeline.store.turns import Role
from pipeline.transcripts.fields import as_mapping, as_text, list_blocks, output_text, parse_json
from pipeline.transcripts.log_reader import LogReader, list_files
from pipeline.transcripts.reader import Places, SessionHead, TranscriptFile
from pipeline.transcripts.session_log import LeftOut, SessionLog

_SUMMARIES = ("compaction", "branch_summary", "compact")
_ADDED = ("custom", "custom_message", "hookMessage")
# Writing to this address calls the tool of that name; the content is its arguments.
_DEVICE = "xd://"
_ID = re.compile(r"[0-9A-Za-z-]{8,}\Z")


class Reader(LogReader):
    """Reader of pi's sessions."""

    agent: ClassVar[str] = "pi"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the sessions of all projects."""
        home = places.folder("PI_CODING_AGENT_DIR", ".pi", "agent")
        folder = places.folder("PI_CODING_AGENT_SESSION_DIR", str(home / "sessions"))
        yield from list_files(self.agent, folder, is_session)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> "PiSession":
        """Return the session of a file."""
        return PiSession(SessionHead(self.agent, find_id(file.path)), state)


def is_session(path: Path) -> bool:
    """Return whether a file is a session, and no copy of one."""
    return path.suffix == ".jsonl" and not any(
        f".{kind}" in path.name for kind in ("checkpoint.", "bak", "reset", "deleted")
    )


def find_id(path: Path) -> str:
    """Return the id of a session in the name of its file, after the time."""
    match = _ID.search(path.stem.rpartition("_")[2])
    return match[0] if match else path.stem


class PiSession(SessionLog):
    """The entries of a session."""

    def take_record(self, record: Mapping[str, Any]) -> None:
        """Read a record."""
        kind = record.get("type")
        if kind == "session":
            self._take_header(record)
        elif kind == "message":
            self._take_message(as_mapping(record.get("message")), record)
        elif kind in _ADDED:
            self.left_out[LeftOut.INJECTED] += 1
        elif kind in _SUMMARIES:
            self.left_out[LeftOut.SUMMARY] += 1
        else:
            title = record.get({"session_info": "name", "title": "title"}.get(as_text(kind), ""))
            self.learn(title=as_text(title))
            self.left_out[LeftOut.META] += 1

    def _take_header(self, record: Mapping[str, Any]) -> None:
        parent = as_text(record.get("parentSession"))
        self.rename(as_text(record.get("id")))
        self.learn_record(
            cwd=record.get("cwd"),
            branch=self.head.branch,
            at=record.get("timestamp"),
            parent=find_id(Path(parent)) if parent else None,
        )
        self.learn(title=as_text(record.get("title")))

    def _take_message(self, message: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        role, at, record_id = message.get("role"), record.get("timestamp") or message.get("timestamp"), record.get("id")
        if role == "user":
            text = output_text(message.get("content"))
            own = self.read_prompt(text)
            if text.strip() and not own.strip():
                self.left_out[LeftOut.NOTICE] += 1
            self.say_prompt(own, at, record_id)
        elif role == "assistant":
            self._take_answer(message, at, record_id)
        elif role == "toolResult":
            code = as_mapping(message.get("details")).get("exitCode")
            self.finish(
                message.get("toolCallId"),
                ok=message.get("isError") is not True and code in (None, 0),
                output=output_text(message.get("content")),
                exit_code=code if isinstance(code, int) else None,
            )
        elif role == "bashExecution":
            self._take_command(message, at, as_text(record_id) or f"!{at}")
        elif role in _SUMMARIES or role == "branchSummary":
            self.left_out[LeftOut.SUMMARY] += 1
        else:
            self.left_out[LeftOut.INJECTED] += 1

    def read_prompt(self, text: str) -> str:
        """Return what the person wrote of a prompt."""
        return text

    def read_call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the tool that a call runs, and its arguments."""
        return name, arguments

    def _take_answer(self, message: Mapping[str, Any], at: Any, record_id: Any) -> None:
        blocks = list(list_blocks(message.get("content")))
        if not blocks and message.get("errorMessage"):
            self.left_out[LeftOut.FAILED] += 1
            self.leave_unanswered()
        for block in blocks:
            kind = block.get("type")
            if kind == "text":
                self.say(Role.ASSISTANT, block.get("text"), at, record_id)
            elif kind == "toolCall":
                called = self.read_call(as_text(block.get("name")), as_mapping(block.get("arguments")))
                self.record_call(block.get("id"), *called, at)
            else:
                self.left_out[LeftOut.THINKING if kind == "thinking" else LeftOut.UNKNOWN] += 1

    def _take_command(self, message: Mapping[str, Any], at: Any, key: str) -> None:
        """Add a command that the person ran."""
        code = message.get("exitCode")
        ok = None if message.get("cancelled") or not isinstance(code, int) else code == 0
        self.call(key, "Bash", {"command": message.get("command")}, at)
        self.finish(key, ok=ok, output=as_text(message.get("output")), exit_code=code if ok is not None else None)


class OhMyPiReader(Reader):
    """Reader of the sessions of oh-my-pi, which writes them as pi does."""

    agent: ClassVar[str] = "oh-my-pi"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the sessions of all projects."""
        yield from list_files(self.agent, places.home / ".omp" / "agent" / "sessions", is_session)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> "OhMyPiSession":
        """Return the session of a file."""
        return OhMyPiSession(SessionHead(self.agent, find_id(file.path)), state)


class OhMyPiSession(PiSession):
    """The entries of a session."""

    def read_call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the tool that a call runs, and its arguments."""
        path = as_text(arguments.get("path"))
        if name == "write" and path.startswith(_DEVICE):
            return path.removeprefix(_DEVICE).strip("/"), as_mapping(parse_json(arguments.get("content")))
        return name, arguments
