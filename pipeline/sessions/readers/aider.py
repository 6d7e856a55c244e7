"""Read aider's chats: a Markdown file in each repository for all of its sessions."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from pipeline.kernel.errors import InvalidField
from pipeline.kernel.git.git import Git
from pipeline.kernel.git.repository import (
    Repository,
    UnreadableFile,
    exists,
    open_repository,
    read_start,
    root_of_folder,
)
from pipeline.kernel.store.turns import Role
from pipeline.kernel.times import utc_text
from pipeline.sessions.readers.documents import describe_file, list_folder
from pipeline.sessions.readers.fields import as_text
from pipeline.sessions.readers.log_lines import LONGEST_LINE, Line, iterate_lines
from pipeline.sessions.readers.log_reader import LogReader
from pipeline.sessions.readers.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

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

# The first line of the log of a repository that was cloned.
_CLONED = re.compile(rb"[^\n\t]* (\d+) \S+\tclone:")
_FIRST_LOG_BYTES = 4096

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
        chat = _Chat(_build_head(file, as_text(state.get("start"))), state)
        chat.is_foreign = _is_older_than_clone(file, chat.head)
        return chat

    def start_session(self, file: TranscriptFile, line: Line) -> "_Chat | None":
        """Return the session that a line starts."""
        start = _START.fullmatch(_decode(line.text or b""))
        if start is None:
            return None
        chat = self.open_session(file, {"start": start[1]})
        chat.left_out[LeftOut.REPOSITORY] += chat.is_foreign
        return chat

    def list_lines(self, log: BinaryIO, *, is_settled: bool) -> Iterator[Line]:
        """Yield the lines; if aider has ended, also the last one without its end."""
        end = log.tell()
        for line in iterate_lines(log):
            end = line.end
            yield line
        log.seek(end)
        if is_settled and (rest := log.read(LONGEST_LINE)):
            yield Line(rest, end + len(rest))

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark; nothing of a chat that came with its repository."""
        repository = _find_repository(file.path)
        if repository is not None and _is_tracked(repository, file.path):
            left_out = Counter[str]({LeftOut.REPOSITORY: 1})
            yield SessionPart(SessionHead(_AGENT, file.path.stem), (), mark or "", left_out)
        else:
            yield from super().read(file, mark)


def _decode(line: bytes) -> str:
    return line[:LONGEST_TEXT].decode("utf-8", "replace").rstrip("\r\n")


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
    """Return the repository around a chat; None without one, and for a file that the person named."""
    try:
        root = root_of_folder(file.parent) if file.name == _HISTORY else None
        return None if root is None else open_repository(root)
    except UnreadableFile:
        return None


def _is_tracked(repository: Repository, file: Path) -> bool:
    """Return whether git tracks a file; true if git cannot tell."""
    if not exists(repository.git_dir / "index"):
        return False
    try:
        return bool(Git(file.parent).list_paths("ls-files", "-z", "--", file.name)[0])
    except InvalidField:
        return True


def _is_older_than_clone(file: TranscriptFile, head: SessionHead) -> bool:
    """Return whether a session, or the last change of its file, is older than the clone of the repository."""
    cloned_at = _find_clone_time(file)
    started = datetime.fromisoformat(head.started_at).timestamp() if head.started_at else file.modified
    return cloned_at is not None and min(started, file.modified) < cloned_at


# A file may have very many sessions.
@lru_cache(maxsize=4)
def _find_clone_time(file: TranscriptFile) -> float | None:
    """Return when the repository around a file was cloned; None if it was made on this machine, or has no log."""
    repository = _find_repository(file.path)
    try:
        log = b"" if repository is None else read_start(repository.common_dir / "logs/HEAD", _FIRST_LOG_BYTES)
    except UnreadableFile:
        return None
    # A repository that was made on this machine has another first line.
    cloned = _CLONED.match(log)
    return None if cloned is None else float(cloned[1])


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

    # aider writes two spaces after each line of a prompt (`has_spaces`); headings in answers have none.
    START: ClassVar[Mapping[str, Any]] = {
        "start": "",
        "kind": "",
        "lines": [],
        "number": 0,
        "has_spaces": False,
        "searched": {},
    }

    def __init__(self, head: SessionHead, state: Mapping[str, Any]) -> None:
        super().__init__(head, state)
        # Whether the session came with the repository.
        self.is_foreign = False
        self._chars_waiting = sum(map(len, self.saved["lines"]))

    def take(self, line: bytes) -> None:
        """Read a line."""
        if not self.is_foreign:
            self._take_line(_decode(line))

    def _take_line(self, line: str) -> None:
        has_spaces = len(line) > len(_PROMPT) and line.endswith("  ")
        if (line == _PROMPT or line.startswith(f"{_PROMPT} ")) and (has_spaces or not self.saved["has_spaces"]):
            self.saved["has_spaces"] = self.saved["has_spaces"] or has_spaces
            self._add_line("prompt", line[len(_PROMPT) + 1 :].removesuffix("  "))
        elif line.rstrip() == ">" or line.startswith("> "):
            self.settle()
            self._take_notice(line[2:].rstrip())
        else:
            self._add_line("answer", line)

    def _add_line(self, kind: str, line: str) -> None:
        if kind != self.saved["kind"]:
            if kind == "answer" and not line.strip():
                # Prompts have no empty lines.
                self.settle()
                return
            self.settle()
            self.saved["kind"] = kind
        self._chars_waiting += len(line)
        if self._chars_waiting <= LONGEST_TEXT:
            self.saved["lines"].append(line)

    def settle(self) -> None:
        """Add the message whose lines wait."""
        text = "\n".join(self.saved["lines"])
        kind = self.saved["kind"]
        self.saved |= {"kind": "", "lines": []}
        self._chars_waiting = 0
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
        old_texts = self.saved["searched"]
        for path, searched in blocks:
            old_texts[path] = old_texts.get(path, "") + searched
        words = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
        self.say(Role.ASSISTANT, words, None, self._next_id())

    def _take_notice(self, text: str) -> None:
        if edited := _EDITED.fullmatch(text):
            searched = self.saved["searched"].pop(edited[1], "")
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
        self.saved["number"] += 1
        return str(self.saved["number"])


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
