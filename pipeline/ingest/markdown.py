"""Markdown: notes, vaults of notes, and what agents are told in CLAUDE.md and its like; a section is a memory."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from pipeline.ingest.entries import broken
from pipeline.ingest.fields import MAX_KEY_CHARS, metadata_of, name_of, session_of, tags_of, time_of
from pipeline.ingest.items import Item, Known, Progress, Reading, Readings, Skipped, Unchanged
from pipeline.ingest.sections import Front, Section, front_of, sections_of
from pipeline.ingest.split import headed_texts
from pipeline.records import Draft, Kind, Source
from pipeline.write.normalize import normalize_text

SOURCE = "markdown"
VERSION = b"markdown 1\n"
SUFFIXES = frozenset({".md", ".markdown"})
MAX_FILE_BYTES = 8 * 1024 * 1024
# Between the title of a document and its headings.
STEP = " › "


def read_markdown(path: Path, known: Known, progress: Progress) -> Readings:
    """Yield the documents of a file or a folder; raise InvalidField where there are none."""
    files = list(_files(path))
    total, done = sum(max(size, 0) for _, _, size in files), 0
    if not files:
        raise broken("holds no Markdown: no file that ends in .md or .markdown")
    for key, file, size in files:
        yield _reading(known, key, file, size)
        done += max(size, 0)
        progress(done, total)


def _files(path: Path) -> Iterator[tuple[str, Path, int]]:
    """Yield key, path and size of every Markdown file; what is hidden, as an editor's own folder, is left alone."""
    if path.is_file():
        yield normalize_text(path.name), path, path.stat().st_size
    elif not path.is_dir():
        raise broken("names no file or folder")
    for place, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(place, name)
            if file.suffix.lower() in SUFFIXES:
                key = normalize_text(file.relative_to(path).as_posix())
                # Followed, a link may lead out of the folder.
                yield (key, file, -1) if file.is_symlink() else (key, file, file.stat().st_size)


def _reading(known: Known, key: str, file: Path, size: int) -> Reading:
    raw = _read(key, file, size)
    if isinstance(raw, Skipped):
        return raw
    digest = hashlib.sha256(VERSION + raw).hexdigest()
    if known.get(key) == digest:
        return Unchanged(key)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Skipped(key, "not valid UTF-8")
    drafts = tuple(_drafts(key, text))
    return Item(key, digest, drafts) if drafts else Skipped(key, "no text")


def _read(key: str, file: Path, size: int) -> bytes | Skipped:
    if not key or len(key) > MAX_KEY_CHARS:
        return Skipped(key[:MAX_KEY_CHARS], f"its path is longer than {MAX_KEY_CHARS} characters")
    if size < 0 or not file.is_file():
        return Skipped(key, "no regular file")
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return Skipped(key, f"cannot be read: {error.strerror}")
    return raw if len(raw) <= MAX_FILE_BYTES else Skipped(key, f"larger than {MAX_FILE_BYTES >> 20} MiB")


def _drafts(key: str, text: str) -> Iterator[Draft]:
    front, body = front_of(text)
    sections = list(sections_of(body))
    title = _title(front, sections, key)
    for section in sections:
        under = section.path[1:] if section.path[:1] == (title,) else section.path
        heading = name_of(STEP.join([title, *under]))
        for content in headed_texts(heading, section.text):
            yield Draft(
                content=content,
                kind=Kind.DOCUMENT,
                tags=tags_of(SOURCE, list(front.tags)),
                metadata=metadata_of({"title": title, "path": key}),
                session_id=session_of(SOURCE, key),
                source=Source.IMPORT,
                occurred_at=time_of(front.date),
                details={"title": heading, "uri": key},
            )


def _title(front: Front, sections: list[Section], key: str) -> str:
    """Return the document's title: what it says of itself, its only topmost heading, or its file's name."""
    tops = {section.path[0] for section in sections if section.path and section.top == 1}
    only = tops.pop() if len(tops) == 1 else ""
    return name_of(front.title) or name_of(only) or name_of(Path(key).stem) or key[:100]
