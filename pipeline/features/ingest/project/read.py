"""The reader of a project: list files → choose how to read each → changed? → text → memories."""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from pipeline.features.ingest.fields import Item, Known, Progress, Reading, Readings, Skipped, Unchanged, time_of_change
from pipeline.features.ingest.project.describe import Description, describe_in_process, start_describer
from pipeline.features.ingest.project.files import (
    File,
    FileKind,
    SkippedFile,
    count_lines,
    kind_of_file,
    language_of,
    list_files,
    read_file,
    text_of,
)
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.records import MAX_PATH_CHARS, Anchor, Draft, Kind, Source
from pipeline.text.normalize import normalize_id

# A function that describes a file, given its key, kind and text.
Describe = Callable[[str, FileKind, str], Description]

# Increased when outlines improve, so that known files are read again.
OUTLINE_VERSION: Final = b"outline 2\0"

# Lower than memories of people, because a file can be read again at any time.
IMPORTANCE: Final = {FileKind.CODE: 0.35, FileKind.MANIFEST: 0.4, FileKind.PROSE: 0.4}
IMPORTANCE_OF_TESTS: Final = 0.25
_TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__", "testdata", "spec", "fixtures"})
_TEST_WORDS: Final = frozenset({"test", "tests", "spec", "conftest"})


def read_project(root: Path, known: Known, progress: Progress, describe: Describe | None = None) -> Readings:
    """Yield a memory for each source file, manifest and document of a project; progress counts files.

    Without a `describe` function, a limited process describes the files. Raises InvalidField if the root is not a
    folder, or a checkout whose owner git does not trust.
    """
    top = _folder(root)
    listed = list_files(top)
    total = sum(isinstance(entry, File) for entry in listed)
    done, process = 0, start_describer(top)
    try:
        for entry in listed:
            if isinstance(entry, Skipped):
                yield entry
                continue
            reading = _read(entry, known, describe or partial(describe_in_process, process))
            done += 1
            progress(done, total)
            yield reading
    finally:
        process.stop()


def _folder(root: Path) -> Path:
    try:
        resolved = root.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidField(FieldError("path", "is not a folder that can be read")) from error
    if not resolved.is_dir():
        raise InvalidField(FieldError("path", "is not a folder"))
    return resolved


def _read(file: File, known: Known, describe: Describe) -> Reading:
    try:
        kind = kind_of_file(file.key)
        data, written_at = read_file(file.path)
        digest = hashlib.sha256(OUTLINE_VERSION + data).hexdigest()
        if known.get(file.key) == digest:
            return Unchanged(file.key)
        return Item(file.key, digest, _drafts(file, kind, data, written_at, describe))
    except SkippedFile as skipped:
        return Skipped(file.key, skipped.reason)


def _drafts(file: File, kind: FileKind, data: bytes, written_at: float, describe: Describe) -> tuple[Draft, ...]:
    text = text_of(data)
    test_tag = ("test",) if _is_test(file.key) else ()
    facts: dict[str, Any] = {"path": file.key, "lines": count_lines(text)}
    common: dict[str, Any] = {
        "source": Source.IMPORT,
        "occurred_at": time_of_change(written_at),
        "anchor": _anchor(file, data),
        "importance": IMPORTANCE_OF_TESTS if test_tag else IMPORTANCE[kind],
    }
    title, parts = describe(file.key, kind, text)
    language = language_of(file.name) if kind is FileKind.CODE else None
    if language is None:
        common |= {"kind": Kind.DOCUMENT, "tags": ("document", str(kind), *test_tag)}
        return _number_parts(parts, {**common, "details": {"title": title} if title else {}}, facts)
    common |= {
        "kind": Kind.CODE,
        "tags": ("code", language.name.lower(), *test_tag),
        "details": {"language": language.name},
    }
    return _number_parts(parts, common, {**facts, "language": language.name})


def _number_parts(parts: Sequence[str], common: dict[str, Any], facts: dict[str, Any]) -> tuple[Draft, ...]:
    if len(parts) == 1:
        return (Draft(parts[0], metadata=facts, **common),)
    return tuple(
        Draft(part, metadata={**facts, "part": number, "parts": len(parts)}, **common)
        for number, part in enumerate(parts, 1)
    )


def _anchor(file: File, data: bytes) -> Anchor:
    """Return an anchor that can be checked; a path that had to be changed for storing would not find its file."""
    # A folder above the project may have a name that cannot be stored as text.
    if len(file.path) > MAX_PATH_CHARS or file.path.encode("utf-8", "replace").decode() != file.path:
        return Anchor(file.key)
    if normalize_id(file.path) != file.path:
        return Anchor(file.path)
    return Anchor(file.path, content_hash=hashlib.sha256(data).hexdigest())


def _is_test(key: str) -> bool:
    *folders, name = key.casefold().split("/")
    stem = name.partition(".")[0].split("_")
    return bool(
        _TEST_FOLDERS & set(folders)
        or _TEST_WORDS & {stem[0], stem[-1], *name.split(".")}
        or key.rpartition("/")[2].partition(".")[0].endswith(("Test", "Tests"))
    )
