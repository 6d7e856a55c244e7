"""Read the memories of claude-mem: observations, and summaries of sessions as notes.

Its projects are names of folders. The folder itself is found among the known projects, or by the transcripts of the
sessions in which the observations were made.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from config.places import Places
from pipeline.errors import ForeignDatabaseUnreadable
from pipeline.ingest.fields import Known, Readings, Skipped
from pipeline.ingest.native.claude_code import SLUG_UNKNOWN, find_folder_of_transcript
from pipeline.ingest.native.drafts import NativeMemory
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects, read_json
from pipeline.ingest.native.tables import (
    Table,
    find_time,
    join_texts,
    kind_of,
    list_parts,
    list_points,
    read_list,
    read_tables,
)
from pipeline.records import Kind
from pipeline.store.foreign_database import Row, read_rows

VARIABLE: Final = "CLAUDE_MEM_DATA_DIR"
# The project that took in the rows of another one.
_MERGED: Final = "merged_into_project"
_OBSERVATION: Final = (
    *("id", "project", "type", "title", "subtitle", "narrative", "text", "facts", "concepts"),
    *("files_modified", "created_at", "created_at_epoch", _MERGED),
)
_SUMMARY_PARTS: Final = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_SUMMARY: Final = ("id", "project", *_SUMMARY_PARTS, "created_at", "created_at_epoch", _MERGED)
# Sessions of claude-mem's own observing agent.
_OBSERVER: Final = "observer-sessions"
_SESSIONS_TRIED: Final = 20


class Reader:
    """Read the memories of claude-mem."""

    tool: ClassVar[str] = "claude-mem"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield a store for each project of the database."""
        folder = places.folder(VARIABLE, ".claude-mem")
        settings = read_json(folder / "settings.json")
        moved = settings.get(VARIABLE) if isinstance(settings, dict) else None
        path = (places.expand(moved) if isinstance(moved, str) and moved else folder) / "claude-mem.db"
        if not path.is_file():
            return
        tables = ("observations", "session_summaries")
        names = {
            name for table in tables for column in ("project", _MERGED) for name in list_parts(path, table, column)
        }
        for name in sorted(names - {_OBSERVER}):
            project = projects.find_name(name) or _find_by_sessions(path, name, places)
            if project is None:
                yield Skipped(f"{places.shorten(path)}: {name}", SLUG_UNKNOWN)
            else:
                yield MemoryStore(self.tool, path, places.shorten(path), project, name)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each observation and each summary of the store's project."""
        tables = (
            Table("observations", _OBSERVATION, partial(_read_observation, store.part)),
            Table("session_summaries", _SUMMARY, partial(_read_summary, store.part)),
        )
        yield from read_tables(store, known, tables)


def _read_observation(project: str, row: Row) -> NativeMemory | str | None:
    if (row[_MERGED] or row["project"]) != project:
        return None
    text = join_texts(
        row["title"], row["narrative"] or row["text"] or row["subtitle"], list_points(read_list(row["facts"]))
    )
    return NativeMemory(
        text,
        find_time(row["created_at_epoch"], row["created_at"]),
        kind_of(row["type"]),
        (row["type"], read_list(row["concepts"])),
        more={"files": read_list(row["files_modified"])},
    )


def _read_summary(project: str, row: Row) -> NativeMemory | str | None:
    if (row[_MERGED] or row["project"]) != project:
        return None
    parts = [f"{name.replace('_', ' ').capitalize()}: {row[name]}" for name in _SUMMARY_PARTS if row[name]]
    return NativeMemory(
        join_texts(*parts), find_time(row["created_at_epoch"], row["created_at"]), Kind.EPISODE, ("summary",)
    )


def _find_by_sessions(path: Path, name: str, places: Places) -> Path | None:
    """Return the folder of a project's session, according to its transcript."""
    tried = 0
    try:
        for row in read_rows(path, "sdk_sessions", ("project", "content_session_id")):
            session = row["content_session_id"]
            if row["project"] != name or not isinstance(session, str) or not session.replace("-", "").isalnum():
                continue
            for transcript in places.folder("CLAUDE_CONFIG_DIR", ".claude").glob(f"projects/*/{session}.jsonl"):
                if (folder := find_folder_of_transcript(transcript)) is not None:
                    return folder
            tried += 1
            if tried == _SESSIONS_TRIED:
                return None
    except ForeignDatabaseUnreadable:
        # A database without sessions does not say where its projects are.
        return None
    return None
