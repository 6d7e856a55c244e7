"""Read another tool's export as a stream: a file, a .zip, or a folder of both. Nothing is unpacked to disk.

Conversations with an assistant become memories of questions, answers, documents and notes.
"""

import os
import re
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from pipeline.features.ingest.fields import (
    MAX_KEY_CHARS,
    Known,
    Progress,
    Reading,
    Readings,
    Skipped,
    Unchanged,
    digest_of,
    metadata_of,
    name_of,
    read_item,
    session_of,
    split_text,
    split_under_heading,
)
from pipeline.features.ingest.json_values import ExportEntry, SkippedValue, build_source_error, entries, open_source
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import Draft, Kind, Source
from pipeline.text.normalize import normalize_text

MAX_VALUE_BYTES = 32 * 1024 * 1024

# Exports of any tool stay below these limits: texts pack to a tenth.
_MOST_MEMBERS = 50_000
_MOST_RATIO = 100
_UNPACKED_BYTES = 80 * 1024 * 1024
# The most processor time: an export of many small entries is read within a tenth of it.
_LEAST_SECONDS = 20
_SECONDS_PER_MEGABYTE = 30
# An export of another tool is recognized by then.
_MOST_STRANGE = 10_000

# Raised for a damaged, encrypted or unusually packed archive.
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error)
# Raised by a reader for a value of an unexpected type.
_UNEXPECTED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# The maximum length of a question or an answer that is also stored separately.
MAX_FIELD_CHARS = 2000
MAX_QUESTION_CHARS = 500
# Longer texts are not written by people, and each is copied several times.
MAX_TEXT_CHARS = 4_000_000

_SHORT = 200

# A question, its answer, and the time of the first of them.
_Exchange = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class Part:
    """A file of an export: path in the export, unpacked size, file on disk, and the archive member, if any."""

    name: str
    size: int
    path: Path
    member: zipfile.ZipInfo | None = None


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A reader of a tool's export.

    `expected` names the export in errors. `files` selects the paths to read in an archive or a folder. `take` receives
    an entry and the name of its file, and returns the readings, or None for an unknown entry.
    """

    expected: str
    files: re.Pattern[str]
    take: Callable[[ExportEntry, str], Iterable[Reading] | None]


def read_export(path: Path, export: ExportFormat, progress: Progress) -> Readings:
    """Yield the readings of an export; raise InvalidField if it is not one."""
    selected: list[Part] = []
    for part in _parts(path):
        if isinstance(part, Skipped):
            yield part
        elif (path.is_file() and part.member is None) or export.files.search(part.name):
            selected.append(part)
        else:
            yield Skipped(part.name, "not used by this import")
    if not selected:
        raise build_source_error(f"contains no {export.expected}")
    packed = sum(file.stat().st_size for file in {part.path for part in selected})
    reader = _ExportReader(export, progress, sum(part.size for part in selected), packed)
    for part in selected:
        yield from _limit_time(reader.part(part), path.name, packed)
        if reader.is_too_large:
            break
    if reader.strange and not reader.known:
        raise build_source_error(f"is not the {export.expected}{f': it {reader.problem}' if reader.problem else ''}")


def _limit_time(readings: Readings, name: str, packed: int) -> Readings:
    """Yield the readings of a part; raise InvalidField if that takes more processor time than for any such export."""
    seconds = _LEAST_SECONDS + _SECONDS_PER_MEGABYTE * packed / 1e6
    spent, began = 0.0, time.thread_time()
    for reading in readings:
        spent += time.thread_time() - began
        if spent > seconds:
            raise build_source_error(f"{name} takes more than {seconds:.0f} s to read, so it is no export")
        yield reading
        began = time.thread_time()


class _ExportReader:
    """Reads one part after another; counts the bytes, and the known and unknown entries."""

    def __init__(self, export: ExportFormat, progress: Progress, total: int, packed: int) -> None:
        self._export = export
        self._progress = progress
        self._total = total
        self._most = max(_UNPACKED_BYTES, _MOST_RATIO * packed)
        self._unpacked = 0
        self._done = 0
        self.is_too_large = False
        self.known = 0
        self.strange = 0
        self.problem = ""

    def part(self, part: Part) -> Readings:
        """Yield the readings of a part."""
        ends_at = self._done + part.size
        try:
            with _open(part) as stream:
                for entry in entries(stream, MAX_VALUE_BYTES, self._advance):
                    yield from self._read_entry(entry, _place(part, entry))
        except InvalidField as error:
            self.strange += 1
            self.problem = error.errors[0].msg
            yield Skipped(part.name, f"its remainder could not be read: it {self.problem}")
        self._done = ends_at
        self._progress(self._done, self._total)

    def _read_entry(self, entry: ExportEntry, position: str) -> Readings:
        if self.strange > _MOST_STRANGE and not self.known:
            raise build_source_error(f"contains {_MOST_STRANGE:,} entries, none of which is readable")
        if isinstance(entry.value, SkippedValue):
            self.strange += 1
            self.problem = f"has no readable content: {entry.value.reason}"
            yield Skipped(position, entry.value.reason)
            return
        try:
            taken = self._export.take(entry, position)
            readings = None if taken is None else list(taken)
        except _UNEXPECTED as error:
            self.strange += 1
            self.problem = f"has no readable content: {error}"
            yield Skipped(_name_entry(position, entry.value), f"cannot be read: {type(error).__name__}: {error}"[:200])
            return
        if readings is None:
            self.strange += 1
            yield Skipped(_name_entry(position, entry.value), "of an unknown kind")
            return
        self.known += len(readings)
        yield from readings

    def _advance(self, read: int) -> None:
        self._unpacked += read
        self.is_too_large = self._unpacked > self._most
        if self.is_too_large:
            raise build_source_error(f"unpacks to more than {_MOST_RATIO} times its size")
        self._done += read
        self._progress(min(self._done, self._total), self._total)


class _Source:
    """A stream that reports its failures as problems of the source."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        with _report_as("cannot be unpacked"):
            return self._stream.read(size)


@contextmanager
def _open(part: Part) -> Iterator[_Source]:
    if part.member is None:
        with open_source(part.path) as file:
            yield _Source(file)
        return
    with _open_archive(part.path) as archive:
        with _report_as("is encrypted or damaged"):
            member = archive.open(part.member)
        with member as stream:
            yield _Source(stream)


def _open_archive(path: Path) -> zipfile.ZipFile:
    with _report_as("is not a readable .zip"):
        return zipfile.ZipFile(path)


@contextmanager
def _report_as(problem: str) -> Iterator[None]:
    try:
        yield
    except _UNREADABLE as error:
        raise build_source_error(problem) from error


def _parts(path: Path) -> Iterator[Part | Skipped]:
    if path.is_file():
        yield from _parts_of_file(path, path.name, within=False)
    elif path.is_dir():
        yield from _parts_of_folder(path)
    else:
        raise build_source_error("is not a file or folder")


def _parts_of_folder(folder: Path) -> Iterator[Part | Skipped]:
    closed: list[OSError] = []
    for parent, folders, files in os.walk(folder, onerror=closed.append):
        yield from (Skipped(_part_name(str(error.filename)), f"cannot be read: {error.strerror}") for error in closed)
        closed.clear()
        folders.sort()
        for file in sorted(files):
            path = Path(parent, file)
            name = path.relative_to(folder).as_posix()
            try:
                if path.is_symlink() or not path.is_file():
                    yield Skipped(_part_name(name), "not a regular file")
                else:
                    yield from _parts_of_file(path, name, within=True)
            except InvalidField as error:
                yield Skipped(_part_name(name), error.errors[0].msg)


def _parts_of_file(path: Path, name: str, *, within: bool) -> Iterator[Part]:
    if path.suffix.lower() != ".zip" and (within or not zipfile.is_zipfile(path)):
        yield Part(_part_name(name), path.stat().st_size, path)
        return
    with _open_archive(path) as archive:
        members = archive.infolist()
        if len(members) > _MOST_MEMBERS:
            raise build_source_error(f"contains more than {_MOST_MEMBERS:,} files")
        if sum(member.compress_size for member in members) > path.stat().st_size:
            raise build_source_error("is no valid .zip: its files overlap")
        for member in members:
            if not member.is_dir():
                # Names are only compared and shown, never followed.
                inner = member.filename.replace("\\", "/")
                yield Part(_part_name(f"{name}/{inner}" if within else inner), member.file_size, path, member)


def _part_name(name: str) -> str:
    return name_of(name, MAX_KEY_CHARS - 100) or "a file without a name"


def _name_entry(position: str, value: object) -> str:
    """Return the position of an entry, with its title."""
    titles = (value.get(field) for field in ("title", "name")) if isinstance(value, dict) else ()
    title = next(filter(None, map(name_of, titles)), "")
    return f"{position} “{title}”" if title else position


def _place(part: Part, entry: ExportEntry) -> str:
    steps = [part.name, *([name_of(entry.name, 50)] if entry.name else [])]
    return " ".join([*steps, *([f"#{entry.number}"] if entry.number else [])])


@dataclass(frozen=True, slots=True)
class Turn:
    """The words of one side."""

    asked: bool
    text: str
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Extra:
    """An attachment of a conversation: a document, a note, a summary. The title is a name, or empty."""

    kind: Kind
    title: str
    text: str
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of any assistant: its title is a name, `began` and `ended` are times or None."""

    source: str
    id: str
    title: str
    began: str | None
    ended: str | None
    turns: Sequence[Turn]
    extras: Sequence[Extra] = ()


def read_conversation(version: str, conversation: Conversation, known: Known) -> Reading:
    """Return the reading of a conversation: an item, unchanged, or skipped."""
    digest = digest_of([version, *_strings(conversation)])
    if known.get(conversation.id) == digest:
        return Unchanged(conversation.id)
    exchanges = list(_pair_turns(conversation.turns))
    longest = max((len(text) for texts in exchanges for text in texts[:2]), default=0)
    if max((longest, *(len(extra.text) for extra in conversation.extras))) > MAX_TEXT_CHARS:
        return Skipped(conversation.id, f"contains a text of more than {MAX_TEXT_CHARS:,} characters")
    return read_item(known, conversation.id, digest, _drafts(conversation, exchanges))


def _strings(conversation: Conversation) -> Iterator[str]:
    yield from (conversation.title, conversation.began or "", conversation.ended or "")
    for turn in conversation.turns:
        yield from ("?" if turn.asked else "!", turn.text, turn.at or "")
    for extra in conversation.extras:
        yield from (extra.kind, extra.title, extra.text, extra.at or "")


def _drafts(conversation: Conversation, exchanges: Iterable[_Exchange]) -> Iterator[Draft]:
    draft = partial(
        Draft,
        tags=(conversation.source,),
        metadata=metadata_of({"title": conversation.title}),
        session_id=session_of(conversation.source, conversation.id),
        source=Source.IMPORT,
    )
    otherwise = conversation.began or conversation.ended
    for question, answer, at in exchanges:
        for content, details in _question_and_answer(question, answer):
            yield draft(content, kind=Kind.QA, occurred_at=at or otherwise, details=details)
    for extra in conversation.extras:
        for content in split_under_heading(extra.title, extra.text):
            yield draft(
                content, kind=extra.kind, occurred_at=extra.at or otherwise, details=_details(conversation, extra)
            )


def _details(conversation: Conversation, extra: Extra) -> dict[str, str]:
    if extra.kind is Kind.DOCUMENT:
        return {"title": extra.title} if extra.title else {}
    began, ended = conversation.began, conversation.ended
    if extra.kind is Kind.EPISODE and began is not None and ended is not None and began <= ended:
        return {"started_at": began, "ended_at": ended}
    return {}


def _pair_turns(turns: Iterable[Turn]) -> Iterator[_Exchange]:
    """Yield the exchanges in order; consecutive messages of one side belong together."""
    asked: list[str] = []
    answered: list[str] = []
    at: str | None = None
    for turn in turns:
        # A message that nobody could see is not part of the conversation.
        if not turn.text or (len(turn.text) < _SHORT and not normalize_text(turn.text)):
            continue
        if turn.asked and answered:
            yield "\n\n".join(asked), "\n\n".join(answered), at
            asked, answered, at = [], [], None
        (asked if turn.asked else answered).append(turn.text)
        at = at or turn.at
    if asked or answered:
        yield "\n\n".join(asked), "\n\n".join(answered), at


def _question_and_answer(question: str, answer: str) -> Iterator[tuple[str, dict[str, str]]]:
    parts = [f"Q: {question}"] if question else []
    parts += [f"A: {answer}"] if answer else []
    pieces = split_text("\n\n".join(parts))
    if len(pieces) == 1:
        yield pieces[0], _sides(pieces[0], asked=bool(question), answered=bool(answer))
        return
    # A long exchange continues in the next memory, which repeats the start of its question.
    heading = next(iter(split_text(question, MAX_QUESTION_CHARS)), "")
    for piece in pieces:
        yield piece, {"question": heading} if heading else {}


def _sides(piece: str, *, asked: bool, answered: bool) -> dict[str, str]:
    """Return both sides of an exchange separately, if they are short and their border is certain."""
    texts = piece.removeprefix("Q: ").split("\n\nA: ") if asked else [piece.removeprefix("A: ")]
    names = [name for name, is_present in (("question", asked), ("answer", answered)) if is_present]
    if len(texts) != len(names):
        return {}
    return {name: text for name, text in zip(names, texts, strict=True) if 0 < len(text) <= MAX_FIELD_CHARS}
