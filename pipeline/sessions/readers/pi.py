"""Read the sessions of pi, and of the agents that are built on it: logs of messages that form a tree."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipeline.kernel.store.foreign_database import ForeignDatabase, Row
from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.database_rounds import Round, read_new_rows, read_rounds
from pipeline.sessions.readers.documents import describe_database, list_folder
from pipeline.sessions.readers.fields import as_mapping, as_text, list_blocks, output_text, parse_json
from pipeline.sessions.readers.log_reader import LogReader, list_files
from pipeline.sessions.readers.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog
from pipeline.sessions.readers.zstd import decompress

_SUMMARIES = ("compaction", "branch_summary", "compact")
_ADDED = ("custom", "custom_message", "hookMessage")
# Writing to this address calls the tool of that name; the content is its arguments.
_DEVICE = "xd://"
_ID = re.compile(r"[0-9A-Za-z-]{8,}\Z")

_OPENCLAW = "openclaw"
_DATABASE = "agent/openclaw-agent.sqlite"
_EVENTS, _EVENT = "transcript_events", ("seq", "event_json", "event_zstd", "event_utf8_bytes")
# The limit of OpenClaw.
MOST_EVENT_BYTES = 4 << 20
# OpenClaw's sessions that no person led, by their creator.
_UNATTENDED = {"spawn": LeftOut.SUBAGENT} | dict.fromkeys(("cron", "plugin", "internal"), LeftOut.UNATTENDED)
# OpenClaw writes these prompts itself.
_PROGRAM = re.compile(r"\s*(?:\[cron:|System: |Read HEARTBEAT\.md|HEARTBEAT\b)")
# The chat that a message came from: "[WhatsApp +49 170 2026-01-05 10:00] text".
_ENVELOPE = re.compile(r"\A\s*\[[A-Z][^\]\n]{0,120}\d{4}-\d\d-\d\d[^\]\n]{0,40}\]\s*")


class Reader(LogReader):
    """Reader of pi's sessions."""

    agent: ClassVar[str] = "pi"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the sessions of all projects."""
        home = places.folder("PI_CODING_AGENT_DIR", ".pi", "agent")
        folder = places.folder("PI_CODING_AGENT_SESSION_DIR", str(home / "sessions"))
        yield from list_files(self.agent, folder, _is_session)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> "PiSession":
        """Return the session of a file."""
        return _SESSIONS[self.agent](SessionHead(self.agent, _find_id(file.path)), state)


def _is_session(path: Path) -> bool:
    """Return whether a file is a session, and no copy of one."""
    return path.suffix == ".jsonl" and not any(
        f".{kind}" in path.name for kind in ("checkpoint.", "bak", "reset", "deleted")
    )


def _find_id(path: Path) -> str:
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
            parent=_find_id(Path(parent)) if parent else None,
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
        yield from list_files(self.agent, places.home / ".omp" / "agent" / "sessions", _is_session)


class OhMyPiSession(PiSession):
    """The entries of a session."""

    def read_call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the tool that a call runs, and its arguments."""
        path = as_text(arguments.get("path"))
        if name == "write" and path.startswith(_DEVICE):
            return path.removeprefix(_DEVICE).strip("/"), as_mapping(parse_json(arguments.get("content")))
        return name, arguments


class OpenClawReader(Reader):
    """Reader of OpenClaw's sessions: a database, before version 2026.9 logs. Prompts come from chats and timers too."""

    agent: ClassVar[str] = _OPENCLAW

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the databases and the logs of all agents."""
        agents = places.folder("OPENCLAW_STATE_DIR", ".openclaw") / "agents"
        for agent in list_folder(agents):
            yield from describe_database(_OPENCLAW, agents / agent.name / _DATABASE)
        yield from list_files(_OPENCLAW, agents, _is_session)

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        if file.path.suffix == ".sqlite":
            return read_rounds(file, mark, (_EVENTS, "rowid"), _read_session, may_lack_table=True)
        return super().read(file, mark)


def _read_session(db: ForeignDatabase, session_id: str, round_: Round) -> Iterator[SessionPart]:
    session = OpenClawSession(SessionHead(_OPENCLAW, session_id), {})
    rows = db.rows(_EVENTS, _EVENT, [("session_id", "=", session_id)], order="seq")
    yield from read_new_rows(
        session, round_, rows, session.take_event, number="rowid", reason=_find_reason_to_skip(db, session_id)
    )


def _find_reason_to_skip(db: ForeignDatabase, session_id: str) -> LeftOut | None:
    """Return why no person led a session, None if a person did."""
    columns = ("session_key", "hook_external_content_source")
    windows = db.columns("session_windows") and db.rows("session_windows", columns, [("session_id", "=", session_id)])
    for window in windows or ():
        if window["hook_external_content_source"]:
            return LeftOut.UNATTENDED
        nodes = db.columns("session_nodes") and db.rows(
            "session_nodes", ("created_via",), [("session_key", "=", window["session_key"])]
        )
        for node in nodes or ():
            return _UNATTENDED.get(as_text(node["created_via"]))
    return None


class OpenClawSession(PiSession):
    """The entries of a session."""

    def take_event(self, row: Row, *, is_new: bool) -> None:
        """Read an event of the database; of one that was read before, only what later events need."""
        line = as_text(row["event_json"]).encode()
        size = row["event_utf8_bytes"]
        if isinstance(row["event_zstd"], bytes) and isinstance(size, int) and 0 < size <= MOST_EVENT_BYTES:
            try:
                line = decompress(row["event_zstd"], size)
            except OSError as error:
                self.report(f"event {row['seq']} of session {self.head.id} cannot be read: {error}.")
        if line:
            self.take(line)
        if not is_new:
            self.forget_entries()

    def take_record(self, record: Mapping[str, Any]) -> None:
        """Read a record; in a chat, other people write too."""
        sender = as_mapping(as_mapping(record.get("message")).get("__openclaw"))
        if sender.get("senderIsOwner") is False and as_mapping(record["message"]).get("role") == "user":
            self.left_out[LeftOut.NOTICE] += 1
        else:
            super().take_record(record)

    def read_prompt(self, text: str) -> str:
        """Return what the person wrote of a prompt: nothing of a prompt that the program wrote."""
        return "" if _PROGRAM.match(text) else _ENVELOPE.sub("", text)


_SESSIONS: Mapping[str, type[PiSession]] = {"pi": PiSession, "oh-my-pi": OhMyPiSession, _OPENCLAW: OpenClawSession}
