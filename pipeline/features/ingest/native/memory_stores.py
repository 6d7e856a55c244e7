"""Stores of memories that tools keep on this machine, and the two ways to read one: file by file, or entry by entry.

A store belongs to one project or to the user; a database or file with memories of several projects gives one store for
each of them. Each draft keeps its tool, its file, its date and its reach.
"""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from config.operating_system import READ_NONBLOCKING
from config.places import Places
from pipeline.features.ingest.fields import (
    Known,
    Reading,
    Readings,
    Skipped,
    Unchanged,
    metadata_of,
    read_item,
    split_text,
    tags_of,
    time_of_change,
)
from pipeline.features.ingest.markdown import split_sections
from pipeline.features.ingest.native.projects import Projects
from pipeline.kernel.records import HEADER, PERSONAL, RULES_HEADER, SAID_HEADER, TEAM_HEADER, Draft, Kind, Source
from pipeline.kernel.store.ingested import NATIVE_PREFIX

# An element of a memory tool, and comments that enclose a block: `<!-- name:begin -->` or `<!-- BEGIN name -->`.
_ELEMENT: Final = re.compile(
    r"<([a-z0-9-]*(?:mem|memory|memories|memorix|engram)[a-z0-9-]*(?:context|block)?)>.*?</\1>", re.DOTALL
)
_BLOCK: Final = re.compile(
    r"<!--\s*(?:(?P<name>[\w.:/-]+?)[: _-](?:begin|start)|(?:begin|start)[: _-]+(?P<other>[\w.:/ -]+?))\s*-->.*?"
    r"<!--\s*(?:(?:/\s*)?(?:(?P=name)|(?P=other))[: _-]end|end[: _-]+(?:(?P=name)|(?P=other)))\s*-->",
    re.DOTALL | re.IGNORECASE,
)
_PAIR: Final = re.compile(r"<!--\s*(?P<name>[\w.:-]+)\s*-->.*?<!--\s*/(?P=name)\s*-->", re.DOTALL)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_HEADERS: Final = "|".join(map(re.escape, (HEADER, RULES_HEADER, SAID_HEADER, TEAM_HEADER)))
_OURS: Final = re.compile(rf"^[ \t>]*(?:{_HEADERS})[^\n]*\n(?:[ \t]*[-*>][^\n]*(?:\n|\Z))*", re.MULTILINE)
_OUR_NOTE: Final = re.compile(r"\A---[ \t]*\n(?:[^\n]*\n)*?reverie:[ \t]*[0-9A-Z]{26}[ \t]*\n")
# Files that memory tools write as a whole into the rule folders of agents.
_GENERATED_NAME: Final = re.compile(
    r"(?:claude-mem|engram|memorix|mempalace|basic-memory)[\w-]*\.(?:md|mdc)|reverie[\w.-]*"
)


def strip_generated(text: str) -> str:
    """Return a text without generated blocks and without comments; empty for a note that Reverie exported.

    A generated block repeats memories that are imported from their own store, so they would be stored twice.
    """
    text = text.replace("\r\n", "\n")
    if _OUR_NOTE.match(text):
        return ""
    for pattern in (_ELEMENT, _BLOCK, _PAIR, _COMMENT, _OURS):
        text = pattern.sub("", text)
    return text


def is_generated_file(name: str) -> bool:
    """Return whether a file in a folder of rules belongs to a memory tool."""
    return _GENERATED_NAME.fullmatch(name) is not None


_ITEM: Final = re.compile(r"[ ]{0,1}(?:[-*+]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(.*)\Z", re.DOTALL)
_FENCE: Final = re.compile(r"[ ]{0,3}(?:```|~~~)")
_LETTER: Final = re.compile(r"[^\W\d_]")
_RULER: Final = re.compile(r"[-*_=\s]{3,}\Z")
# A longer line that ends in a colon is a statement, not the title of the list after it.
MAX_TITLE_CHARS: Final = 100


@dataclass(frozen=True, slots=True)
class Statement:
    """A list item or paragraph, and the headings above it, the outermost first."""

    path: tuple[str, ...]
    text: str


def split_statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a Markdown text in order."""
    for section in split_sections(text):
        title: tuple[str, ...] = ()
        for is_item, block in _split_blocks(section.text):
            if not is_item:
                title = ()
            if not is_item and block.endswith(":") and "\n" not in block and len(block) <= MAX_TITLE_CHARS:
                title = (block.rstrip(":").strip("*_ "),)
            elif _LETTER.search(block) and not _RULER.match(block):
                yield Statement((*section.path, *title), block)


def _split_blocks(text: str) -> Iterator[tuple[bool, str]]:
    """Yield each list item and paragraph, with a code block as part of the block before it."""
    lines: list[str] = []
    fenced = False
    blank = False
    for line in text.splitlines():
        starts_item = not fenced and _ITEM.match(line) is not None
        continues = fenced or line.startswith((" ", "\t")) or _FENCE.match(line) is not None
        if lines and (starts_item or (blank and line.strip() and not continues)):
            yield _make_block(lines)
            lines = []
        if _FENCE.match(line):
            fenced = not fenced
        blank = not fenced and not line.strip()
        if lines or line.strip():
            lines.append(line)
    if lines:
        yield _make_block(lines)


def _make_block(lines: list[str]) -> tuple[bool, str]:
    text = "\n".join(lines).strip()
    item = _ITEM.match(text)
    return (False, text) if item is None else (True, item[1].strip())


SLUG_CHARS: Final = 40
UNKNOWN_PROJECT: Final = "its project's folder was not found on this machine"
MAX_FILE_BYTES: Final = 4 * 1024 * 1024
# Part of every digest: increased when the readers improve, so that known items are read again.
VERSION: Final = b"native 1\0"


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """A file, folder or database of a tool, or the part of it that is about one project.

    `origin` is the path that is shown and stored, with `~` for the user's home. `project` is the folder of the project,
    None for memories about the user. `part` is the tool's name for the part of a shared store.
    """

    tool: str
    path: Path
    origin: str
    project: Path | None = None
    part: str = ""

    @property
    def source(self) -> str:
        """Return the name of the source, the same for every import from this store."""
        named = self.project or self.path
        slug = re.sub(r"[^a-z0-9]+", "-", named.name.lower()).strip("-")[:SLUG_CHARS] or "store"
        reach = "" if self.project is None else "project"
        digest = hashlib.sha256(b"\0".join([os.fsencode(self.path), self.part.encode(), reach.encode()])).hexdigest()
        return f"{NATIVE_PREFIX}{self.tool}:{slug}-{digest[:8]}"


@dataclass(frozen=True, slots=True)
class Discovery:
    """A search for the stores of one tool."""

    tool: str
    places: Places
    projects: Projects

    def store(self, path: Path, project: Path | None = None, part: str = "") -> MemoryStore:
        """Return the store at a path; without a project it is about the user."""
        return MemoryStore(self.tool, path, self.places.shorten(path), project, part)

    def project_store(self, path: Path, project: Path | None, part: str = "") -> MemoryStore | Skipped:
        """Return the store of a project, `Skipped` if its folder is unknown."""
        if project is not None:
            return self.store(path, project, part)
        origin = self.places.shorten(path)
        return Skipped(f"{origin}: {part}" if part else origin, UNKNOWN_PROJECT)


class Tool(NamedTuple):
    """A tool: its name for people, and functions that list its stores and read a store.

    `discover` yields also what cannot be imported, and nothing if the tool was never used here.
    """

    label: str
    discover: Callable[[Discovery], Iterator[MemoryStore | Skipped]]
    read: Callable[[MemoryStore, Known], Readings]


@dataclass(frozen=True, slots=True)
class NativeMemory:
    """A memory as a tool keeps it. `occurred_at` is None if the tool keeps no date."""

    text: str
    occurred_at: str | None = None
    kind: Kind = Kind.FACT
    tags: tuple[Any, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    importance: float | None = None


class Entry(NamedTuple):
    """A part of a file or database with its key, the digest of its content, and its memories."""

    key: str
    digest: str
    memories: Iterable[NativeMemory]


@dataclass(frozen=True, slots=True)
class NativeFile:
    """A text file of a tool: its key in the store, its text, the digest of its bytes, and its modification time."""

    key: str
    text: str
    digest: str
    modified_at: str


def read_entries(store: MemoryStore, known: Known, entries: Iterable[Entry | Skipped], estimated_at: str) -> Readings:
    """Yield an item for each entry."""
    for entry in entries:
        if isinstance(entry, Skipped):
            yield entry
        else:
            drafts = make_drafts(store, store.origin, entry.memories, estimated_at)
            yield read_item(known, entry.key, entry.digest, drafts)


def read_files(
    store: MemoryStore,
    known: Known,
    files: Iterable[Path],
    list_memories: Callable[[MemoryStore, NativeFile], Iterable[NativeMemory] | None],
) -> Readings:
    """Yield an item for each file in a store's folder, or the file that is the store.

    `list_memories` returns None for a file that belongs to another store.
    """
    folder = store.path if store.path.is_dir() else store.path.parent
    for path in files:
        file = read_file(path, path.relative_to(folder).as_posix(), known)
        if not isinstance(file, NativeFile):
            yield file
        elif (memories := list_memories(store, file)) is not None:
            origin = store.origin if path == store.path else f"{store.origin}/{file.key}"
            yield read_item(known, file.key, file.digest, make_drafts(store, origin, memories, file.modified_at))


def make_drafts(
    store: MemoryStore, origin: str, memories: Iterable[NativeMemory], estimated_at: str
) -> Iterator[Draft]:
    """Yield the drafts of memories; one without a date gets the estimated date, and its metadata says so."""
    for memory in memories:
        is_estimated = True if memory.occurred_at is None else None
        fields = {"tool": store.tool, "file": origin, "date_estimated": is_estimated, **memory.more}
        for content in split_text(memory.text):
            yield Draft(
                content=content,
                kind=memory.kind,
                importance=memory.importance,
                scope=PERSONAL if store.project is None else None,
                tags=tags_of(store.tool, *memory.tags),
                metadata=metadata_of(fields),
                source=Source.IMPORT,
                occurred_at=memory.occurred_at or estimated_at,
                details=memory.details,
            )


def read_file(path: Path, key: str, known: Known) -> NativeFile | Reading:
    """Return a text file, `Unchanged` if its digest is known, or `Skipped` with the reason.

    All reasons are failures, so that the memories of a file that cannot be read are kept.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | READ_NONBLOCKING)) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                return Skipped(key, "cannot be read: not a regular file")
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return Skipped(key, f"cannot be read: {error.strerror}")
    if len(raw) > MAX_FILE_BYTES:
        return Skipped(key, f"cannot be read: larger than {MAX_FILE_BYTES >> 20} MiB")
    digest = hashlib.sha256(VERSION + raw).hexdigest()
    if known.get(key) == digest:
        return Unchanged(key)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Skipped(key, "cannot be read: not valid UTF-8")
    return NativeFile(key, text, digest, time_of_change(status.st_mtime))
