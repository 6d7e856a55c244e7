"""Read the memories of MemPalace: triples of its knowledge graph, diaries, and drawers that were filled by hand.

Other drawers repeat transcripts and files, which are imported from their own place while it exists.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from config.places import Places
from pipeline.errors import ForeignDatabaseUnreadable
from pipeline.ingest.fields import Known, Readings, Skipped, digest_of_json, read_item, text_of, time_of
from pipeline.ingest.native.claude_code import SLUG_UNKNOWN
from pipeline.ingest.native.drafts import NativeMemory, make_drafts, time_of_change
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects, read_json
from pipeline.ingest.native.tables import Table, find_time, read_tables
from pipeline.records import Kind
from pipeline.store.foreign_database import Row, open_foreign_database, read_rows

_TRIPLES: Final = ("id", "subject", "predicate", "object", "valid_from", "valid_to", "confidence", "extracted_at")
_METADATA: Final = ("id", "key", "string_value", "int_value", "float_value")
_DOCUMENT: Final = "chroma:document"
_DIARY: Final = "diary"
# The drawers of MemPalace's miners; tools and people are any other author.
_MINERS: Final = frozenset({"mempalace", "miner", "convo_miner"})


class Reader:
    """Read the memories of MemPalace."""

    tool: ClassVar[str] = "mempalace"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield the knowledge graph, and a store for each wing that is a known project."""
        root = places.home / ".mempalace"
        settings = read_json(root / "config.json")
        named = settings.get("palace_path") if isinstance(settings, dict) else None
        variables = (places.environment.get(name) for name in ("MEMPALACE_PALACE_PATH", "MEMPAL_PALACE_PATH"))
        palace = places.expand(str(next(filter(None, variables), None) or named or root / "palace"))
        for graph in dict.fromkeys((root / "knowledge_graph.sqlite3", palace / "knowledge_graph.sqlite3")):
            if graph.is_file():
                yield MemoryStore(self.tool, graph, places.shorten(graph))
        chroma = palace / "chroma.sqlite3"
        if not chroma.is_file():
            return
        origin = places.shorten(chroma)
        for wing in _list_wings(chroma):
            project = projects.find_name(wing.removeprefix("wing_"))
            if project is None:
                yield Skipped(f"{origin}: {wing}", SLUG_UNKNOWN)
            else:
                yield MemoryStore(self.tool, chroma, origin, project, wing)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each triple of the knowledge graph, or for each drawer of the store's wing."""
        if store.project is None:
            names = _read_names(store.path)
            table = Table("triples", _TRIPLES, lambda row: _read_triple(names, row))
            yield from read_tables(store, known, [table])
            return
        try:
            estimated_at = time_of_change(store.path.stat().st_mtime)
            for drawer in _read_drawers(store.path):
                if drawer.get("wing") == store.part and _is_wanted(drawer):
                    drafts = make_drafts(store, store.origin, _read_drawer(drawer), estimated_at)
                    yield read_item(known, f"drawer:{drawer['id']}", digest_of_json("mempalace 1", drawer), drafts)
        except (OSError, ForeignDatabaseUnreadable):
            # The key of the whole source: drawers that were not read are not deleted ones.
            yield Skipped(".", "cannot be read")


def _list_wings(path: Path) -> list[str]:
    """Return the wings with drawers to import; none if the database cannot be read."""
    try:
        return sorted({text_of(drawer.get("wing")) for drawer in _read_drawers(path) if _is_wanted(drawer)})
    except ForeignDatabaseUnreadable:
        return []


def _read_drawer(drawer: Mapping[str, Any]) -> NativeMemory:
    return NativeMemory(
        text_of(drawer.get(_DOCUMENT)),
        find_time(drawer.get("filed_at"), drawer.get("date")),
        Kind.EPISODE if drawer.get("room") == _DIARY else Kind.FACT,
        (drawer.get("room"), drawer.get("hall")),
        more={"source_file": drawer.get("source_file")},
    )


def _read_names(path: Path) -> dict[str, str]:
    try:
        return {str(row["id"]): text_of(row["name"]) for row in read_rows(path, "entities", ("id", "name"))}
    except ForeignDatabaseUnreadable:
        return {}


def _read_triple(names: Mapping[str, str], row: Row) -> NativeMemory | str | None:
    subject, object_ = (names.get(str(row[name])) or text_of(row[name]) for name in ("subject", "object"))
    predicate = text_of(row["predicate"]).replace("_", " ")
    if not (subject and predicate and object_):
        return "no text"
    until = f" (until {row['valid_to']})" if row["valid_to"] else ""
    more = {name: row[name] for name in ("valid_from", "valid_to", "confidence")}
    at = time_of(row["valid_from"]) or time_of(row["extracted_at"])
    return NativeMemory(f"{subject} {predicate} {object_}{until}", at, more=more)


def _is_wanted(drawer: Mapping[str, Any]) -> bool:
    """Return whether a drawer has a text that is nowhere else."""
    file = text_of(drawer.get("source_file"))
    by_hand = text_of(drawer.get("added_by")).lower() not in _MINERS and bool(drawer.get("added_by"))
    return bool(text_of(drawer.get(_DOCUMENT))) and (by_hand or not file or not Path(file).exists())


def _read_drawers(path: Path) -> Iterator[dict[str, Any]]:
    """Yield each entry of a Chroma database with its text and metadata; raise ForeignDatabaseUnreadable."""
    with open_foreign_database(path) as db:
        table = "embedding_metadata"
        for entry in db.values(table, "id") if db.columns(table) else ():
            drawer: dict[str, Any] = {"id": entry}
            for row in db.rows(table, _METADATA, [("id", "=", entry)]):
                values = (row[name] for name in ("string_value", "int_value", "float_value"))
                drawer[str(row["key"])] = next((value for value in values if value is not None), None)
            yield drawer
