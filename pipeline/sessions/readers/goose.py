"""Read Goose's sessions: its database, or the logs of versions before 1.10."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipeline.kernel.store.foreign_database import ForeignDatabase, Row
from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.database_rounds import Round, read_new_rows, read_rounds
from pipeline.sessions.readers.documents import describe_database, find_files
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, as_time, output_text, parse_json
from pipeline.sessions.readers.log_reader import LogReader
from pipeline.sessions.readers.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

_AGENT = "goose"
_DATABASE = "sessions.db"
_SESSION = ("id", "name", "description", "session_type", "working_dir", "created_at")
_MESSAGE = ("message_id", "role", "content_json", "created_timestamp", "metadata_json")
# Sessions that no person led.
_UNATTENDED = {"sub_agent": LeftOut.SUBAGENT, "hidden": LeftOut.UNATTENDED, "scheduled": LeftOut.UNATTENDED}


def _find_sessions(places: Places) -> Path:
    environment = places.environment
    if root := environment.get("GOOSE_PATH_ROOT"):
        return Path(root) / "data/sessions"
    if places.platform == "win32":
        return Path(environment.get("APPDATA") or places.home / "AppData/Roaming") / "Block/goose/data/sessions"
    return Path(environment.get("XDG_DATA_HOME") or places.home / ".local/share") / "goose/sessions"


def _read_session(db: ForeignDatabase, session_id: str, round_: Round) -> Iterator[SessionPart]:
    row = next(db.rows("sessions", _SESSION, [("id", "=", session_id)]), None)
    if row is None:
        return
    head = SessionHead(
        _AGENT,
        session_id,
        cwd=as_text(row["working_dir"]),
        title=as_text(row["name"]) or as_text(row["description"]) or None,
        started_at=as_time(row["created_at"]),
    )
    log = _GooseLog(head, {})
    rows = db.rows("messages", ("id", *_MESSAGE), [("session_id", "=", session_id)], order="id")
    yield from read_new_rows(log, round_, rows, log.take_row, reason=_UNATTENDED.get(as_text(row["session_type"])))


class _GooseLog(SessionLog):
    def take_record(self, record: Mapping[str, Any]) -> None:
        if "working_dir" in record:
            # The first line of a log describes the session.
            title = record.get("description")
            self.learn(cwd=record["working_dir"], title=title, started_at=as_time(record.get("created_at")))
        else:
            fields = {"message_id": record.get("id"), "created_timestamp": record.get("created")}
            self.take_message({**record, **fields}, as_mapping(record.get("metadata")), is_new=True)

    def take_row(self, row: Row, *, is_new: bool) -> None:
        """Read a message of the database."""
        content, metadata = parse_json(row["content_json"]), as_mapping(parse_json(row["metadata_json"]))
        self.take_message(row | {"content": content}, metadata, is_new=is_new)

    def take_message(self, message: Mapping[str, Any], metadata: Mapping[str, Any], *, is_new: bool) -> None:
        """Read a message; of one that is not new, only the calls that wait for results."""
        if metadata.get("userVisible") is False:
            # Summaries, and what the program tells the model.
            self.left_out[LeftOut.SUMMARY] += is_new
            return
        at, number = (
            message.get("created_timestamp"),
            as_text(message.get("message_id")) or str(message.get("id") or ""),
        )
        role = Role.USER if message.get("role") == "user" else Role.ASSISTANT
        for position, block in enumerate(map(as_mapping, as_list(message.get("content")))):
            kind = block.get("type")
            if kind == "toolRequest":
                call = as_mapping(as_mapping(block.get("toolCall")).get("value"))
                self.record_call(as_text(block.get("id")), as_text(call.get("name")), call.get("arguments"), at)
            elif kind == "toolResponse":
                self._take_result(block, is_new=is_new)
            elif not is_new:
                if kind == "text" and role is Role.USER:
                    # The last reading added the calls that had no result by now.
                    self.calls.clear()
            elif kind == "text":
                self.say(role, block.get("text"), at, f"{number}.{position}" if position else number)
            else:
                self.left_out[LeftOut.THINKING if "hinking" in as_text(kind) else LeftOut.META] += 1

    def _take_result(self, block: Mapping[str, Any], *, is_new: bool) -> None:
        key, result = as_text(block.get("id")), as_mapping(block.get("toolResult"))
        if not is_new:
            self.calls.pop(key, None)
            return
        value = result.get("value")
        failed = result.get("status") == "error" or as_mapping(value).get("isError") is True
        output = as_text(result.get("error")) or output_text(value)
        if "declined to run this tool" in output[:200]:
            self.drop_call(key)
            return
        code = as_mapping(as_mapping(value).get("structuredContent")).get("exit_code")
        self.record_result(key, ok=not failed, output=output, exit_code=code)


class Reader(LogReader):
    """Reads Goose."""

    agent: ClassVar[str] = _AGENT
    log: ClassVar[type[SessionLog]] = _GooseLog

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the database; without one, the logs, which a migration leaves."""
        folder = _find_sessions(places)
        database = folder / _DATABASE
        if database.exists():
            yield from describe_database(_AGENT, database)
            return
        yield from find_files(_AGENT, folder, "*.jsonl")

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        if file.path.suffix == ".db":
            return read_rounds(file, mark, ("messages", "id"), _read_session)
        return super().read(file, mark)
