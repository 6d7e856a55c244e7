"""Read the sessions of GitHub Copilot CLI, Kimi Code and Droid, whose transcripts are logs of events or messages."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.documents import describe_file, find_files, list_folder, load_document
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, as_time, list_blocks, output_text
from pipeline.sessions.readers.log_reader import LogReader, list_files
from pipeline.sessions.readers.reader import Places, SessionHead, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

_KIMI_LOG = "agents/main/wire.jsonl"


class KimiCodeReader(LogReader):
    """Reads Kimi Code; the logs of subagents are in other folders of a session."""

    agent: ClassVar[str] = "kimi-code"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the transcripts of sessions."""
        return find_files(self.agent, places.folder("KIMI_CODE_HOME", ".kimi-code") / "sessions", f"*/*/{_KIMI_LOG}")

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


class DroidReader(LogReader):
    """Reads Droid."""

    agent: ClassVar[str] = "droid"
    log: ClassVar[type[SessionLog]] = _DroidLog

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the transcripts of sessions."""
        yield from list_files(self.agent, places.home / ".factory/sessions", lambda path: path.suffix == ".jsonl")


_LOG = "events.jsonl"
_WORKSPACE_CHARS = 8000
_ANSWERS = frozenset({"ask_user", "ask_question"})


class CopilotReader(LogReader):
    """Reads Copilot CLI: a folder per session, before 1.0.11 a file per session."""

    agent: ClassVar[str] = "copilot-cli"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the transcripts of sessions."""
        root = places.folder("COPILOT_HOME", ".copilot") / "session-state"
        for entry in list_folder(root):
            path = Path(entry.path)
            yield from describe_file(self.agent, path if path.suffix == ".jsonl" else path / _LOG)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> SessionLog:
        """Return the session of a file."""
        session_id = file.path.parent.name if file.path.name == _LOG else file.path.stem
        return _CopilotLog(SessionHead(self.agent, session_id, title=_read_title(file.path.parent)), state)


class _CopilotLog(SessionLog):
    def take_record(self, record: Mapping[str, Any]) -> None:
        kind, data = as_text(record.get("type")), as_mapping(record.get("data"))
        at, key = record.get("timestamp"), as_text(record.get("id"))
        if kind in ("session.start", "session.resume"):
            context = as_mapping(data.get("context"))
            started = data.get("startTime") if kind == "session.start" else None
            self.learn(cwd=context.get("cwd"), branch=context.get("branch"), started_at=as_time(started))
        elif data.get("parentToolCallId"):
            self.left_out[LeftOut.SUBAGENT] += 1
        elif kind == "user.message":
            self._take_prompt(data, at, key)
        elif kind == "assistant.message":
            self._take_answer(data, at, key)
        elif kind == "tool.execution_complete":
            self._take_result(data, at)
        elif kind == "assistant.reasoning":
            self.left_out[LeftOut.THINKING] += 1
        elif kind in ("session.compaction_complete", "session.truncation"):
            self.left_out[LeftOut.SUMMARY] += 1
        else:
            self.left_out[LeftOut.META] += 1

    def _take_prompt(self, data: Mapping[str, Any], at: Any, key: str) -> None:
        # `content` is the typed text, `transformedContent` the same with reminders. Skills are sent as prompts too.
        text = as_text(data.get("content"))
        if as_text(data.get("source")).startswith("skill-") or text.lstrip().startswith("<skill-context"):
            self.left_out[LeftOut.INJECTED] += 1
        else:
            self.say(Role.USER, text, at, key)

    def _take_answer(self, data: Mapping[str, Any], at: Any, key: str) -> None:
        self.say(Role.ASSISTANT, data.get("content"), at, key)
        for request in map(as_mapping, as_list(data.get("toolRequests"))):
            call = as_text(request.get("toolCallId"))
            self.record_call(call, as_text(request.get("name")), request.get("arguments"), at)

    def _take_result(self, data: Mapping[str, Any], at: Any) -> None:
        key, output = as_text(data.get("toolCallId")), _read_output(data)
        use = self.calls.get(key)
        ok = data.get("success")
        if use is not None and use.tool in _ANSWERS and ok:
            self.record_result(key, ok=True)
            self.say(Role.USER, output.removeprefix("User responded: "), at, f"{key}#answer")
        else:
            # A command that ran counts as a success, with any exit code.
            code = as_mapping(data.get("shellExecution")).get("exitCode")
            self.record_result(key, ok=ok if isinstance(ok, bool) else None, output=output, exit_code=code)


def _read_title(folder: Path) -> str | None:
    """Return the session's name: a line of a file next to the log."""
    try:
        with (folder / "workspace.yaml").open(encoding="utf-8", errors="replace") as file:
            lines = (line.partition(":") for line in file.read(_WORKSPACE_CHARS).splitlines())
            return next((text.strip().strip("\"'") for key, _, text in lines if key == "name"), None) or None
    except OSError:
        return None


def _read_output(data: Mapping[str, Any]) -> str:
    error = as_mapping(data.get("error"))
    return output_text(data.get("result")) or as_text(error.get("message"))
