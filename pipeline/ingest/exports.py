"""Another tool's export: a file, a .zip, or a folder of both; read as a stream, nothing is unpacked to disk."""

import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipeline.errors import InvalidField
from pipeline.ingest.entries import ExportEntry, LostValue, broken, entries
from pipeline.ingest.fields import MAX_KEY_CHARS, name_of
from pipeline.ingest.items import Progress, Reading, Readings, Skipped

MAX_VALUE_BYTES = 32 * 1024 * 1024

# What a damaged, an encrypted or an oddly packed archive raises.
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class Part:
    """A file of an export: its path within it, its size unpacked, the file on disk, and which member of that it is."""

    name: str
    size: int
    path: Path
    member: zipfile.ZipInfo | None = None


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """How a tool's export is read.

    `expected` says what it is. Of an archive or a folder, the files whose path `files` finds are read. `take` gets an
    entry and the name of its place, and answers what was read from it, or None where it knows no such entry.
    """

    expected: str
    files: re.Pattern[str]
    take: Callable[[ExportEntry, str], Iterable[Reading] | None]


def read_export(path: Path, export: ExportFormat, progress: Progress) -> Readings:
    """Yield what an export holds; raise InvalidField where it is no such export."""
    wanted: list[Part] = []
    for part in _parts(path):
        if isinstance(part, Skipped):
            yield part
        elif (path.is_file() and part.member is None) or export.files.search(part.name):
            wanted.append(part)
        else:
            yield Skipped(part.name, "not part of what is imported")
    if not wanted:
        raise broken(f"holds no {export.expected}")
    reader = _ExportReader(export, progress, sum(part.size for part in wanted))
    for part in wanted:
        yield from reader.part(part)
    if reader.strange and not reader.known:
        raise broken(f"is no {export.expected}{f': it {reader.problem}' if reader.problem else ''}")


class _ExportReader:
    """Reads part after part: counts the bytes, and the entries that are known and unknown."""

    def __init__(self, export: ExportFormat, progress: Progress, total: int) -> None:
        self._export = export
        self._progress = progress
        self._total = total
        self._done = 0
        self.known = 0
        self.strange = 0
        self.problem = ""

    def part(self, part: Part) -> Readings:
        """Yield what a part holds."""
        ends_at = self._done + part.size
        try:
            with _open(part) as stream:
                for entry in entries(stream, MAX_VALUE_BYTES, self._advance):
                    yield from self._read_entry(entry, _place(part, entry))
        except InvalidField as error:
            self.strange += 1
            self.problem = error.errors[0].msg
            yield Skipped(part.name, f"the rest of it could not be read: it {self.problem}")
        self._done = ends_at
        self._progress(self._done, self._total)

    def _read_entry(self, entry: ExportEntry, place: str) -> Readings:
        if isinstance(entry.value, LostValue):
            yield Skipped(place, entry.value.reason)
            return
        taken = self._export.take(entry, place)
        if taken is None:
            self.strange += 1
            yield Skipped(place, "of an unknown kind")
            return
        for reading in taken:
            self.known += 1
            yield reading

    def _advance(self, read: int) -> None:
        self._done += read
        self._progress(min(self._done, self._total), self._total)


class _Source:
    """A stream whose failures are told as problems of the source."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        try:
            return self._stream.read(size)
        except _UNREADABLE as error:
            raise broken("cannot be unpacked") from error


@contextmanager
def _open(part: Part) -> Iterator[_Source]:
    if part.member is None:
        with _file(part.path) as file:
            yield _Source(file)
    else:
        with _archive(part.path) as archive, _member(archive, part.member) as stream:
            yield _Source(stream)


def _file(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise broken(f"cannot be read: {error.strerror}") from error


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _UNREADABLE as error:
        raise broken("is no .zip that can be read") from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(member)
    except _UNREADABLE as error:
        raise broken("is encrypted or damaged") from error


def _parts(path: Path) -> Iterator[Part | Skipped]:
    if path.is_file():
        yield from _parts_of_file(path, path.name, within=False)
    elif path.is_dir():
        yield from _parts_of_folder(path)
    else:
        raise broken("names no file or folder")


def _parts_of_folder(folder: Path) -> Iterator[Part | Skipped]:
    closed: list[OSError] = []
    for place, folders, files in os.walk(folder, onerror=closed.append):
        yield from (Skipped(_part_name(str(error.filename)), f"cannot be read: {error.strerror}") for error in closed)
        closed.clear()
        folders.sort()
        for file in sorted(files):
            path = Path(place, file)
            name = path.relative_to(folder).as_posix()
            try:
                if path.is_symlink() or not path.is_file():
                    yield Skipped(_part_name(name), "no regular file")
                else:
                    yield from _parts_of_file(path, name, within=True)
            except InvalidField as error:
                yield Skipped(_part_name(name), error.errors[0].msg)


def _parts_of_file(path: Path, name: str, *, within: bool) -> Iterator[Part]:
    if path.suffix.lower() != ".zip" and (within or not zipfile.is_zipfile(path)):
        yield Part(_part_name(name), path.stat().st_size, path)
        return
    with _archive(path) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                # Names are compared and shown, never followed.
                inner = member.filename.replace("\\", "/")
                yield Part(_part_name(f"{name}/{inner}" if within else inner), member.file_size, path, member)


def _part_name(name: str) -> str:
    return name_of(name, MAX_KEY_CHARS - 100) or "a file without a name"


def _place(part: Part, entry: ExportEntry) -> str:
    steps = [part.name, *([name_of(entry.name, 50)] if entry.name else [])]
    return " ".join([*steps, *([f"#{entry.number}"] if entry.number else [])])
