"""Read the sessions of Gemini CLI: logs, in which a record is appended again when it changes, or one JSON document."""

import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from pipeline.store.turns import Role
from pipeline.transcripts.documents import load_document
from pipeline.transcripts.fields import (
    as_list,
    as_mapping,
    as_text,
    find_exit_code,
    list_blocks,
    output_text,
)
from pipeline.transcripts.log_reader import LogReader, folder_of, list_files
from pipeline.transcripts.reader import Places, SessionHead, TranscriptFile
from pipeline.transcripts.session_log import LeftOut, SessionLog

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


class Reader(LogReader):
    """Reader of Gemini CLI's chats."""

    agent: ClassVar[str] = "gemini-cli"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the chats of all projects, without those of subagents."""
        yield from list_files(self.agent, folder_of(places, "GEMINI_CLI_HOME") / ".gemini" / "tmp", _is_chat)

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
    try:
        projects = as_mapping(as_mapping(json.loads((home / "projects.json").read_bytes())).get("projects"))
    except (OSError, ValueError, RecursionError):
        return
    for path, name in projects.items():
        yield path, as_text(name)
        yield path, hashlib.sha256(as_text(path).encode("utf-8", "replace")).hexdigest()


class GeminiSession(SessionLog):
    """The entries of a chat."""

    def __init__(self, head: SessionHead, state: Mapping[str, Any]) -> None:
        """Start with the state of an earlier reading."""
        super().__init__(head, state)
        own = as_mapping(state.get("gemini"))
        self._is_subagent = own.get("is_subagent") is True
        self._has_messages = own.get("has_messages") is True
        # What was already read of the latest records: a digest of the text, and the ids of calls.
        self._read = [as_text(key) for key in as_list(own.get("read"))]

    def save(self) -> dict[str, Any]:
        """Return the state that the next reading needs."""
        own = {"is_subagent": self._is_subagent, "has_messages": self._has_messages, "read": self._read}
        return super().save() | {"gemini": {name: value for name, value in own.items() if value}}

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
        elif self._is_subagent:
            self.left_out[LeftOut.SUBAGENT] += 1
        else:
            self._take_message(record)

    def _take_header(self, record: Mapping[str, Any]) -> None:
        self._is_subagent = record.get("kind") == "subagent"
        session_id = as_text(record.get("sessionId"))
        folders = [as_text(folder) for folder in as_list(record.get("directories"))]
        self.rename(session_id)
        self.learn_record(cwd=self.head.cwd or next(iter(folders), None), at=record.get("startTime"))
        self.learn(title=as_text(record.get("summary")))

    def _take_all(self, messages: Any) -> None:
        """Take a list of messages: all of a document, or of a copied session; later lists repeat what was read."""
        if self._has_messages or self._is_subagent:
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
        self._has_messages = True
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
        self._has_messages = True
        if status == "cancelled":
            self.left_out[LeftOut.NOT_RUN] += 1
            return
        self.record_call(key, call.get("name"), call.get("args"), call.get("timestamp") or at)
        output = "\n".join(map(read_response, as_list(call.get("result"))))
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
        if key and key in self._read:
            return True
        self._read = [*self._read, key][-MOST_RECORDS:] if key else self._read
        return False


def _drop_referenced_files(text: str) -> str:
    words, line, _ = text.partition(_REFERENCED_FILES)
    return words.rstrip("\n") if line else text


def _list_texts(content: Any) -> Iterator[str]:
    for block in list_blocks(content):
        if block.get("thought") is not True:
            yield as_text(block.get("text"))


def read_response(part: Any) -> str:
    """Return the output or the error in the response to a call."""
    response = as_mapping(as_mapping(part).get("functionResponse")).get("response")
    return output_text(response)
