"""Read the sessions of Qwen Code: logs with envelopes as in Claude Code and messages as in Gemini CLI."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipeline.store.turns import Role
from pipeline.transcripts.fields import as_list, as_mapping, as_text, find_exit_code
from pipeline.transcripts.gemini_cli import read_response
from pipeline.transcripts.log_reader import LogReader, folder_of, list_files
from pipeline.transcripts.reader import Places, SessionHead, TranscriptFile
from pipeline.transcripts.session_log import LeftOut, SessionLog

# Kinds of a person's message; all other kinds are notices and prompts of programs.
_OWN_KINDS = (None, "", "mid_turn_user_message")
_SKIPPED = tuple(
    f'"subtype":"{kind}"'.encode() for kind in ("ui_telemetry", "chat_compression", "file_history_snapshot")
)
# A string of a JSON text contains no bare quotes, so these bytes are a field of a record.
_READ = tuple(f'"type":"{kind}"'.encode() for kind in ("user", "assistant", "tool_result"))


class Reader(LogReader):
    """Reader of Qwen Code's chats."""

    agent: ClassVar[str] = "qwen-code"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the chats of all projects, archived ones too."""
        variable = "QWEN_RUNTIME_DIR" if places.environment.get("QWEN_RUNTIME_DIR") else "QWEN_HOME"
        yield from list_files(self.agent, folder_of(places, variable, ".qwen") / "projects", _is_chat)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> "QwenSession":
        """Return the session of a file."""
        return QwenSession(SessionHead(self.agent, file.path.stem), state)


def _is_chat(path: Path) -> bool:
    return path.suffix == ".jsonl" and (path.parent.name == "chats" or path.parent.parent.name == "chats")


class QwenSession(SessionLog):
    """The entries of a chat."""

    def take(self, line: bytes) -> None:
        """Read a line."""
        if any(kind in line for kind in _SKIPPED) and not any(kind in line for kind in _READ):
            self.left_out[LeftOut.META] += 1
            return
        super().take(line)

    def take_record(self, record: Mapping[str, Any]) -> None:
        """Read a record."""
        kind, subtype = record.get("type"), record.get("subtype")
        session_id = as_text(record.get("sessionId"))
        self.learn_record(
            cwd=record.get("cwd"),
            branch=record.get("gitBranch"),
            at=record.get("timestamp"),
            parent=as_mapping(record.get("forkedFrom")).get("sessionId")
            or (session_id if session_id != self.head.id else None),
            is_of_agent=kind in ("assistant", "tool_result"),
        )
        if record.get("isSidechain") or record.get("agentId"):
            self.left_out[LeftOut.SUBAGENT] += 1
        elif kind == "user" or subtype == "mid_turn_user_message":
            self._take_user(record)
        elif kind == "assistant":
            self._take_assistant(record)
        elif kind == "tool_result":
            self._take_result(record)
        elif kind == "system":
            self._take_system(record)
        else:
            self.left_out[LeftOut.UNKNOWN] += 1

    def _take_user(self, record: Mapping[str, Any]) -> None:
        if record.get("subtype") not in _OWN_KINDS or record.get("provenance") not in (None, "", "real_user"):
            self.left_out[LeftOut.NOTICE] += 1
            return
        # The message also contains what hooks and commands added.
        typed = as_text(as_mapping(record.get("systemPayload")).get("displayText"))
        text, at = typed or "\n".join(_list_texts(record)), record.get("timestamp")
        if record.get("subtype") == "mid_turn_user_message":
            self.say(Role.USER, text, at, record.get("uuid"))
        else:
            self.say_prompt(text, at, record.get("uuid"))

    def _take_assistant(self, record: Mapping[str, Any]) -> None:
        at = record.get("timestamp")
        self.say(Role.ASSISTANT, "\n".join(_list_texts(record)), at, record.get("uuid"))
        for part in _list_parts(record):
            call = as_mapping(part.get("functionCall"))
            if call:
                self.record_call(call.get("id"), call.get("name"), call.get("args"), at)
            elif part.get("thought"):
                self.left_out[LeftOut.THINKING] += 1

    def _take_result(self, record: Mapping[str, Any]) -> None:
        status = as_mapping(record.get("toolCallResult")).get("status")
        for part in _list_parts(record):
            response = as_mapping(part.get("functionResponse"))
            if not response:
                continue
            output = read_response(part)
            if status == "cancelled":
                self.drop_call(response.get("id"))
                continue
            code = find_exit_code(output)
            has_failed = status == "error" or bool(as_mapping(response.get("response")).get("error"))
            self.finish(response.get("id"), ok=not has_failed and code in (None, 0), output=output, exit_code=code)
            # A text next to a response is a part of the tool's output.

    def _take_system(self, record: Mapping[str, Any]) -> None:
        subtype, details = record.get("subtype"), as_mapping(record.get("systemPayload"))
        if subtype == "custom_title":
            self.learn(title=as_text(details.get("customTitle")))
        elif subtype == "slash_command" and details.get("phase") == "invocation":
            self.say(Role.USER, details.get("rawCommand"), record.get("timestamp"), record.get("uuid"))
            return
        self.left_out[LeftOut.META] += 1


def _list_parts(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [as_mapping(part) for part in as_list(as_mapping(record.get("message")).get("parts"))]


def _list_texts(record: Mapping[str, Any]) -> Iterator[str]:
    for part in _list_parts(record):
        if part.get("thought") is not True:
            yield as_text(part.get("text"))
