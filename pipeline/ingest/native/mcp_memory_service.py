"""Read the memories of mcp-memory-service, except deleted and replaced ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped, text_of
from pipeline.ingest.native.drafts import NativeMemory
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects
from pipeline.ingest.native.tables import Table, find_time, kind_of, read_tables
from pipeline.store.foreign_database import Row

_COLUMNS: Final = (
    *("content_hash", "content", "tags", "memory_type", "created_at", "updated_at", "deleted_at"),
    "superseded_by",
)


class Reader:
    """Read the memories of mcp-memory-service."""

    tool: ClassVar[str] = "mcp-memory-service"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:  # noqa: ARG002 - the interface
        """Yield the database; its memories name no project."""
        path = _find_path(places)
        if path.is_file():
            yield MemoryStore(self.tool, path, places.shorten(path))

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each memory."""
        yield from read_tables(store, known, [Table("memories", _COLUMNS, _read, key="content_hash")])


def _find_path(places: Places) -> Path:
    if named := places.environment.get("MCP_MEMORY_SQLITE_PATH", ""):
        return Path(named)
    folders = {"darwin": ("Library", "Application Support"), "win32": ("AppData", "Local")}
    default = folders.get(places.platform, (".local", "share"))
    return places.folder("MCP_MEMORY_BASE_DIR", *default, "mcp-memory") / "sqlite_vec.db"


def _read(row: Row) -> NativeMemory | str | None:
    if row["deleted_at"]:
        return "deleted in the tool"
    if row["superseded_by"]:
        return "replaced in the tool"
    tags = [tag.strip() for tag in text_of(row["tags"]).split(",")]
    return NativeMemory(
        text_of(row["content"]),
        find_time(row["updated_at"], row["created_at"]),
        kind_of(row["memory_type"]),
        (row["memory_type"], tags),
    )
