"""Read aider's chats: a Markdown file in each repository for all of its sessions."""

import hashlib
import re
import time
from collections import Counter
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
from pipeline.transcripts.repository_files import Repository, find_repository
from pipeline.transcripts.session_log import LeftOut, SessionLog

_AGENT = "aider"
_HISTORY = ".aider.chat.history.md"
# aider keeps its caches and settings here: without them it was never used.
_TRACES = (".aider", ".aider.conf.yml", _HISTORY)
# The rest of a longer message is not read.
LONGEST_TEXT = 1 << 20
# Where repositories usually are: at most so deep below the user's home.
_DEPTH = 4
_MOST_FOLDERS = 20_000
_OTHER_FOLDERS = frozenset({"node_modules", "venv", "__pycache__", "site-packages", "Library", "AppData"})

_PROMPT = "####"
_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
# The lines of a block that replaces text, and those around it.
_FENCE = re.compile(r"(?:`{3,}|<source>).*")
_FENCE_END = re.compile(r"(?:`{3,}|</source>).*")
_PATH = re.compile(r"[^\s`<>].*")
_SEARCH = re.compile(r"<{5,} SEARCH")
_DIVIDER = re.compile(r"\A={5,}")
_REPLACE = re.compile(r"\A>{5,} REPLACE.*")
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

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark; nothing of a chat that came with its repository."""
        repository = _find_repository(file.path)
        if repository is not None and repository.tracks(file.path):
            left_out = Counter[str]({LeftOut.REPOSITORY: 1})
            yield SessionPart(SessionHead(_AGENT, file.path.stem), (), mark or "", left_out)
        else:
            yield from super().read(file, mark)

    def _read_log(self, file: TranscriptFile, log: BinaryIO, text: str | None) -> Iterator[SessionPart]:
        mark = parse_mark(log, text)
        chat = self.open_session(file, {} if mark is None else mark.state)
        begin = offset = 0 if mark is None else mark.offset
        log.seek(offset)
        is_settled = time.time() - file.modified > SETTLED_S
        repository = _find_repository(file.path)
        cloned_at = repository.find_clone_time() if repository else None
        chat.is_foreign = _is_before(cloned_at, file, chat.head)
        for line in _list_lines(log, is_settled=is_settled):
            words = "" if line.text is None else line.text[:LONGEST_TEXT].decode("utf-8", "replace").rstrip("\r\n")
            if start := _START.fullmatch(words):
                chat.settle()
                if not chat.is_empty:
                    yield chat.part(format_mark(log, offset, chat.save()))
                chat = self.open_session(file, {"start": start[1]})
                chat.is_foreign = _is_before(cloned_at, file, chat.head)
                chat.left_out[LeftOut.REPOSITORY] += chat.is_foreign
            elif not chat.is_foreign:
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


def _find_repository(file: Path) -> Repository | None:
    """Return the repository around a chat; None for a file that the person named."""
    return find_repository(file) if file.name == _HISTORY else None


def _is_before(cloned_at: float | None, file: TranscriptFile, head: SessionHead) -> bool:
    """Return whether a session, or the last change of its file, is older than the clone of the repository."""
    if cloned_at is None:
        return False
    started = datetime.fromisoformat(head.started_at).timestamp() if head.started_at else file.modified
    return min(started, file.modified) < cloned_at


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
        # Whether the session came with the repository.
        self.is_foreign = False
        self._start = as_text(state.get("start"))
        self._kind = as_text(state.get("kind"))
        self._lines = [as_text(line) for line in as_list(state.get("lines"))]
        self._chars_waiting = sum(map(len, self._lines))
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
        has_spaces = len(line) > len(_PROMPT) and line.endswith("  ")
        if (line == _PROMPT or line.startswith(f"{_PROMPT} ")) and (has_spaces or not self._has_spaces):
            self._has_spaces = self._has_spaces or has_spaces
            self._add_line("prompt", line[len(_PROMPT) + 1 :].removesuffix("  "))
        elif line.rstrip() == ">" or line.startswith("> "):
            self.settle()
            self._take_notice(line[2:].rstrip())
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
        self._chars_waiting += len(line)
        if self._chars_waiting <= LONGEST_TEXT:
            self._lines.append(line)

    def settle(self) -> None:
        """Add the message whose lines wait."""
        text = "\n".join(self._lines)
        kind, self._kind, self._lines, self._chars_waiting = self._kind, "", [], 0
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
        lines, blocks = _take_blocks(text.split("\n"))
        for path, searched in blocks:
            self._searched[path] = f"{self._searched.get(path, '')}{searched}"
        words = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
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
        self.record_call(key, name, arguments, None)
        self.record_result(key, ok=ok)

    def _next_id(self) -> str:
        self._number += 1
        return f"{self._number}"


def _take_blocks(lines: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the lines of an answer without the blocks that replace text, and their files and old texts."""
    kept: list[str] = []
    blocks: list[tuple[str, str]] = []
    number, is_complete = 0, True
    while number < len(lines):
        divider = end = None
        if is_complete and _SEARCH.fullmatch(lines[number]) and (fence := _find_fence(kept)):
            divider = _find_line(_DIVIDER, lines, number + 1)
            end = _find_line(_REPLACE, lines, divider + 1) if divider else None
            # No later block has an end either.
            is_complete = end is not None
        if divider is None or end is None:
            kept.append(lines[number])
            number += 1
            continue
        inner, before = kept[len(kept) - fence + 1 :], kept[: len(kept) - fence]
        path = before.pop() if before and _PATH.fullmatch(before[-1]) else ""
        blocks.append(
            ("".join(inner or [path]).strip().strip("`*"), "".join(f"{line}\n" for line in lines[number + 1 : divider]))
        )
        kept = before
        number = end + 1
        if number < len(lines) and _FENCE_END.fullmatch(lines[number]):
            number += 1
    return kept, blocks


def _find_fence(lines: list[str]) -> int:
    """Return how many last lines open a block: a fence, and perhaps the name of the file; 0 if they do not."""
    if lines and _FENCE.fullmatch(lines[-1]):
        return 1
    return 2 if len(lines) > 1 and _PATH.fullmatch(lines[-1]) and _FENCE.fullmatch(lines[-2]) else 0


def _find_line(pattern: re.Pattern[str], lines: list[str], start: int) -> int | None:
    return next((number for number in range(start, len(lines)) if pattern.fullmatch(lines[number])), None)
