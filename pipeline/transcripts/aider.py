"""Read aider's chats: a Markdown file in each repository for all of its sessions."""

import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from pipeline.store.turns import Role
from pipeline.times import utc_text
from pipeline.transcripts.documents import describe_file, list_folder
from pipeline.transcripts.fields import as_list, as_mapping, as_text
from pipeline.transcripts.log_lines import LONGEST_LINE, Line, format_mark, iterate_lines, parse_mark
from pipeline.transcripts.log_reader import PART_BYTES, SETTLED_S, LogReader
from pipeline.transcripts.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.transcripts.session_log import LeftOut, SessionLog
from pipeline.transcripts.tool_names import record_call, record_result

_AGENT = "aider"
_HISTORY = ".aider.chat.history.md"
# aider keeps its caches and settings here: without them it was never used.
_TRACES = (".aider", ".aider.conf.yml", _HISTORY)
# Where repositories usually are: at most so deep below the user's home.
_DEPTH = 4
_MOST_FOLDERS = 20_000
_OTHER_FOLDERS = frozenset({"node_modules", "venv", "__pycache__", "site-packages", "Library", "AppData"})

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_PROMPT = re.compile(r"#{4}(?: (.*?))?(  )?")
_NOTICE = re.compile(r">(?: (.*?))?\s*")
_BLOCK = re.compile(
    r"(?:^(?P<path>[^\s`<>][^\n]*)\n)?^(?P<fence>`{3,}|<source>)[^\n]*\n(?:^(?P<inner>[^\s`<>][^\n]*)\n)?"
    r"^<{5,} SEARCH\n(?P<search>.*?)^={5,}\n(?P<replace>.*?)^>{5,} REPLACE\n?(?:^(?:`{3,}|</source>)\n?)?",
    re.DOTALL | re.MULTILINE,
)
_EDITED = re.compile(r"Applied edit to (.+)")
_CREATED = re.compile(r"Creating empty file (.+)")
_COMMITTED = re.compile(r"Commit [0-9a-f]{6,40} (.+)")
_ASKED = re.compile(r"/(?:ask|code|architect|context|chat-mode \w+)\s+(.+)", re.DOTALL)
_RUN = re.compile(r"(?:/(?:run|test)\s+|!)(.+)|/(git .+)", re.DOTALL)
# aider's own prompts after a failed check, command or edit.
_OWN_PROMPT = re.compile(
    r"# Fix any errors below|I ran this command:|The LLM did not conform|# \d+ SEARCH/REPLACE block|# Question:"
    r"|<blank>"
)


class Reader(LogReader):
    """Reads aider."""

    agent: ClassVar[str] = _AGENT
    label: ClassVar[str] = "aider"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the chat histories of repositories below the user's home."""
        if named := places.environment.get("AIDER_CHAT_HISTORY_FILE"):
            yield from describe_file(_AGENT, Path(named).expanduser())
        elif any((places.home / trace).exists() for trace in _TRACES):
            for folder in _list_repositories(places.home):
                yield from describe_file(_AGENT, folder / _HISTORY)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> "_Chat":
        """Return the session that a reading ended in."""
        return _Chat(_build_head(file, as_text(state.get("start"))), state)

    def _read_log(self, file: TranscriptFile, log: BinaryIO, text: str | None) -> Iterator[SessionPart]:
        mark = parse_mark(log, text)
        chat = self.open_session(file, {} if mark is None else mark.state)
        begin = offset = 0 if mark is None else mark.offset
        log.seek(offset)
        is_settled = time.time() - file.modified > SETTLED_S
        for line in _list_lines(log, is_settled=is_settled):
            words = "" if line.text is None else line.text.decode("utf-8", "replace").rstrip("\r\n")
            if start := _START.fullmatch(words):
                chat.settle()
                if not chat.is_empty:
                    yield chat.part(format_mark(log, offset, chat.save()))
                chat = self.open_session(file, {"start": start[1]})
            else:
                chat.take_line(words)
            offset = line.end
            if chat.is_full or offset - begin >= PART_BYTES:
                yield chat.part(format_mark(log, offset, chat.save()))
                begin = offset
        if is_settled:
            chat.settle()
        if offset > begin or not chat.is_empty:
            yield chat.part(format_mark(log, offset, chat.save()))


def _list_lines(log: BinaryIO, *, is_settled: bool) -> Iterator[Line]:
    end = log.tell()
    for line in iterate_lines(log):
        end = line.end
        yield line
    log.seek(end)
    if is_settled and (rest := log.read(LONGEST_LINE)):
        yield Line(rest, end + len(rest))


def _list_repositories(home: Path) -> Iterator[Path]:
    folders = [(home, 0)]
    for number, (folder, depth) in enumerate(folders):
        entries = list_folder(folder)
        if any(entry.name == _HISTORY for entry in entries):
            yield folder
        if depth == _DEPTH or number > _MOST_FOLDERS:
            continue
        for entry in entries:
            is_searched = not entry.name.startswith(".") and entry.name not in _OTHER_FOLDERS
            if is_searched and entry.is_dir(follow_symlinks=False):
                folders.append((folder / entry.name, depth + 1))


def _build_head(file: TranscriptFile, start: str) -> SessionHead:
    """Return the head of the session that started at a time.

    A session has no id: its folder and its start stand for one. The time has no zone: it is taken as this machine's.
    """
    folder = file.path.parent
    key = hashlib.blake2b(f"{folder.name} {start}".encode("utf-8", "replace"), digest_size=8).hexdigest()
    try:
        started = utc_text(datetime.fromisoformat(start).astimezone())
    except (ValueError, OverflowError, OSError):
        started = None
    return SessionHead(_AGENT, key, cwd=str(folder), started_at=started)


class _Chat(SessionLog):
    """The entries of a session; lines of a message wait until the next line of another kind."""

    def __init__(self, head: SessionHead, state: Mapping[str, Any]) -> None:
        super().__init__(head, {})
        self._start = as_text(state.get("start"))
        self._kind = as_text(state.get("kind"))
        self._lines = [as_text(line) for line in as_list(state.get("lines"))]
        number = state.get("number")
        self._number = number if isinstance(number, int) else 0
        # aider writes two spaces after each line of a prompt; headings in answers have none.
        self._has_spaces = state.get("has_spaces") is True
        searched = as_mapping(state.get("searched"))
        self._searched = {as_text(path): as_text(text) for path, text in searched.items()}

    def save(self) -> dict[str, Any]:
        return {
            "start": self._start,
            "kind": self._kind,
            "lines": self._lines,
            "number": self._number,
            "has_spaces": self._has_spaces,
            "searched": self._searched,
        }

    def take_line(self, line: str) -> None:
        """Read a line."""
        prompt = _PROMPT.fullmatch(line)
        if prompt and (prompt[2] or not self._has_spaces):
            self._has_spaces = self._has_spaces or bool(prompt[2])
            self._add_line("prompt", prompt[1] or "")
        elif notice := _NOTICE.fullmatch(line):
            self.settle()
            self._take_notice(notice[1] or "")
        else:
            self._add_line("answer", line)

    def _add_line(self, kind: str, line: str) -> None:
        if kind != self._kind:
            if kind == "answer" and not line.strip():
                # Prompts have no empty lines.
                self.settle()
                return
            self.settle()
            self._kind = kind
        self._lines.append(line)

    def settle(self) -> None:
        """Add the message whose lines wait."""
        text = "\n".join(self._lines)
        kind, self._kind, self._lines = self._kind, "", []
        if kind == "prompt":
            self._take_prompt(text.strip())
        elif kind == "answer":
            self._take_answer(text)

    def _take_prompt(self, text: str) -> None:
        if _OWN_PROMPT.match(text):
            self.left_out[LeftOut.NOTICE] += 1
        elif command := _RUN.fullmatch(text):
            self._record("bash", {"command": (command[1] or command[2]).strip()}, ok=None)
        elif asked := _ASKED.fullmatch(text):
            self.say(Role.USER, asked[1], None, self._next_id())
        elif text.startswith("/"):
            self.left_out[LeftOut.META] += 1
        else:
            self.say(Role.USER, text, None, self._next_id())

    def _take_answer(self, text: str) -> None:
        for block in _BLOCK.finditer(text):
            path = (block["inner"] or block["path"] or "").strip().strip("`*")
            self._searched[path] = f"{self._searched.get(path, '')}{block['search']}"
        words = re.sub(r"\n{3,}", "\n\n", _BLOCK.sub("", text))
        self.say(Role.ASSISTANT, words, None, self._next_id())

    def _take_notice(self, text: str) -> None:
        if edited := _EDITED.fullmatch(text):
            searched = self._searched.pop(edited[1], "")
            self._record("edit", {"file_path": edited[1], "old_string": searched.rstrip("\n")}, ok=True)
        elif created := _CREATED.fullmatch(text):
            self._record("write", {"file_path": created[1]}, ok=True)
        elif committed := _COMMITTED.fullmatch(text):
            # aider makes the commit itself and writes only its subject.
            self._record("bash", {"command": f"git commit -m {committed[1]!r}"}, ok=True)
        elif text:
            self.left_out[LeftOut.NOTICE] += 1

    def _record(self, name: str, arguments: Mapping[str, Any], *, ok: bool | None) -> None:
        key = self._next_id()
        record_call(self, key, name, arguments, None)
        record_result(self, key, ok=ok)

    def _next_id(self) -> str:
        self._number += 1
        return f"{self._number}"
