"""Read the sessions of Factory's Droid, whose transcripts are logs of messages."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.fields import as_mapping, as_text, list_blocks, output_text
from pipeline.sessions.readers.log_reader import LogReader, list_files
from pipeline.sessions.readers.reader import Places, SessionHead, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog


class Reader(LogReader):
    """Reads Droid."""

    agent: ClassVar[str] = "droid"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the transcripts of sessions."""
        yield from list_files(self.agent, places.home / ".factory/sessions", lambda path: path.suffix == ".jsonl")

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> SessionLog:
        """Return the session of a file."""
        return _DroidLog(SessionHead(self.agent, file.path.stem), state)


class _DroidLog(SessionLog):
    def take_record(self, record: Mapping[str, Any]) -> None:
        if record.get("type") == "session_start":
            self.learn(cwd=record.get("cwd"), title=record.get("sessionTitle") or record.get("title"))
        elif record.get("type") == "message":
            self._take_message(record, as_mapping(record.get("message")))
        else:
            self.left_out[LeftOut.META] += 1

    def _take_message(self, record: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        at, number = record.get("timestamp"), as_text(record.get("id"))
        role = Role.USER if message.get("role") == "user" else Role.ASSISTANT
        for position, block in enumerate(list_blocks(message.get("content"))):
            kind, key = block.get("type"), f"{number}.{position}" if position else number
            if kind == "text":
                self.say(role, block.get("text"), at, key)
            elif kind == "tool_use":
                self.record_call(as_text(block.get("id")), as_text(block.get("name")), block.get("input"), at)
            elif kind == "tool_result":
                output = output_text(block.get("content"))
                failed = block.get("is_error") is True or output.startswith("Error:")
                self.record_result(as_text(block.get("tool_use_id")), ok=not failed, output=output)
            else:
                self.left_out[LeftOut.THINKING] += 1
