"""Read Cursor's sessions: the logs of its agents, and the database of its editor."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipeline.store.turns import Role
from pipeline.transcripts.cursor_database import list_conversations, list_databases, read_database
from pipeline.transcripts.documents import describe_file, list_folder
from pipeline.transcripts.fields import as_mapping, as_text, list_blocks
from pipeline.transcripts.log_reader import LogReader, folder_of
from pipeline.transcripts.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.transcripts.session_log import LeftOut, SessionLog

_AGENT = "cursor"
_QUERY, _QUERY_END = "<user_query>", "</user_query>"
_TEXT_LINE = re.compile(r"(user|assistant):\s*(.*)")
_TEXT_TOOL = re.compile(r"\[(?:Tool call|Tool result|Thinking)\]")
_NOT_IN_SLUGS = re.compile(r"[^A-Za-z0-9]+")
# A folder with more entries is not searched.
_MOST_TRIED = 3000


class Reader(LogReader):
    """Reads Cursor."""

    agent: ClassVar[str] = _AGENT
    label: ClassVar[str] = "Cursor"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the logs of sessions, without those of subagents, and the editor's database."""
        databases = list(list_databases(_AGENT, places))
        # The editor also writes logs of its conversations, which say less.
        in_editor = {key for file in databases for key in list_conversations(file.path)}
        projects = folder_of(places, "CURSOR_CONFIG_DIR", ".cursor") / "projects"
        for project in list_folder(projects):
            folder = projects / project.name / "agent-transcripts"
            for entry in list_folder(folder):
                path = folder / entry.name
                if path.stem in in_editor:
                    continue
                yield from describe_file(_AGENT, path if path.suffix else path / f"{entry.name}.jsonl")
        yield from databases

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        return read_database(file, mark) if file.path.suffix == ".vscdb" else super().read(file, mark)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> SessionLog:
        """Return the session of a file."""
        folder = next((path for path in file.path.parents if path.name == "agent-transcripts"), file.path.parent)
        # The log names no folder and no times. The caller has the file's times, the best estimate.
        cwd = "" if as_mapping(state.get("head")).get("cwd") else find_folder(folder.parent.name)
        head = SessionHead(_AGENT, file.path.stem, cwd=cwd)
        kind = _CursorText if file.path.suffix == ".txt" else _CursorLog
        return kind(head, state)


def find_folder(slug: str) -> str:
    """Return the only existing folder whose path has this name; empty if there is none, or more than one."""
    roots = [Path("/")]
    if slug[1:2] == "-":
        # A drive of Windows.
        roots.append(Path(f"{slug[0]}:/"))
    name = slug.strip("-").lower()
    found: list[Path] = []
    for root in roots:
        rest = name if root == Path("/") else name[2:]
        for folder in _search(root, rest):
            found.append(folder)
            if len(found) > 1:
                return ""
    return str(found[0]) if found else ""


def _search(folder: Path, rest: str) -> Iterator[Path]:
    if not rest:
        yield folder
        return
    for entry in list_folder(folder)[:_MOST_TRIED]:
        part = _NOT_IN_SLUGS.sub("-", entry.name).strip("-").lower()
        is_prefix = part and (rest == part or rest.startswith(f"{part}-"))
        if is_prefix and entry.is_dir():
            yield from _search(folder / entry.name, rest[len(part) + 1 :])


class _CursorLog(SessionLog):
    """The entries of a log. Its records have no ids: their numbers are the ids."""

    def __init__(self, head: SessionHead, state: Mapping[str, Any]) -> None:
        super().__init__(head, state)
        number = state.get("number")
        self._number = number if isinstance(number, int) else 0

    def save(self) -> dict[str, Any]:
        return super().save() | {"number": self._number}

    def take_record(self, record: Mapping[str, Any]) -> None:
        # Other records do not count: some versions write none.
        self._number += record.get("role") in ("user", "assistant")
        content = as_mapping(record.get("message")).get("content")
        for position, block in enumerate(list_blocks(content)):
            self._take_block(as_text(record.get("role")), block, f"{self._number}.{position}")

    def _take_block(self, role: str, block: Mapping[str, Any], key: str) -> None:
        kind = as_text(block.get("type"))
        text = as_text(block.get("text"))
        if kind == "text" and role == "user":
            self._take_prompt(text, key)
        elif kind == "text" and text.strip() != "[REDACTED]":
            self.say(Role.ASSISTANT, text, None, key)
        elif kind in ("tool_use", "tool_call"):
            # The log has no results.
            self.record_call(key, as_text(block.get("name")), block.get("input"), None)
            self.record_result(key, ok=None)
        else:
            self.left_out[LeftOut.OUTPUT if "result" in kind else LeftOut.THINKING] += 1

    def _take_prompt(self, text: str, key: str) -> None:
        # Attached files come before or after what the person typed, and may contain such a tag too.
        words = text.strip()
        if words.startswith(_QUERY):
            words = words.removeprefix(_QUERY).partition(_QUERY_END)[0]
        elif words.endswith(_QUERY_END):
            words = words.removesuffix(_QUERY_END).rpartition(_QUERY)[2]
        elif _QUERY in words:
            self.left_out[LeftOut.INJECTED] += 1
            return
        self.say(Role.USER, words, None, key)


class _CursorText(_CursorLog):
    """The entries of a log as older versions wrote it: text after the name of the speaker."""

    def __init__(self, head: SessionHead, state: Mapping[str, Any]) -> None:
        super().__init__(head, state)
        self._role, self._lines = as_text(state.get("role")), [as_text(state.get("text"))]

    def save(self) -> dict[str, Any]:
        return super().save() | {"role": self._role, "text": "\n".join(self._lines)}

    def take(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if speaker := _TEXT_LINE.fullmatch(text):
            self.settle()
            self._role, self._lines = speaker[1], [speaker[2]]
        elif self._role:
            self._lines.append(text)

    def settle(self) -> None:
        message = "\n".join(self._lines)
        tool = _TEXT_TOOL.search(message)
        self._number += bool(self._role)
        if self._role == "user":
            self._take_prompt(message, str(self._number))
        elif self._role:
            self.say(Role.ASSISTANT, message[: tool.start()] if tool else message, None, str(self._number))
        self._role, self._lines = "", []
