"""Read the memories of MemPalace: triples of its knowledge graph, diaries, and drawers that were filled by hand.

Other drawers repeat transcripts and files, which are imported from their own place while it exists.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pipeline.features.ingest.fields import Known, Readings, Skipped, digest_of_json, text_of, time_of
from pipeline.features.ingest.native.databases import Table, find_time, read_database, read_tables
from pipeline.features.ingest.native.memory_stores import Discovery, Entry, MemoryStore, NativeMemory
from pipeline.features.ingest.native.projects import Projects, read_json
from pipeline.kernel.errors import ForeignDatabaseUnreadable
from pipeline.kernel.records import Kind
from pipeline.kernel.store.foreign_database import ForeignDatabase, Row, open_foreign_database, read_rows

_TRIPLES: Final = ("id", "subject", "predicate", "object", "valid_from", "valid_to", "confidence", "extracted_at")
_METADATA: Final = ("id", "key", "string_value", "int_value", "float_value")
_DOCUMENT: Final = "chroma:document"
_DIARY: Final = "diary"
_CLOSETS: Final = "mempalace_closets"
# The drawer that a piece of at most 800 characters belongs to.
_PARENTS: Final = ("parent_drawer_id", "parent_entry_id")
# The drawers of MemPalace's miners; tools and people are any other author.
_MINERS: Final = frozenset({"mempalace", "miner", "convo_miner"})


def discover_mempalace(found: Discovery) -> Iterator[MemoryStore | Skipped]:
    """Yield the knowledge graph, and a store for each wing that is a known project."""
    places = found.places
    legacy = places.home / ".mempalace"
    default = legacy if _is_installed(legacy) else places.xdg_config / "mempalace"
    root = places.folder("MEMPALACE_CONFIG_DIR", str(default))
    settings = read_json(root / "config.json")
    named = settings.get("palace_path") if isinstance(settings, dict) else None
    variables = (places.environment.get(name) for name in ("MEMPALACE_PALACE_PATH", "MEMPAL_PALACE_PATH"))
    palace = places.expand(str(next(filter(None, variables), None) or named or root / "palace"))
    for folder in dict.fromkeys((legacy, root, palace)):
        if (graph := folder / "knowledge_graph.sqlite3").is_file():
            yield found.store(graph)
    chroma = palace / "chroma.sqlite3"
    for wing in _list_wings(chroma):
        yield found.project_store(chroma, _find_project(found.projects, wing.removeprefix("wing_")), wing)


def read_mempalace(store: MemoryStore, known: Known) -> Readings:
    """Yield an item for each triple of the knowledge graph, or for each drawer of the store's wing."""
    if store.project is None:
        names = _read_names(store.path)
        yield from read_tables(store, known, [Table("triples", _TRIPLES, lambda _store, row: _read_triple(names, row))])
    else:
        yield from read_database(store, known, _list_drawers(store))


def _is_installed(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("config.json", "palace/chroma.sqlite3"))


def _find_project(projects: Projects, wing: str) -> Path | None:
    """Return the project of a wing, whose name is that of the folder with "_" for hyphens and spaces."""
    named = [folder for folder in projects.folders if re.sub("[- ]", "_", folder.name).strip("_").lower() == wing]
    return projects.find_name(wing) or (named[0] if len(named) == 1 else None)


def _list_wings(path: Path) -> list[str]:
    """Return the wings with drawers to import; none if the database cannot be read."""
    try:
        return sorted({text_of(drawer.get("wing")) for drawer in _read_drawers(path) if _is_wanted(drawer)})
    except ForeignDatabaseUnreadable:
        return []


def _list_drawers(store: MemoryStore) -> Iterator[Entry]:
    for drawer in _read_drawers(store.path):
        if drawer.get("wing") == store.part and _is_wanted(drawer):
            yield Entry(f"drawer:{drawer['id']}", digest_of_json("mempalace 1", drawer), [_read_drawer(drawer)])


def _read_drawer(drawer: Mapping[str, Any]) -> NativeMemory:
    return NativeMemory(
        text_of(drawer.get(_DOCUMENT)),
        find_time(_local(drawer.get("filed_at")), drawer.get("date")),
        Kind.EPISODE if drawer.get("room") == _DIARY else Kind.FACT,
        (drawer.get("room"), drawer.get("hall")),
        more={"source_file": drawer.get("source_file")},
    )


def _local(value: Any) -> Any:
    """Return a time without a zone with the zone of this machine, in which MemPalace writes it."""
    try:
        return datetime.fromisoformat(value).astimezone().isoformat() if isinstance(value, str) else value
    except (ValueError, OverflowError):
        return value


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
    """Yield each drawer with its text and metadata, the pieces of a long one joined.

    Raises ForeignDatabaseUnreadable.
    """
    pieces: dict[str, list[dict[str, Any]]] = {}
    for entry in _read_entries(path):
        parent = next((text for name in _PARENTS if (text := text_of(entry.get(name)))), "")
        if parent:
            pieces.setdefault(parent, []).append(entry)
        else:
            yield entry
    for parent, parts in pieces.items():
        parts.sort(key=lambda part: part.get("chunk_index") or 0)
        yield parts[0] | {"id": parent, _DOCUMENT: "".join(str(part.get(_DOCUMENT) or "") for part in parts)}


def _read_entries(path: Path) -> Iterator[dict[str, Any]]:
    """Yield each entry of a Chroma database with its text and metadata, without those of MemPalace's own index."""
    with open_foreign_database(path) as db:
        table = "embedding_metadata"
        indexed = _list_indexed(db)
        for entry in db.values(table, "id") if db.columns(table) else ():
            if entry in indexed:
                continue
            drawer: dict[str, Any] = {"id": entry}
            for row in db.rows(table, _METADATA, [("id", "=", entry)]):
                values = (row[name] for name in ("string_value", "int_value", "float_value"))
                drawer[str(row["key"])] = next((value for value in values if value is not None), None)
            yield drawer


def _list_indexed(db: ForeignDatabase) -> set[Any]:
    """Return the entries of the collection of closets, which repeat drawers in other words."""
    if not all(map(db.columns, ("collections", "segments", "embeddings"))):
        return set()
    collections = db.values("collections", "id", [("name", "=", _CLOSETS)])
    segments = [s for one in collections for s in db.values("segments", "id", [("collection", "=", one)])]
    return {entry for segment in segments for entry in db.values("embeddings", "id", [("segment_id", "=", segment)])}
