"""Make drafts of native memories: each keeps its tool, its file, its date and its reach."""

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from config.operating_system import READ_NONBLOCKING
from pipeline.ingest.fields import Known, Reading, Skipped, Unchanged, metadata_of, split_text, tags_of
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.records import PERSONAL, Draft, Kind, Source
from pipeline.times import utc_text

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
# Part of every digest: increased when the readers improve, so that known items are read again.
VERSION: Final = b"native 1\0"


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


def make_drafts(store: MemoryStore, file: str, memory: NativeMemory, estimated_at: str) -> Iterator[Draft]:
    """Yield the drafts of a memory; without a date it gets the estimated one, which its metadata says."""
    origin = {"tool": store.tool, "file": file, "date_estimated": True if memory.occurred_at is None else None}
    for content in split_text(memory.text):
        yield Draft(
            content=content,
            kind=memory.kind,
            importance=memory.importance,
            scope=PERSONAL if store.project is None else None,
            tags=tags_of(store.tool, *memory.tags),
            metadata=metadata_of({**origin, **memory.more}),
            source=Source.IMPORT,
            occurred_at=memory.occurred_at or estimated_at,
            details=memory.details,
        )


@dataclass(frozen=True, slots=True)
class NativeFile:
    """A text file of a tool: its key in the store, its text, the digest of its bytes, and its modification time."""

    key: str
    text: str
    digest: str
    modified_at: str


def read_file(path: Path, key: str, known: Known) -> NativeFile | Reading:
    """Return a text file, `Unchanged` if its digest is known, or `Skipped` with the reason.

    All reasons are failures, so that the memories of a file that cannot be read are kept.
    """
    try:
        with open(path, "rb", opener=_open_without_waiting) as stream:
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


def time_of_change(modified: float) -> str:
    """Return a file's modification time as UTC text, never in the future."""
    return utc_text(datetime.fromtimestamp(min(max(modified, 0.0), time.time()), UTC))


def list_markdown(folder: Path) -> list[Path]:
    """List the Markdown files below a folder, without links and hidden files, in order."""
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(parent, name) for name in sorted(names) if name.endswith((".md", ".mdc")) and name[0] != "."]
    return [path for path in found if not path.is_symlink()]


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | READ_NONBLOCKING)
