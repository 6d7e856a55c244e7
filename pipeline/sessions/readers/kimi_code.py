"""Read the sessions of Kimi Code, whose transcripts are logs of what enters the model's context."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.documents import find_files, load_document
from pipeline.sessions.readers.fields import as_mapping, as_text, as_time, list_blocks, output_text
from pipeline.sessions.readers.log_reader import LogReader
from pipeline.sessions.readers.reader import Places, SessionHead, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

_LOG = "agents/main/wire.jsonl"


class Reader(LogReader):
    """Reads Kimi Code; the logs of subagents are in other folders of a session."""

    agent: ClassVar[str] = "kimi-code"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the transcripts of sessions."""
        return find_files(self.agent, places.folder("KIMI_CODE_HOME", ".kimi-code") / "sessions", f"*/*/{_LOG}")

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> SessionLog:
        """Return the session of a file, which a document next to the log describes."""
        folder = file.path.parents[2]
        known = as_mapping(load_document(folder / "state.json")[0])
        head = SessionHead(
            self.agent,
            folder.name,
            # `workDir` before version 2.
            cwd=as_text(known.get("cwd")) or as_text(known.get("workDir")),
            title=as_text(known.get("title")) or None,
            started_at=as_time(known.get("createdAt")),
        )
        return _KimiLog(head, state)


class _KimiLog(SessionLog):
    def take_record(self, record: Mapping[str, Any]) -> None:
        kind, at = as_text(record.get("type")), record.get("time")
        if kind == "context.append_message":
            self._take_message(as_mapping(record.get("message")), at)
        elif kind == "context.append_loop_event":
            self._take_event(as_mapping(record.get("event")), at)
        elif kind == "config.update":
            self.learn(cwd=record.get("cwd"))
        else:
            self.left_out[LeftOut.META] += 1

    def _take_message(self, message: Mapping[str, Any], at: Any) -> None:
        origin = as_text(as_mapping(message.get("origin")).get("kind"))
        if message.get("role") != "user" or origin not in ("", "user"):
            # The program adds reminders and reports of background tasks.
            self.left_out[LeftOut.INJECTED] += 1
            return
        for block in list_blocks(message.get("content")):
            if block.get("type") == "text":
                self.say(Role.USER, block.get("text"), at, message.get("id"))

    def _take_event(self, event: Mapping[str, Any], at: Any) -> None:
        kind, part = event.get("type"), as_mapping(event.get("part"))
        key = as_text(event.get("toolCallId"))
        if kind == "content.part" and part.get("type") == "text":
            self.say(Role.ASSISTANT, part.get("text"), at, event.get("uuid"))
        elif kind == "content.part":
            self.left_out[LeftOut.THINKING] += 1
        elif kind == "tool.call":
            self.record_call(key, as_text(event.get("name")), event.get("args"), at)
        elif kind == "tool.result":
            result = as_mapping(event.get("result"))
            failed = (result or event).get("isError") is True
            self.record_result(key, ok=not failed, output=output_text(result or event.get("result")))
        else:
            self.left_out[LeftOut.META] += 1
