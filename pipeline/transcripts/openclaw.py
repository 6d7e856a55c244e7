"""Read the sessions of OpenClaw, which writes them as pi does: into a database, before version 2026.9 into logs.

Prompts come from chats, timers and heartbeats.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pipeline.store.foreign_database import ForeignDatabase, Row
from pipeline.transcripts import pi
from pipeline.transcripts.database_rounds import Round, read_rounds
from pipeline.transcripts.documents import describe_database, list_folder
from pipeline.transcripts.fields import as_mapping, as_text
from pipeline.transcripts.log_reader import list_files
from pipeline.transcripts.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.transcripts.session_log import LeftOut
from pipeline.transcripts.zstd import decompress

_AGENT = "openclaw"
_DATABASE = "agent/openclaw-agent.sqlite"
_EVENTS, _EVENT = "transcript_events", ("seq", "event_json", "event_zstd", "event_utf8_bytes")
# The limit of OpenClaw.
MOST_EVENT_BYTES = 4 << 20
# Sessions that no person led, by their creator.
_UNATTENDED = {"spawn": LeftOut.SUBAGENT} | dict.fromkeys(("cron", "plugin", "internal"), LeftOut.UNATTENDED)
# The program writes these prompts itself.
_PROGRAM = re.compile(r"\s*(?:\[cron:|System: |Read HEARTBEAT\.md|HEARTBEAT\b)")
# The chat that a message came from: "[WhatsApp +49 170 2026-01-05 10:00] text".
_ENVELOPE = re.compile(r"\A\s*\[[A-Z][^\]\n]{0,120}\d{4}-\d\d-\d\d[^\]\n]{0,40}\]\s*")


class Reader(pi.Reader):
    """Reader of OpenClaw's sessions."""

    agent: ClassVar[str] = _AGENT

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the databases and the logs of all agents."""
        agents = places.folder("OPENCLAW_STATE_DIR", ".openclaw") / "agents"
        for agent in list_folder(agents):
            yield from describe_database(_AGENT, agents / agent.name / _DATABASE)
        yield from list_files(_AGENT, agents, pi.is_session)

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        if file.path.suffix == ".sqlite":
            return read_rounds(file, mark, (_EVENTS, "rowid"), _read_session, may_lack_table=True)
        return super().read(file, mark)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> "OpenClawSession":
        """Return the session of a file."""
        return OpenClawSession(SessionHead(_AGENT, pi.find_id(file.path)), state)


def _read_session(db: ForeignDatabase, session_id: str, round_: Round) -> Iterator[SessionPart]:
    session = OpenClawSession(SessionHead(_AGENT, session_id), {})
    reason = _find_reason_to_skip(db, session_id)
    if reason is not None:
        session.left_out[reason] += 1
    for row in db.rows(_EVENTS, _EVENT, [("session_id", "=", session_id)], order="seq") if reason is None else ():
        # An event that OpenClaw rewrites gets a new number.
        if row["rowid"] > round_.until:
            break
        session.take_event(row, is_new=row["rowid"] > round_.since)
        if session.is_full:
            yield session.part(round_.mark)
    yield session.part(round_.after(session_id))


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


class OpenClawSession(pi.PiSession):
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
