"""Read the sessions of Gemini CLI, and of Qwen Code, which was made from it.

Those of Gemini CLI are logs, in which a record is appended again when it changes, or one JSON document. Those of Qwen
Code are logs with envelopes as in Claude Code and messages as in Gemini CLI.
"""

import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.documents import load_document
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, find_exit_code, list_blocks, output_text
from pipeline.sessions.readers.log_reader import LogReader, list_files
from pipeline.sessions.readers.reader import Places, SessionHead, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

# A larger document is not read: it must be parsed at once.
LARGEST_DOCUMENT = 128 << 20
# Only the latest records are written again.
MOST_RECORDS = 50
# The program adds the files that a prompt names behind this line.
_REFERENCED_FILES = "--- Content from referenced files ---"
_SNAPSHOT = re.compile(r"\s*<(?:state_snapshot|compressed_chat)\b")
_SHELL_OUTPUT = re.compile(
    r"(?:\A|\n)Output: (?P<output>.*?)(?:\n(?:Error|Exit Code|Signal|Process Group PGID):|\Z)", re.DOTALL
)
# Kinds of a person's message to Qwen Code; all other kinds are notices and prompts of programs.
_OWN_KINDS = (None, "", "mid_turn_user_message")
_QWEN_SKIPPED = tuple(
    f'"subtype":"{kind}"'.encode() for kind in ("ui_telemetry", "chat_compression", "file_history_snapshot")
)
# A string of a JSON text contains no bare quotes, so these bytes are a field of a record.
_QWEN_READ = tuple(f'"type":"{kind}"'.encode() for kind in ("user", "assistant", "tool_result"))


class Reader(LogReader):
    """Reader of Gemini CLI's chats."""

    agent: ClassVar[str] = "gemini-cli"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the chats of all projects, without those of subagents."""
        yield from list_files(self.agent, places.folder("GEMINI_CLI_HOME") / ".gemini" / "tmp", _is_chat)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> "GeminiSession":
        """Return the session of a file."""
        session = GeminiSession(SessionHead(self.agent, file.path.stem), state)
        if not session.head.cwd:
            session.learn(cwd=_find_project(file.path))
        return session

    def open_log(self, file: TranscriptFile) -> BinaryIO:
        """Open a chat; a document of several lines becomes one line."""
        with file.path.open("rb") as log:
            is_document = log.readline(LARGEST_DOCUMENT).strip() == b"{" and file.size <= LARGEST_DOCUMENT
        if not is_document:
            return super().open_log(file)
        document, problem = load_document(file.path)
        if problem:
            raise OSError(problem)
        return io.BytesIO(json.dumps(document).encode("utf-8", "replace"))


def _is_chat(path: Path) -> bool:
    return path.suffix in (".json", ".jsonl") and path.name.startswith("session-") and path.parent.name == "chats"


def _find_project(chat: Path) -> str | None:
    """Return the folder of a chat's project, from Gemini's files."""
    folder = chat.parent.parent
    try:
        root = (folder / ".project_root").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        root = ""
    return root or next((path for path, name in _list_projects(folder.parent.parent) if name == folder.name), None)


def _list_projects(home: Path) -> Iterator[tuple[str, str]]:
    """Yield the known projects with the names of their folders, which are given names, or hashes in older versions."""
    document, _ = load_document(home / "projects.json")
    for path, name in as_mapping(as_mapping(document).get("projects")).items():
        yield path, as_text(name)
        yield path, hashlib.sha256(as_text(path).encode("utf-8", "replace")).hexdigest()


class GeminiSession(SessionLog):
    """The entries of a chat."""

    # `read` is what was already read of the latest records: a digest of the text, and the ids of calls.
    START: ClassVar[Mapping[str, Any]] = {"is_subagent": False, "has_messages": False, "read": []}
    STATE_KEY: ClassVar[str] = "gemini"

    def take_record(self, record: Mapping[str, Any]) -> None:
        """Read a record."""
        changes = as_mapping(record.get("$set"))
        if "sessionId" in record:
            self._take_header(record)
            self._take_all(record.get("messages"))
        elif changes:
            self.learn(title=as_text(changes.get("summary")))
            self._take_all(changes.get("messages"))
        elif "$rewindTo" in record or "$set" in record:
            # What a person took back was said all the same.
            self.left_out[LeftOut.META] += 1
        elif self.saved["is_subagent"]:
            self.left_out[LeftOut.SUBAGENT] += 1
        else:
            self._take_message(record)

    def _take_header(self, record: Mapping[str, Any]) -> None:
        self.saved["is_subagent"] = record.get("kind") == "subagent"
        session_id = as_text(record.get("sessionId"))
        folders = [as_text(folder) for folder in as_list(record.get("directories"))]
        self.rename(session_id)
        self.learn_record(cwd=self.head.cwd or next(iter(folders), None), at=record.get("startTime"))
        self.learn(title=as_text(record.get("summary")))

    def _take_all(self, messages: Any) -> None:
        """Take a list of messages: all of a document, or of a copied session; later lists repeat what was read."""
        if self.saved["has_messages"] or self.saved["is_subagent"]:
            self.left_out[LeftOut.COPY] += len(as_list(messages))
            return
        for message in as_list(messages):
            self._take_message(as_mapping(message))

    def _take_message(self, record: Mapping[str, Any]) -> None:
        kind, key, at = record.get("type"), as_text(record.get("id")), record.get("timestamp")
        if kind == "user":
            shown = record.get("displayContent") or record.get("content")
            text = "\n".join(as_text(block.get("text")) for block in list_blocks(shown))
            self._say(Role.USER, _drop_referenced_files(text), key, at)
        elif kind in ("gemini", "model"):
            content = record.get("content") or record.get("parts")
            self._say(Role.ASSISTANT, "\n".join(_list_texts(content)), key, at)
            for call in as_list(record.get("toolCalls")):
                self._take_call(as_mapping(call), at)
            if record.get("thoughts"):
                self.left_out[LeftOut.THINKING] += 1
        else:
            self.left_out[LeftOut.META if kind in ("info", "warning", "error") else LeftOut.UNKNOWN] += 1

    def _say(self, role: Role, text: str, key: str, at: Any) -> None:
        if not text.strip():
            return
        self.saved["has_messages"] = True
        digest = hashlib.blake2b(f"{key} {text}".encode("utf-8", "replace"), digest_size=8).hexdigest()
        if self._is_read(digest if key else ""):
            self.left_out[LeftOut.COPY] += 1
        elif _SNAPSHOT.match(text):
            self.left_out[LeftOut.SUMMARY] += 1
        else:
            self.say(role, text, at, key)

    def _take_call(self, call: Mapping[str, Any], at: Any) -> None:
        status, key = call.get("status"), as_text(call.get("id"))
        if status not in ("success", "error", "cancelled") or self._is_read(key):
            return
        self.saved["has_messages"] = True
        if status == "cancelled":
            self.left_out[LeftOut.NOT_RUN] += 1
            return
        self.record_call(key, call.get("name"), call.get("args"), call.get("timestamp") or at)
        output = "\n".join(map(_read_response, as_list(call.get("result"))))
        is_command = self.calls[key].tool == "Bash"
        code = find_exit_code(output) if is_command else None
        shell = _SHELL_OUTPUT.search(output) if is_command else None
        self.finish(
            key,
            ok=status == "success" and code in (None, 0),
            output=shell["output"] if shell else output,
            exit_code=code,
        )

    def _is_read(self, key: str) -> bool:
        """Return whether something was read before, and note it."""
        if key and key in self.saved["read"]:
            return True
        self.saved["read"] = [*self.saved["read"], key][-MOST_RECORDS:] if key else self.saved["read"]
        return False


def _drop_referenced_files(text: str) -> str:
    words, line, _ = text.partition(_REFERENCED_FILES)
    return words.rstrip("\n") if line else text


def _list_texts(content: Any) -> Iterator[str]:
    for block in list_blocks(content):
        if block.get("thought") is not True:
            yield as_text(block.get("text"))


def _read_response(part: Any) -> str:
    """Return the output or the error in the response to a call."""
    response = as_mapping(as_mapping(part).get("functionResponse")).get("response")
    return output_text(response)


def _is_qwen_chat(path: Path) -> bool:
    return path.suffix == ".jsonl" and (path.parent.name == "chats" or path.parent.parent.name == "chats")


class QwenSession(SessionLog):
    """The entries of a chat."""

    def take(self, line: bytes) -> None:
        """Read a line."""
        if any(kind in line for kind in _QWEN_SKIPPED) and not any(kind in line for kind in _QWEN_READ):
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
        text, at = typed or "\n".join(_list_texts(_read_parts(record))), record.get("timestamp")
        if record.get("subtype") == "mid_turn_user_message":
            self.say(Role.USER, text, at, record.get("uuid"))
        else:
            self.say_prompt(text, at, record.get("uuid"))

    def _take_assistant(self, record: Mapping[str, Any]) -> None:
        at = record.get("timestamp")
        self.say(Role.ASSISTANT, "\n".join(_list_texts(_read_parts(record))), at, record.get("uuid"))
        for part in list_blocks(_read_parts(record)):
            call = as_mapping(part.get("functionCall"))
            if call:
                self.record_call(call.get("id"), call.get("name"), call.get("args"), at)
            elif part.get("thought"):
                self.left_out[LeftOut.THINKING] += 1

    def _take_result(self, record: Mapping[str, Any]) -> None:
        status = as_mapping(record.get("toolCallResult")).get("status")
        for part in list_blocks(_read_parts(record)):
            response = as_mapping(part.get("functionResponse"))
            if not response:
                continue
            output = _read_response(part)
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


class QwenReader(LogReader):
    """Reader of Qwen Code's chats."""

    agent: ClassVar[str] = "qwen-code"
    log: ClassVar[type[SessionLog]] = QwenSession

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the chats of all projects, archived ones too."""
        variable = "QWEN_RUNTIME_DIR" if places.environment.get("QWEN_RUNTIME_DIR") else "QWEN_HOME"
        yield from list_files(self.agent, places.folder(variable, ".qwen") / "projects", _is_qwen_chat)


def _read_parts(record: Mapping[str, Any]) -> Any:
    return as_mapping(record.get("message")).get("parts")
