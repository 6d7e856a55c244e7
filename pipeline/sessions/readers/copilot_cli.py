"""Read the sessions of GitHub Copilot CLI, whose transcripts are logs of events."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.documents import describe_file, list_folder
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, as_time, output_text
from pipeline.sessions.readers.log_reader import LogReader
from pipeline.sessions.readers.reader import Places, SessionHead, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

_LOG = "events.jsonl"
_WORKSPACE_CHARS = 8000
_ANSWERS = frozenset({"ask_user", "ask_question"})


class Reader(LogReader):
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
            # A command that ran counts as a success, whatever its exit code.
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
