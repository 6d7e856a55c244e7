"""Read the memories of engram: its observations, except deleted ones.

The chunks in `.engram/` of a repository repeat the database and are left out.
"""

from collections.abc import Iterator
from functools import partial
from typing import ClassVar, Final

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped
from pipeline.ingest.native.claude_code import SLUG_UNKNOWN
from pipeline.ingest.native.drafts import NativeMemory
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects
from pipeline.ingest.native.tables import Table, find_time, join_texts, kind_of, list_parts, read_tables
from pipeline.store.foreign_database import Row

_COLUMNS: Final = (
    *("id", "type", "title", "content", "project", "scope", "topic_key", "created_at", "updated_at", "deleted_at"),
)
_PERSONAL: Final = "personal"


class Reader:
    """Read the memories of engram."""

    tool: ClassVar[str] = "engram"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield a store for each project of the database, and one for personal memories."""
        path = places.folder("ENGRAM_DATA_DIR", ".engram") / "engram.db"
        if not path.is_file():
            return
        yield MemoryStore(self.tool, path, places.shorten(path))
        for name in list_parts(path, "observations", "project"):
            project = projects.find_folder(name) or projects.find_name(name)
            if project is None:
                yield Skipped(f"{places.shorten(path)}: {name}", SLUG_UNKNOWN)
            else:
                yield MemoryStore(self.tool, path, places.shorten(path), project, name)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each observation of the store's project, or of the user."""
        yield from read_tables(store, known, [Table("observations", _COLUMNS, partial(_read, store))])


def _read(store: MemoryStore, row: Row) -> NativeMemory | str | None:
    is_personal = row["scope"] == _PERSONAL or not row["project"]
    if is_personal != (store.project is None) or (not is_personal and row["project"] != store.part):
        return None
    if row["deleted_at"]:
        return "deleted in the tool"
    return NativeMemory(
        join_texts(row["title"], row["content"]),
        find_time(row["updated_at"], row["created_at"]),
        kind_of(row["type"]),
        (row["type"],),
        more={"topic_key": row["topic_key"]},
    )
