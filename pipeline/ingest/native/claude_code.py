"""Read the auto memory of Claude Code: one Markdown file for each memory, in a folder for each project.

`MEMORY.md` is an index whose lines repeat the descriptions of the other files; it is read only if there are no others.
Memories of the type `user` are about the user, wherever they are kept.
"""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import ClassVar

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped, read_item
from pipeline.ingest.front_matter import split_front_matter
from pipeline.ingest.native.drafts import NativeFile, NativeMemory, list_markdown, make_drafts, read_file
from pipeline.ingest.native.generated import strip_generated
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects, is_project
from pipeline.ingest.native.statements import split_statements
from pipeline.ingest.native.typed_notes import read_type
from pipeline.records import Draft

INDEX = "MEMORY.md"
# The part of a project's folder that is about the user.
USER_PART = "user"
SLUG_UNKNOWN = "its project's folder was not found on this machine"
_TRANSCRIPTS, _TRANSCRIPT_LINES = 3, 50


class Reader:
    """Read the auto memory of Claude Code."""

    tool: ClassVar[str] = "claude-code"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield two stores for each project with memories: about the project, and about the user."""
        root = places.folder("CLAUDE_CONFIG_DIR", ".claude")
        for folder in sorted(root.glob("projects/*/memory")):
            project = projects.find_slug(folder.parent.name) or _find_in_transcripts(folder.parent)
            yield from list_note_stores(self.tool, folder, places, project)
        for folder in sorted(root.glob("agent-memory/*")):
            if list_markdown(folder):
                yield MemoryStore(self.tool, folder, places.shorten(folder))
        for project in projects.folders:
            for folder in sorted(project.glob(".claude/agent-memory/*")):
                if list_markdown(folder):
                    yield MemoryStore(self.tool, folder, places.shorten(folder), project)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each file about the store's project or user."""
        yield from read_notes(store, known)


def list_note_stores(tool: str, folder: Path, places: Places, project: Path | None) -> Iterator[MemoryStore | Skipped]:
    """Yield the stores of a folder of typed notes."""
    if not list_markdown(folder):
        return
    origin = places.shorten(folder)
    yield MemoryStore(tool, folder, origin, None, USER_PART)
    if project is None:
        yield Skipped(origin, SLUG_UNKNOWN)
    else:
        yield MemoryStore(tool, folder, origin, project)


def read_notes(store: MemoryStore, known: Known) -> Readings:
    """Yield an item for each note of a folder that belongs to the store's part."""
    files = list_markdown(store.path)
    topics = [file for file in files if file.name != INDEX]
    for path in topics or files:
        key = path.relative_to(store.path).as_posix()
        file = read_file(path, key, known)
        if not isinstance(file, NativeFile):
            yield file
            continue
        is_index = path.name == INDEX
        nature = "" if is_index else read_type(file.text, key)
        # A folder of an agent has no part: all of it has the same reach.
        is_shared = store.part == USER_PART or store.project is not None
        if is_shared and (nature == USER_PART) != (store.part == USER_PART):
            continue
        drafts = _index_drafts(store, file) if is_index else _note_drafts(store, file, nature)
        yield read_item(known, key, file.digest, drafts)


def _note_drafts(store: MemoryStore, file: NativeFile, nature: str) -> Iterator[Draft]:
    front, body = split_front_matter(file.text)
    text = strip_generated(body).strip() or front.summary
    more = {"name": front.title, "description": front.summary, "type": nature}
    memory = NativeMemory(text, front.occurred_at, tags=(nature, list(front.tags)), more=more)
    yield from make_drafts(store, f"{store.origin}/{file.key}", memory, file.modified_at)


def _index_drafts(store: MemoryStore, file: NativeFile) -> Iterator[Draft]:
    for statement in split_statements(strip_generated(file.text)):
        memory = NativeMemory(statement.text, more={"section": " › ".join(statement.path)})
        yield from make_drafts(store, f"{store.origin}/{file.key}", memory, file.modified_at)


def _find_in_transcripts(folder: Path) -> Path | None:
    """Return the folder in which the sessions next to a memory folder ran."""
    transcripts = sorted(folder.glob("*.jsonl"))[:_TRANSCRIPTS]
    return next(filter(None, map(find_folder_of_transcript, transcripts)), None)


def find_folder_of_transcript(transcript: Path) -> Path | None:
    """Return the folder in which a session ran, if it still exists."""
    try:
        with transcript.open(encoding="utf-8", errors="replace") as lines:
            for line in islice(lines, _TRANSCRIPT_LINES):
                cwd = json.loads(line).get("cwd") if '"cwd"' in line else None
                if isinstance(cwd, str) and is_project(Path(cwd), None):
                    return Path(cwd)
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return None
