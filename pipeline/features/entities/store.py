"""Entities and their mentions: one canonical row per kind and name."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.features.entities import alias_store as aliases
from pipeline.features.map import store as maps
from pipeline.features.map.store import MentionedEntity
from pipeline.kernel.records import EntityKind, Filter, Memory, Viewer
from pipeline.kernel.records.digestion import EntityMention
from pipeline.kernel.store.memories import select_newest
from pipeline.kernel.store.rows import Table, list_rows
from pipeline.kernel.store.visibility import ONLY_NORMAL, condition, reach_condition
from pipeline.kernel.times import utc_now


@dataclass(frozen=True, slots=True)
class LinkedEntity:
    """An entity as a memory mentions it."""

    id: str
    kind: EntityKind
    name: str
    surface: str


@dataclass(frozen=True, slots=True)
class EntityTie:
    """Two entities, by row number, and the number of visible memories that mention both."""

    low: int
    high: int
    memories: int


class GraphCounts(NamedTuple):
    """Numbers of entities and mentions."""

    entities: int
    mentions: int


class EntitySpan(NamedTuple):
    """The first and the last time; None if there is none."""

    first_at: str | None
    last_at: str | None


def link(db: Connection, memory_seq: int, mentions: Sequence[EntityMention]) -> None:
    """Replace the mentions of a memory."""
    before = _remove_mentions(db, memory_seq)
    resolved = [aliases.resolve(db, (mention.kind, mention.name)) for mention in mentions]
    linked = [
        (memory_seq, aliases.find_or_add(db, name), mention.surface)
        for name, mention in zip(resolved, mentions, strict=True)
    ]
    db.executemany(
        "INSERT INTO mention (memory_seq, entity_seq, surface) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", linked
    )
    _drop_unused(db, before)


def unlink(db: Connection, memory_seq: int) -> None:
    """Remove a memory's mentions, and entities and aliases without mentions."""
    _drop_unused(db, _remove_mentions(db, memory_seq))


def _remove_mentions(db: Connection, memory_seq: int) -> dict[int, aliases.Name]:
    """Remove a memory's mentions; return the entities that it mentioned."""
    rows = db.execute(
        "SELECT e.seq, e.kind, e.name FROM mention m JOIN entity e ON e.seq = m.entity_seq WHERE m.memory_seq = ?",
        (memory_seq,),
    ).fetchall()
    if rows:
        db.execute("DELETE FROM mention WHERE memory_seq = ?", (memory_seq,))
    return {seq: (EntityKind(kind), name) for seq, kind, name in rows}


def _drop_unused(db: Connection, seqs: Mapping[int, aliases.Name]) -> None:
    """Remove those of the entities, and those of their aliases, that no memory mentions."""
    if not seqs:
        return
    gone = list_rows(
        db,
        int,
        "WITH given (seq) AS MATERIALIZED (SELECT CAST(value AS BIGINT) FROM json_each(?)) "
        "SELECT seq FROM given WHERE NOT EXISTS (SELECT 1 FROM mention WHERE entity_seq = given.seq)",
        (json.dumps(list(seqs)),),
    )
    maps.forget(db, gone)
    db.executemany("DELETE FROM entity WHERE seq = ?", [(seq,) for seq in gone])
    aliases.drop_unused(db, list(seqs.values()))


def of(db: Connection, memory_seq: int) -> list[LinkedEntity]:
    """List the entities that a memory mentions."""
    return list_rows(
        db,
        LinkedEntity,
        "SELECT e.id, e.kind, e.name, m.surface FROM mention m JOIN entity e ON e.seq = m.entity_seq "
        "WHERE m.memory_seq = ? ORDER BY e.kind, e.name",
        (memory_seq,),
    )


def list_mentioned_names(
    db: Connection, memory_seqs: Sequence[int], kinds: Iterable[EntityKind]
) -> dict[int, list[str]]:
    """Return the names of the entities of some kinds that each memory mentions, by its row number."""
    names: dict[int, list[str]] = {}
    for memory_seq, name in db.execute(
        "SELECT m.memory_seq, e.name FROM mention m JOIN entity e ON e.seq = m.entity_seq "
        "WHERE m.memory_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) "
        "AND e.kind IN (SELECT value FROM json_each(?))",
        (json.dumps(list(memory_seqs)), json.dumps(sorted(kinds))),
    ):
        names.setdefault(memory_seq, []).append(name)
    return names


def list_mentions(db: Connection, seqs: Sequence[int], without: Iterable[EntityKind]) -> list[tuple[int, int]]:
    """List (memory, entity) pairs by row numbers, except for some kinds of entities."""
    return db.execute(
        "SELECT m.memory_seq, m.entity_seq FROM mention m JOIN entity e ON e.seq = m.entity_seq "
        "WHERE m.memory_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) "
        "AND e.kind NOT IN (SELECT value FROM json_each(?))",
        (json.dumps(list(seqs)), json.dumps(sorted(without))),
    ).fetchall()


def list_named_products(db: Connection, names: Collection[str]) -> frozenset[str]:
    """Return which of some names, in canonical form, are products that memories mention."""
    sought = "SELECT name FROM entity WHERE kind = ? AND name IN (SELECT value FROM json_each(?))"
    return frozenset(list_rows(db, str, sought, (EntityKind.PRODUCT, json.dumps(list(names)))))


def find_kinds_of_names(db: Connection, names: Collection[str]) -> dict[str, EntityKind]:
    """Return the kind of each of some names that an identifier or a package in memories has."""
    rows = db.execute(
        "SELECT name, min(kind) FROM entity WHERE kind IN (?, ?) AND name IN (SELECT value FROM json_each(?)) "
        "GROUP BY name",
        (EntityKind.IDENTIFIER, EntityKind.PACKAGE, json.dumps(list(names))),
    )
    return {name: EntityKind(kind) for name, kind in rows}


def page(
    db: Connection, viewer: Viewer, text: str, kind: EntityKind | None, limit: int, below: tuple[int, int] | None
) -> list[MentionedEntity]:
    """List entities whose name contains a text, ignoring case, the most mentioned first.

    Continues below a (mentions, row number) pair.
    """
    hidden, values = _select_hidden(viewer)
    named = (
        "entity_seq IN (SELECT seq FROM entity WHERE kind = coalesce(?, kind) AND "
        "(instr(lower(name), ?) > 0 OR seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))))"
    )
    folded = text.casefold()
    chosen, filter_values = (
        (named, (kind, folded, json.dumps(_beyond_ascii(db, folded)))) if text or kind else ("true", ())
    )
    # The unary plus stops the planner from reading all mentions of an entity for every hidden memory.
    sign = "+" if filter_values else ""
    return list_rows(
        db,
        MentionedEntity,
        f"WITH hidden (seq) AS MATERIALIZED ({hidden}), "  # noqa: S608 - constant text
        # Counting all mentions and subtracting the hidden ones is ten times as fast as checking every memory.
        "seen (seq, mentions) AS (SELECT entity_seq, CAST(sum(memories) AS BIGINT) FROM ("
        f"SELECT entity_seq, count(*) AS memories FROM mention WHERE {chosen} GROUP BY entity_seq UNION ALL "
        "SELECT entity_seq, -count(*) FROM hidden CROSS JOIN mention "
        f"WHERE memory_seq = hidden.seq AND {sign}{chosen} GROUP BY entity_seq) counted "
        "GROUP BY entity_seq HAVING sum(memories) > 0) "
        "SELECT e.seq, e.id, e.kind, e.name, s.mentions FROM seen s JOIN entity e ON e.seq = s.seq "
        "WHERE CAST(? AS BIGINT) IS NULL OR (s.mentions, e.seq) < (?, ?) ORDER BY s.mentions DESC, e.seq DESC LIMIT ?",
        (*values, *filter_values, *filter_values, below and below[0], *(below or (None, None)), limit),
    )


def get(db: Connection, viewer: Viewer, entity_id: str) -> MentionedEntity | None:
    """Return an entity by id, None if no visible memory mentions it."""
    return next(iter(_select_named(db, viewer, "id = ?", (entity_id,))), None)


def find(db: Connection, viewer: Viewer, name: str) -> MentionedEntity | None:
    """Find an entity by id, name or alias, ignoring case; among several, the most mentioned."""
    entities = _select_named(db, viewer, "id = ? OR name = ? OR lower(name) = ?", (name, name, name.lower()))
    for target in () if entities else aliases.find_targets(db, name):
        entities += _select_named(db, viewer, "kind = ? AND name = ?", target)
    return next(iter(entities), None)


def list_aliases(db: Connection, viewer: Viewer, entity: MentionedEntity) -> list[str]:
    """List the other names of an entity that visible memories use."""
    merged = aliases.list_aliases(db, (entity.kind, entity.name))
    if not merged:
        return []
    visible, values = _visible(viewer)
    rows = db.execute(
        f"SELECT DISTINCT m.surface FROM mention m WHERE m.entity_seq = ? AND {visible}",  # noqa: S608 - constant text
        (entity.seq, *values),
    ).fetchall()
    names = [(entity.kind, entity.name), *(alias.name for alias in merged)]
    spelled = {aliases.find_spelled_name(surface, names) for (surface,) in rows}
    return [alias.name[1] for alias in merged if alias.name in spelled]


def list_mentioning(db: Connection, viewer: Viewer, entity_seq: int, limit: int, before: int | None) -> list[Memory]:
    """List the visible memories that mention an entity, newest first, below a row number."""
    mentioning = "seq IN (SELECT memory_seq FROM mention WHERE entity_seq = ?)"
    return select_newest(db, Filter(viewer=viewer), limit, before, mentioning, (entity_seq,))


def newest(db: Connection, entity_seq: int, limit: int) -> list[int]:
    """List the newest memories that mention an entity, by row number, including archived ones."""
    return list_rows(
        db,
        int,
        "SELECT memory_seq FROM mention WHERE entity_seq = ? ORDER BY memory_seq DESC LIMIT ?",
        (entity_seq, limit),
    )


def span(db: Connection, viewer: Viewer, entity_seq: int) -> EntitySpan:
    """Return the first and last time of the visible memories about an entity."""
    clause, values = condition(Filter(viewer=viewer))
    spans = list_rows(
        db,
        EntitySpan,
        f"SELECT min(occurred_at), max(occurred_at) FROM memory WHERE {clause} "  # noqa: S608 - constant text
        "AND seq IN (SELECT memory_seq FROM mention WHERE entity_seq = ?)",
        (*values, entity_seq),
    )
    return spans[0]


def beside(db: Connection, viewer: Viewer, entity_seqs: Sequence[int], limit: int) -> list[MentionedEntity]:
    """List the entities that are mentioned together with the given entities, most often first."""
    visible, values = _visible(viewer)
    listed = json.dumps(list(entity_seqs))
    return list_rows(
        db,
        MentionedEntity,
        "WITH seen (seq, mentions) AS (SELECT o.entity_seq, count(DISTINCT m.memory_seq) FROM mention m "  # noqa: S608
        "JOIN mention o ON o.memory_seq = m.memory_seq "
        "WHERE m.entity_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) "
        f"AND o.entity_seq NOT IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) "
        f"AND {visible} GROUP BY o.entity_seq) "
        "SELECT e.seq, e.id, e.kind, e.name, s.mentions FROM seen s JOIN entity e ON e.seq = s.seq "
        "ORDER BY s.mentions DESC, e.seq LIMIT ?",
        (listed, listed, *values, limit),
    )


def mention_counts(db: Connection, viewer: Viewer, entity_seqs: Sequence[int]) -> dict[int, int]:
    """Return the number of visible memories per entity."""
    entities = _select_named(
        db, viewer, "seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", (json.dumps(list(entity_seqs)),)
    )
    return {entity.seq: entity.mentions for entity in entities}


def ties(db: Connection, viewer: Viewer, entity_seqs: Sequence[int], limit: int) -> list[EntityTie]:
    """List which of the given entities are mentioned together, most often first."""
    visible, values = _visible(viewer)
    return list_rows(
        db,
        EntityTie,
        "WITH wanted (seq) AS MATERIALIZED (SELECT CAST(value AS BIGINT) FROM json_each(?)) "  # noqa: S608 - constant text
        "SELECT m.entity_seq, o.entity_seq, count(*) FROM mention m "
        "JOIN mention o ON o.memory_seq = m.memory_seq AND o.entity_seq > m.entity_seq "
        "WHERE m.entity_seq IN (SELECT seq FROM wanted) AND o.entity_seq IN (SELECT seq FROM wanted) "
        f"AND {visible} "
        "GROUP BY m.entity_seq, o.entity_seq ORDER BY count(*) DESC, m.entity_seq, o.entity_seq LIMIT ?",
        (json.dumps(list(entity_seqs)), *values, limit),
    )


def count(db: Connection) -> int:
    """Count the entities."""
    return int(db.execute("SELECT count(*) FROM entity").fetchone()[0])


def counts(db: Connection) -> GraphCounts:
    """Count entities and mentions."""
    tables = ("entity", "mention")
    return GraphCounts(*(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables))  # noqa: S608 - constant names


def _visible(viewer: Viewer) -> tuple[str, list[Any]]:
    """Return the condition that the memory of a mention `m` is visible, and its values."""
    clause, values = condition(Filter(viewer=viewer))
    return f"EXISTS (SELECT 1 FROM memory WHERE seq = m.memory_seq AND {clause})", values  # noqa: S608 - constant text


def _select_hidden(viewer: Viewer) -> tuple[str, list[Any]]:
    """Return a query for the hidden memories, each once, from small indexes; and its values."""
    parts = ["archived_at > ''", "candidate = 1 AND archived_at IS NULL", "valid_to <= ?", "valid_from > ?"]
    now = utc_now()
    values: list[Any] = [now, now]
    if not viewer.everything:
        reach, owners = reach_condition(viewer)
        parts.append(f"scope_kind <> 'workspace' AND NOT {reach}")
        values += owners
    if viewer.only_normal:
        parts.append(f"NOT {ONLY_NORMAL}")
    return " UNION ".join(f"SELECT seq FROM memory WHERE {part}" for part in parts), values  # noqa: S608 - constant text


def _beyond_ascii(db: Connection, folded: str) -> list[int]:
    """Return the entities with a non-ASCII name that contains a folded text; SQLite folds ASCII only."""
    # Non-ASCII text has more bytes than characters.
    rows = db.execute("SELECT seq, name FROM entity WHERE length(name) < length(CAST(name AS BLOB))")
    return [seq for seq, name in rows if folded in name.casefold()]


def _select_named(db: Connection, viewer: Viewer, which: str, values: Sequence[Any]) -> list[MentionedEntity]:
    visible, visible_values = _visible(viewer)
    return list_rows(
        db,
        MentionedEntity,
        f"WITH wanted AS (SELECT seq, id, kind, name FROM entity WHERE {which}) "  # noqa: S608 - constant text
        "SELECT e.seq, min(e.id), min(e.kind), min(e.name), count(*) FROM wanted e "
        f"JOIN mention m ON m.entity_seq = e.seq WHERE {visible} GROUP BY e.seq ORDER BY count(*) DESC, e.seq",
        (*values, *visible_values),
    )


TABLES = (
    Table(
        "entity",
        text=("name",),
        orphans="entities",
        orphaned="NOT EXISTS (SELECT 1 FROM mention WHERE mention.entity_seq = entity.seq)",
    ),
    Table(
        "mention",
        ("memory_seq", "entity_seq"),
        text=("surface",),
        memory=("memory_seq",),
        erasure=lambda db, memory: unlink(db, memory.seq),
    ),
)
