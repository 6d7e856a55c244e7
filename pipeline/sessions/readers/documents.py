"""Read transcripts that are JSON documents, and find files of agents, also in the folders of editors."""

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pipeline.sessions.readers.fields import as_mapping, as_text, parse_json
from pipeline.sessions.readers.log_lines import MOST_VALUES, has_many_values
from pipeline.sessions.readers.reader import Entry, Places, Said, SessionHead, SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import PART_ENTRIES, SessionLog

# A document is parsed as a whole; agents keep one per session.
MAX_DOCUMENT_BYTES = 128 * 1024 * 1024

VS_CODE = ("Code", "Code - Insiders", "VSCodium")
# Editors made from VS Code, in which its extensions run too.
EDITORS = (*VS_CODE, "Cursor", "Windsurf")


def load_document(path: Path) -> tuple[Any, str]:
    """Return a file's JSON value and no problem, or None and the problem."""
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            return None, f"{path.name} is larger than {MAX_DOCUMENT_BYTES >> 20} MiB"
        data = path.read_bytes()
        if has_many_values(data):
            return None, f"{path.name} has more than {MOST_VALUES:,} values"
        return json.loads(data), ""
    except OSError as error:
        return None, f"{path.name} cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        return None, f"{path.name} is not valid JSON"


def read_file_uri(uri: Any) -> str:
    """Return the path of a `file:` URI, empty for any other value."""
    try:
        parts = urlsplit(as_text(uri))
    except ValueError:
        return ""
    path = unquote(parts.path) if parts.scheme == "file" else ""
    # "/c:/x" is a path of Windows.
    return path[1:] if path[2:3] == ":" else path


def list_folder(folder: Path) -> list[os.DirEntry[str]]:
    """List a folder's entries by name; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def list_user_folders(places: Places, editors: tuple[str, ...]) -> Iterator[Path]:
    """Yield the `User` folders of editors that were used on this machine."""
    if places.platform == "darwin":
        root = places.home / "Library/Application Support"
    elif places.platform == "win32":
        root = Path(places.environment.get("APPDATA") or places.home / "AppData/Roaming")
    else:
        root = Path(places.environment.get("XDG_CONFIG_HOME") or places.home / ".config")
    folders = (root / editor / "User" for editor in editors)
    return (folder for folder in folders if folder.is_dir())


@lru_cache(maxsize=256)
def find_workspace_folder(storage: Path) -> str:
    """Return the folder that a storage folder of a workspace belongs to; empty if it names none.

    For a workspace of several folders it is the folder of the workspace's file.
    """
    document, _ = load_document(storage / "workspace.json")
    content = as_mapping(document)
    if folder := read_file_uri(content.get("folder")):
        return folder
    workspace = read_file_uri(content.get("workspace"))
    return str(Path(workspace).parent) if workspace else ""


def describe_file(agent: str, path: Path) -> Iterator[TranscriptFile]:
    """Yield a transcript if there is such a file."""
    try:
        state = path.stat()
    except OSError:
        return
    # A pipe or a device would block its reader.
    if stat.S_ISREG(state.st_mode):
        yield TranscriptFile(agent, path, state.st_size, state.st_mtime)


def find_files(agent: str, folder: Path, pattern: str) -> Iterator[TranscriptFile]:
    """Yield the transcripts below a folder whose paths match a pattern; none below one that cannot be read."""
    try:
        paths = sorted(folder.glob(pattern))
    except OSError:
        # Before Python 3.13, `glob` raises for a folder in one that may not be searched.
        return
    for path in paths:
        yield from describe_file(agent, path)


def describe_database(agent: str, path: Path) -> Iterator[TranscriptFile]:
    """Yield a database if there is such a file, with its write-ahead log: it may be the only file that changes."""
    logs = [log for file in (path, path.with_name(f"{path.name}-wal")) for log in describe_file(agent, file)]
    if logs and logs[0].path == path:
        yield TranscriptFile(agent, path, sum(log.size for log in logs), max(log.modified for log in logs))


def build_problem(file: TranscriptFile, mark: str | None, problem: str, session_id: str = "") -> SessionPart:
    """Return a part that only reports a problem; the next reading starts where this one did."""
    return SessionPart(SessionHead(file.agent, session_id or file.path.stem), (), mark or "", problems=(problem,))


def continue_session(log: SessionLog, mark: str | None) -> Iterator[SessionPart]:
    """Yield the entries of a rewritten document that follow those at a mark; all if those are no longer the same."""
    entries, left_out = log.entries, log.left_out
    known = as_mapping(parse_json(mark))
    first = _find_first(entries, known)
    if not first:
        known = {}
    before = Counter({key: count for key, count in as_mapping(known.get("left_out")).items() if isinstance(count, int)})
    for start in range(first, len(entries) - PART_ENTRIES, PART_ENTRIES):
        end = first = start + PART_ENTRIES
        yield SessionPart(log.head, tuple(entries[start:end]), _format_mark(entries[:end], before))
    rest, new = tuple(entries[first:]), left_out - before
    if rest or new or log.problems:
        yield SessionPart(log.head, rest, _format_mark(entries, left_out), new, tuple(log.problems))


def _find_first(entries: Sequence[Entry], known: Mapping[str, Any]) -> int:
    """Return the position of the first entry after the mark; the last entry before it may have grown."""
    count = known.get("entries")
    if isinstance(count, int) and count <= len(entries):
        for end, name in ((count, "digest"), (count - 1, "before")):
            if end > 0 and known.get(name) == _digest(entries[:end]):
                return end
    return 0


def _format_mark(entries: Sequence[Entry], left_out: Counter[str]) -> str:
    digests = {"digest": _digest(entries), "before": _digest(entries[:-1])}
    return json.dumps({"entries": len(entries), "left_out": left_out} | digests)


def _digest(entries: Sequence[Entry]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for entry in entries:
        text = entry.content if isinstance(entry, Said) else f"{entry.tool} {entry.ok} {entry.arguments}"
        digest.update(f"{entry.id} {text}".encode("utf-8", "replace"))
    return digest.hexdigest()
