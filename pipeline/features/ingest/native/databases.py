"""Read the memories that tools keep in SQLite databases: an item for each row that belongs to a store.

| tool | rows |
|---|---|
| claude-mem | Observations, and summaries of sessions as notes. Its projects are names of folders. |
| engram | Observations. The chunks in `.engram/` of a repository repeat them and are left out. |
| mcp-memory-service | Memories; they name no project. |
| MemPalace | Triples, diaries, and drawers filled by hand; other drawers repeat transcripts and files. |
| mem0 | The last text of each memory in its history, and active rows of OpenMemory; they name no project. |
| memorix | Active observations, except those that it read from rule files itself. Git remotes name its projects. |
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from config.places import Places
from pipeline.features.ingest.fields import Known, Readings, Skipped, digest_of_json, text_of, time_of, time_of_change
from pipeline.features.ingest.native.markdown_folders import find_folder_of_transcript
from pipeline.features.ingest.native.memory_stores import Discovery, Entry, MemoryStore, NativeMemory, read_entries
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


_VERSION: Final = "native 1"
_KINDS: Final = {
    **dict.fromkeys(("decision", "architecture", "trade-off"), Kind.DECISION),
    # A conversation that mcp-memory-service keeps whole.
    "session": Kind.EPISODE,
}
CLAUDE_MEM_VARIABLE: Final = "CLAUDE_MEM_DATA_DIR"
# The project that took in the rows of another one.
_MERGED: Final = "merged_into_project"
_SUMMARY_PARTS: Final = ("request", "investigated", "learned", "completed", "next_steps", "notes")
# Sessions of claude-mem's own observing agent.
_OBSERVER: Final = "observer-sessions"
_SESSION: Final = ("project", "content_session_id")
_SESSIONS_TRIED: Final = 20
_HISTORY: Final = ("memory_id", "new_memory", "event", "created_at", "updated_at", "is_deleted")
_OPEN_MEMORY: Final = "openmemory.db"
# Observations that memorix made from rule files, which are read from the files.
_OF_RULES: Final = frozenset({"rules", "rule", "rules-sync", "import-rules"})


class Table(NamedTuple):
    """A table, the columns to read, and a function from a store and a row to the memory.

    The function returns None for a row of another project, and a reason for a row that is left out.
    """

    name: str
    columns: Sequence[str]
    read: Callable[[MemoryStore, Row], NativeMemory | str | None]
    key: str = "id"


def read_database(store: MemoryStore, known: Known, entries: Iterable[Entry | Skipped]) -> Readings:
    """Yield an item for each entry of a store's database."""
    try:
        yield from read_entries(store, known, entries, time_of_change(store.path.stat().st_mtime))
    except (OSError, ForeignDatabaseUnreadable) as error:
        # The key of the whole source: entries that were not read are not deleted ones.
        problem = error.reason if isinstance(error, ForeignDatabaseUnreadable) else f"cannot be read: {error.strerror}"
        yield Skipped(".", problem)


def read_tables(store: MemoryStore, known: Known, tables: Iterable[Table]) -> Readings:
    """Yield an item for each row of the tables that belongs to the store; the keys name the table and the row."""
    yield from read_database(store, known, (entry for table in tables for entry in _list_rows(store, table)))


def _list_rows(store: MemoryStore, table: Table) -> Iterator[Entry | Skipped]:
    for row in read_rows(store.path, table.name, table.columns):
        key = f"{table.name}:{row.get(table.key)}"
        memory = table.read(store, row)
        if isinstance(memory, str):
            yield Skipped(key, memory)
        elif memory is not None:
            plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}
            yield Entry(key, digest_of_json(_VERSION, plain), [memory])


def discover_claude_mem(found: Discovery) -> Iterator[MemoryStore | Skipped]:
    """Yield a store for each project; the transcripts of its sessions may name its folder."""
    folder = found.places.folder(CLAUDE_MEM_VARIABLE, ".claude-mem")
    settings = read_json(folder / "settings.json")
    moved = settings.get(CLAUDE_MEM_VARIABLE) if isinstance(settings, dict) else None
    path = (found.places.expand(moved) if isinstance(moved, str) and moved else folder) / "claude-mem.db"
    columns = [(table, column) for table in ("observations", "session_summaries") for column in ("project", _MERGED)]
    names = {name for table, column in columns for name in _list_parts(path, table, column)}
    for name in sorted(names - {_OBSERVER}):
        project = found.projects.find_name(name) or _find_by_sessions(path, name, found.places)
        yield found.project_store(path, project, name)


def discover_engram(found: Discovery) -> Iterator[MemoryStore | Skipped]:
    """Yield a store for each project, and one for personal memories."""
    path = found.places.folder("ENGRAM_DATA_DIR", ".engram") / "engram.db"
    if path.is_file():
        yield found.store(path)
    for name in _list_parts(path, "observations", "project"):
        yield found.project_store(path, found.projects.find_folder(name) or found.projects.find_name(name), name)


def discover_mcp_memory_service(found: Discovery) -> Iterator[MemoryStore]:
    """Yield the database."""
    places = found.places
    folders = {"darwin": ("Library", "Application Support"), "win32": ("AppData", "Local")}
    default = folders.get(places.platform, (".local", "share"))
    named = places.environment.get("MCP_MEMORY_SQLITE_PATH", "")
    folder = places.folder("MCP_MEMORY_BASE_DIR", *default, "mcp-memory")
    path = Path(named) if named else folder / "sqlite_vec.db"
    if path.is_file():
        yield found.store(path)


def discover_mem0(found: Discovery) -> Iterator[MemoryStore]:
    """Yield the history of mem0, and databases of OpenMemory in known folders.

    mem0 keeps its memories in a vector store that may be on a server; its history has the same texts.
    """
    places = found.places
    paths = [places.folder("MEM0_DIR", ".mem0") / "history.db", places.home / ".openmemory" / _OPEN_MEMORY]
    folders = found.projects.folders
    paths += [folder / part / _OPEN_MEMORY for folder in folders for part in ("", "api", "openmemory/api")]
    yield from (found.store(path) for path in paths if path.is_file())


def discover_memorix(found: Discovery) -> Iterator[MemoryStore | Skipped]:
    """Yield a store for each project."""
    path = found.places.folder("MEMORIX_DATA_DIR", ".memorix", "data") / "memorix.db"
    for name in _list_parts(path, "observations", "projectId"):
        yield found.project_store(path, found.projects.find_remote(name), name)


def read_mem0(store: MemoryStore, known: Known) -> Readings:
    """Yield an item for each memory of mem0 or OpenMemory."""
    if store.path.name == _OPEN_MEMORY:
        yield from read_tables(store, known, [_OPEN_MEMORIES])
    else:
        yield from read_database(store, known, _list_history(store))


def _list_history(store: MemoryStore) -> Iterator[Entry | Skipped]:
    # Rows are only added: the last row of a memory wins.
    rows = read_rows(store.path, "history", _HISTORY)
    for key, row in {row["memory_id"]: row for row in rows if isinstance(row["memory_id"], str)}.items():
        if row["is_deleted"] or row["event"] == "DELETE":
            yield Skipped(key, "deleted in the tool")
        else:
            memory = NativeMemory(text_of(row["new_memory"]), find_time(row["updated_at"], row["created_at"]))
            yield Entry(key, digest_of_json("mem0 local 1", row), [memory])


def _read_claude_mem_observation(store: MemoryStore, row: Row) -> NativeMemory | None:
    if (row[_MERGED] or row["project"]) != store.part:
        return None
    return NativeMemory(
        _join_texts(row["title"], row["narrative"] or row["text"] or row["subtitle"], _list_points(row["facts"])),
        find_time(row["created_at_epoch"], row["created_at"]),
        _kind_of(row["type"]),
        (row["type"], _read_list(row["concepts"])),
        more={"files": _read_list(row["files_modified"])},
    )


def _read_summary(store: MemoryStore, row: Row) -> NativeMemory | None:
    if (row[_MERGED] or row["project"]) != store.part:
        return None
    text = _join_texts(*(f"{name.replace('_', ' ').capitalize()}: {row[name]}" for name in _SUMMARY_PARTS if row[name]))
    return NativeMemory(text, find_time(row["created_at_epoch"], row["created_at"]), Kind.EPISODE, ("summary",))


def _read_engram(store: MemoryStore, row: Row) -> NativeMemory | str | None:
    is_personal = row["scope"] == "personal" or not row["project"]
    if is_personal != (store.project is None) or (not is_personal and row["project"] != store.part):
        return None
    if row["deleted_at"]:
        return "deleted in the tool"
    return NativeMemory(
        _join_texts(row["title"], row["content"]),
        find_time(row["updated_at"], row["created_at"]),
        _kind_of(row["type"]),
        (row["type"],),
        more={"topic_key": row["topic_key"]},
    )


def _read_mcp_memory_service(_store: MemoryStore, row: Row) -> NativeMemory | str:
    if row["deleted_at"]:
        return "deleted in the tool"
    if row["superseded_by"]:
        return "replaced in the tool"
    return NativeMemory(
        text_of(row["content"]),
        find_time(row["updated_at"], row["created_at"]),
        _kind_of(row["memory_type"]),
        # "untagged" marks a memory without tags.
        (row["memory_type"], [tag for part in text_of(row["tags"]).split(",") if (tag := part.strip()) != "untagged"]),
    )


def _read_memorix(store: MemoryStore, row: Row) -> NativeMemory | str | None:
    if row["projectId"] != store.part:
        return None
    if row["status"] not in (None, "", "active"):
        return "not active in the tool"
    if str(row["source"]).lower() in _OF_RULES:
        return "read from a rule file by the tool"
    return NativeMemory(
        _join_texts(row["title"], row["narrative"], _list_points(row["facts"])),
        find_time(row["updatedAt"], row["createdAt"]),
        _kind_of(row["type"]),
        (row["type"], _read_list(row["concepts"])),
        more={"entity": row["entityName"], "topic_key": row["topicKey"]},
    )


def _read_open_memory(_store: MemoryStore, row: Row) -> NativeMemory | str:
    if row["state"] not in (None, "active"):
        return "not active in the tool"
    return NativeMemory(text_of(row["content"]), find_time(row["updated_at"], row["created_at"]))


_OPEN_MEMORIES: Final = Table("memories", ("id", "content", "state", "created_at", "updated_at"), _read_open_memory)
# The tables of the tools whose databases need no other treatment.
TABLES: Final = {
    "claude-mem": (
        Table(
            "observations",
            (
                *("id", "project", "type", "title", "subtitle", "narrative", "text", "facts", "concepts"),
                *("files_modified", "created_at", "created_at_epoch", _MERGED),
            ),
            _read_claude_mem_observation,
        ),
        Table(
            "session_summaries",
            ("id", "project", *_SUMMARY_PARTS, "created_at", "created_at_epoch", _MERGED),
            _read_summary,
        ),
    ),
    "engram": (
        Table(
            "observations",
            (
                *("id", "type", "title", "content", "project", "scope", "topic_key", "created_at", "updated_at"),
                "deleted_at",
            ),
            _read_engram,
        ),
    ),
    "mcp-memory-service": (
        Table(
            "memories",
            (
                *("content_hash", "content", "tags", "memory_type", "created_at", "updated_at", "deleted_at"),
                "superseded_by",
            ),
            _read_mcp_memory_service,
            key="content_hash",
        ),
    ),
    "memorix": (
        Table(
            "observations",
            (
                *("id", "entityName", "type", "title", "narrative", "facts", "concepts", "projectId", "topicKey"),
                *("status", "source", "createdAt", "updatedAt"),
            ),
            _read_memorix,
        ),
    ),
}


def find_time(*values: Any) -> str | None:
    """Return the first time among some values."""
    return next(filter(None, map(time_of, values)), None)


def _find_by_sessions(path: Path, name: str, places: Places) -> Path | None:
    """Return the folder of a project's session, according to its transcript."""
    root, rows = places.folder("CLAUDE_CONFIG_DIR", ".claude"), read_rows(path, "sdk_sessions", _SESSION)
    named = (row["content_session_id"] for row in rows if row["project"] == name)
    sessions = (session for session in named if isinstance(session, str) and session.replace("-", "").isalnum())
    tried = (file for session in islice(sessions, _SESSIONS_TRIED) for file in root.glob(f"projects/*/{session}.jsonl"))
    try:
        return next(filter(None, map(find_folder_of_transcript, tried)), None)
    except ForeignDatabaseUnreadable:
        # A database without sessions does not say where its projects are.
        return None


def _list_parts(path: Path, table: str, column: str) -> list[str]:
    """Return the names in a column; none if the database cannot be read, which reading it reports."""
    try:
        with open_foreign_database(path) as db:
            values = db.values(table, column) if column in db.columns(table) else []
    except ForeignDatabaseUnreadable:
        return []
    return sorted({text for value in values if (text := text_of(value))})


def _kind_of(nature: Any) -> Kind:
    return _KINDS.get(nature.lower(), Kind.FACT) if isinstance(nature, str) else Kind.FACT


def _read_list(value: Any) -> list[str]:
    """Return the texts of a list that is stored as JSON."""
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return []
    return [text for text in parsed if isinstance(text, str) and text.strip()] if isinstance(parsed, list) else []


def _list_points(value: Any) -> str:
    return "\n".join(f"- {point}" for point in _read_list(value))


def _join_texts(*texts: Any) -> str:
    """Return the texts among some values as paragraphs, each once."""
    return "\n\n".join(dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip()))
