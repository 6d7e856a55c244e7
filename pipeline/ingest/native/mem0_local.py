"""Read the local memories of mem0: the last text of each memory in its history, and active rows of OpenMemory.

mem0 keeps its memories in a vector store that may be on a server; its change log has the same texts.
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from config.places import Places
from pipeline.errors import ForeignDatabaseUnreadable
from pipeline.ingest.fields import Known, Readings, Skipped, digest_of_json, read_item, text_of
from pipeline.ingest.native.drafts import NativeMemory, make_drafts, time_of_change
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects
from pipeline.ingest.native.tables import Table, find_time, read_tables
from pipeline.store.foreign_database import Row, read_rows

_HISTORY: Final = ("memory_id", "new_memory", "event", "created_at", "updated_at", "is_deleted")
_OPEN: Final = ("id", "content", "state", "created_at", "updated_at")
_OPEN_MEMORY: Final = "openmemory.db"


class Reader:
    """Read the local memories of mem0 and OpenMemory."""

    tool: ClassVar[str] = "mem0"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield the change log, and databases of OpenMemory in known folders; their memories name no project."""
        paths = [places.folder("MEM0_DIR", ".mem0") / "history.db", places.home / ".openmemory" / _OPEN_MEMORY]
        paths += [folder / part / _OPEN_MEMORY for folder in projects.folders for part in ("", "api", "openmemory/api")]
        yield from (MemoryStore(self.tool, path, places.shorten(path)) for path in paths if path.is_file())

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each memory."""
        if store.path.name == _OPEN_MEMORY:
            yield from read_tables(store, known, [Table("memories", _OPEN, _read_open)])
            return
        try:
            estimated_at = time_of_change(store.path.stat().st_mtime)
            # Rows are only added: the last row of a memory wins.
            rows = read_rows(store.path, "history", _HISTORY)
            last = {row["memory_id"]: row for row in rows if isinstance(row["memory_id"], str)}
        except (OSError, ForeignDatabaseUnreadable):
            yield Skipped(".", "cannot be read")
            return
        for key, row in last.items():
            if row["is_deleted"] or row["event"] == "DELETE":
                yield Skipped(key, "deleted in the tool")
                continue
            at = find_time(row["updated_at"], row["created_at"])
            drafts = make_drafts(store, store.origin, NativeMemory(text_of(row["new_memory"]), at), estimated_at)
            yield read_item(known, key, digest_of_json("mem0 local 1", dict(row)), drafts)


def _read_open(row: Row) -> NativeMemory | str | None:
    if row["state"] not in (None, "active"):
        return "not active in the tool"
    return NativeMemory(text_of(row["content"]), find_time(row["updated_at"], row["created_at"]))
