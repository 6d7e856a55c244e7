"""Read Markdown: notes, vaults of notes, and instructions such as CLAUDE.md. Each section becomes a memory."""

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.features.ingest.fields import (
    MAX_KEY_CHARS,
    Item,
    Known,
    Progress,
    Readings,
    Skipped,
    metadata_of,
    name_of,
    read_item,
    session_of,
    split_under_heading,
    tags_of,
    time_of_change,
)
from pipeline.features.ingest.front_matter import FrontMatter, parse_moment, split_front_matter
from pipeline.features.ingest.json_values import build_source_error, open_source
from pipeline.kernel.records import Draft, Kind, Source
from pipeline.text.normalize import drop_embedded_data, normalize_text

SOURCE = "markdown"
VERSION = b"markdown 2\n"
SUFFIXES = frozenset({".md", ".markdown"})
MAX_FILE_BYTES = 8 * 1024 * 1024
# The start of a file that is examined to detect its type.
LOOKED_AT_BYTES = 4096
# Other files that are often given by mistake: type, first bytes, and the command that reads them.
_OTHERS = (
    ("lines of JSON", re.compile(rb"\{[^\r\n]*\}[ \t]*\r?\n[ \t]*\{"), "`reverie import jsonl`"),
    ("JSON", re.compile(rb"[\[{][ \t\r\n]*[\"\[{\]}]"), "the import of the program that wrote it"),
    ("a PDF", re.compile(rb"%PDF-"), "`reverie index pdf`"),
    ("a ZIP archive", re.compile(rb"PK\x03\x04"), "the import of the program that wrote it"),
    ("a page of HTML", re.compile(rb"<(?:!doctype html|html)", re.IGNORECASE), ""),
    ("a database", re.compile(rb"SQLite format 3"), "`reverie import pmb`"),
)
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_DATED_NAME = re.compile(r"((?:19|20)\d\d)[-_]?(\d\d)[-_]?(\d\d)(?![0-9]{1,3}(?![0-9]))")
# Between the title of a document and its headings.
STEP = " › "

# Starts and ends a code block, which contains no headings.
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_RST_UNDERLINE = re.compile(r"(([=\-~^\"'#*+`:.])\2{2,})\s*$")
_LETTER = re.compile(r"[^\W_]")
# Lines that an underline does not turn into a heading: lists, quotes, tables, indented code.
_NO_PARAGRAPH = re.compile(r" {4}|\t| {0,3}(?:[-*+>|]|\d+[.)])(?:\s|\||$)| {0,3}\|")


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """A stretch of text under its headings, outermost first; `top` is the level of the first heading, 0 without one."""

    path: tuple[str, ...]
    top: int
    text: str


def read_markdown(path: Path, known: Known, progress: Progress) -> Readings:
    """Yield the documents of a file or a folder; raise InvalidField if there are none."""
    files = list(_files(path))
    total, done = sum(max(size, 0) for _, _, size in files), 0
    if not files:
        raise build_source_error("contains no Markdown: there is no file that ends in .md or .markdown")
    for key, file, size in files:
        yield from _read_note(known, key, file, size)
        done += max(size, 0)
        progress(done, total)


def _files(path: Path) -> Iterator[tuple[str, Path, int]]:
    """Yield key, path and size of every Markdown file; skip hidden ones, such as an editor's folder."""
    if path.is_file():
        _check_is_text(path)
        yield normalize_text(path.name), path, path.stat().st_size
    elif not path.is_dir():
        raise build_source_error("is not a file or folder")
    for parent, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(parent, name)
            if file.suffix.lower() in SUFFIXES:
                key = normalize_text(file.relative_to(path).as_posix())
                # A link that is followed may lead out of the folder.
                yield (key, file, -1) if file.is_symlink() else (key, file, file.stat().st_size)


def _check_is_text(file: Path) -> None:
    """Reject a file of another type; the InvalidField names the command that reads it, if there is one."""
    if file.suffix.lower() in SUFFIXES:
        return
    with open_source(file) as stream:
        start = stream.read(LOOKED_AT_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n")
    for looks, begins, reader in _OTHERS:
        if begins.match(start):
            raise build_source_error(f"{file.name} is not Markdown but {looks}{f'. Use {reader}' if reader else ''}")
    if b"\0" in start:
        raise build_source_error(f"{file.name} is not Markdown but a binary file")


def _read_note(known: Known, key: str, file: Path, size: int) -> Readings:
    raw = _read(key, file, size)
    if isinstance(raw, Skipped):
        yield raw
        return
    digest = hashlib.sha256(VERSION + raw).hexdigest()
    try:
        text = raw.decode("utf-16" if raw.startswith(_UTF_16_MARKS) else "utf-8-sig")
    except UnicodeDecodeError:
        yield Skipped(key, "not valid UTF-8")
        return
    front, body = split_front_matter(drop_embedded_data(text))
    # A note without a date gets the date of its file, not the present.
    occurred_at = front.occurred_at or _date_of_name(file.stem) or time_of_change(file.stat().st_mtime)
    reading = read_item(known, key, digest, _drafts(key, front, body, occurred_at))
    yield reading
    if isinstance(reading, Item):
        yield from (Skipped(key, f"partly: {problem}") for problem in front.problems)


def _date_of_name(stem: str) -> str | None:
    """Return the date at the start of a file's name, as in Jekyll's posts and daily notes (Logseq: 2025_03_14)."""
    match = _DATED_NAME.match(stem)
    return None if match is None else parse_moment("-".join(match.groups()))


def _read(key: str, file: Path, size: int) -> bytes | Skipped:
    if not key or len(key) > MAX_KEY_CHARS:
        return Skipped(key[:MAX_KEY_CHARS], f"its path is longer than {MAX_KEY_CHARS} characters")
    if size < 0 or not file.is_file():
        return Skipped(key, "not a regular file")
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return Skipped(key, f"cannot be read: {error.strerror}")
    return raw if len(raw) <= MAX_FILE_BYTES else Skipped(key, f"larger than {MAX_FILE_BYTES >> 20} MiB")


def _drafts(key: str, front: FrontMatter, body: str, occurred_at: str) -> Iterator[Draft]:
    # Makes a note findable by the words of its description.
    sections = list(split_sections(f"{front.summary}\n\n{body}" if front.summary else body))
    title = _title(front, sections, key)
    for section in sections:
        under = section.path[1:] if section.path[:1] == (title,) else section.path
        heading = name_of(STEP.join([title, *under]))
        for content in split_under_heading(heading, section.text):
            yield Draft(
                content=content,
                kind=Kind.DOCUMENT,
                tags=tags_of(SOURCE, list(front.tags)),
                metadata=metadata_of({"title": title, "path": key}),
                session_id=session_of(SOURCE, key),
                source=Source.IMPORT,
                occurred_at=occurred_at,
                details={"title": heading, "uri": key},
            )


def _title(front: FrontMatter, sections: list[DocumentSection], key: str) -> str:
    """Return the document's title: from its front matter, its only topmost heading, or its file's name."""
    tops = {section.path[0] for section in sections if section.path and section.top == 1}
    only = tops.pop() if len(tops) == 1 else ""
    return name_of(front.title) or name_of(only) or name_of(Path(key).stem) or key[:100]


def split_sections(text: str, *, is_rst: bool = False) -> Iterator[DocumentSection]:
    """Yield the non-empty sections of Markdown or reStructuredText in order."""
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    for line, heading in _lines(text, is_rst=is_rst):
        if heading is None:
            lines.append(line)
            continue
        yield from _section(headings, lines)
        level, name = heading
        headings = [*((above, title) for above, title in headings if above < level), (level, name)]
        lines = []
    yield from _section(headings, lines)


def _section(headings: list[tuple[int, str]], lines: list[str]) -> Iterator[DocumentSection]:
    text = "\n".join(lines).strip("\n")
    if text.strip():
        path = tuple(name for _, name in headings if name)
        yield DocumentSection(path, headings[0][0] if headings else 0, text)


def _lines(text: str, *, is_rst: bool) -> Iterator[tuple[str, tuple[int, str] | None]]:
    """Yield every line, and for a heading its level and name; a line in a code block is never a heading."""
    fence = ""
    # The signs of underlines by level; in reStructuredText, the first one that is used underlines the first level.
    signs = "" if is_rst else "=-"
    pattern = _RST_UNDERLINE if is_rst else _UNDERLINE
    # The only line of a paragraph so far: an underline makes it a heading.
    alone: str | None = None
    fresh = True
    for line in text.splitlines():
        underline = None if alone is None else pattern.match(line)
        if underline is not None and alone is not None:
            signs += "" if underline[1][0] in signs else underline[1][0]
            yield alone, (signs.index(underline[1][0]) + 1, alone.strip())
            alone, fresh = None, True
            continue
        if alone is not None:
            yield alone, None
            alone = None
        fence, heading = _state(fence, line)
        is_text = _LETTER.search(line) if is_rst else line.strip() and not _NO_PARAGRAPH.match(line)
        plain = not fence and heading is None and bool(is_text)
        if plain and fresh:
            alone = line
        else:
            yield line, heading
        fresh = not plain
    if alone is not None:
        yield alone, None


def _state(fence: str, line: str) -> tuple[str, tuple[int, str] | None]:
    """Return the fence of the code block that contains or starts at the line, else the line's heading."""
    mark = _FENCE.match(line)
    if fence:
        ends = mark is not None and mark[1].startswith(fence) and not mark[2].strip()
        return ("" if ends else fence), None
    if mark is not None and not (mark[1][0] == "`" and "`" in mark[2]):
        return mark[1], None
    heading = _HEADING.match(line)
    return "", None if heading is None else (len(heading[1]), _name(line[heading.end() :]))


def _name(rest: str) -> str:
    """Return a heading's name without closing signs."""
    name = rest.strip()
    strip_markers = name.rstrip("#")
    return strip_markers.rstrip() if not strip_markers or strip_markers[-1] in " \t" else name
