"""Read the memories of memorix: active observations, except those that it read from rule files itself."""

from collections.abc import Iterator
from functools import partial
from typing import ClassVar, Final

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped
from pipeline.ingest.native.claude_code import SLUG_UNKNOWN
from pipeline.ingest.native.drafts import NativeMemory
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects
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
from pipeline.store.foreign_database import Row

_COLUMNS: Final = (
    *("id", "entityName", "type", "title", "narrative", "facts", "concepts", "projectId", "topicKey", "status"),
    *("source", "createdAt", "updatedAt"),
)
# Observations that memorix made from rule files, which are read from the files.
_OF_RULES: Final = frozenset({"rules", "rule", "rules-sync", "import-rules"})


class Reader:
    """Read the memories of memorix."""

    tool: ClassVar[str] = "memorix"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield a store for each project of the database; its projects are named by their Git remotes."""
        path = places.folder("MEMORIX_DATA_DIR", ".memorix", "data") / "memorix.db"
        if not path.is_file():
            return
        for name in list_parts(path, "observations", "projectId"):
            project = projects.find_remote(name)
            if project is None:
                yield Skipped(f"{places.shorten(path)}: {name}", SLUG_UNKNOWN)
            else:
                yield MemoryStore(self.tool, path, places.shorten(path), project, name)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each observation of the store's project."""
        yield from read_tables(store, known, [Table("observations", _COLUMNS, partial(_read, store.part))])


def _read(project: str, row: Row) -> NativeMemory | str | None:
    if row["projectId"] != project:
        return None
    if row["status"] not in (None, "", "active"):
        return "not active in the tool"
    if str(row["source"]).lower() in _OF_RULES:
        return "read from a rule file by the tool"
    return NativeMemory(
        join_texts(row["title"], row["narrative"], list_points(read_list(row["facts"]))),
        find_time(row["updatedAt"], row["createdAt"]),
        kind_of(row["type"]),
        (row["type"], read_list(row["concepts"])),
        more={"entity": row["entityName"], "topic_key": row["topicKey"]},
    )
