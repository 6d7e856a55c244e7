"""The map of entities: positions, communities, and drawn ties.

A new drawing is written row by row next to the visible one, and then replaces it. It covers every scope, so only the
data directory's owner may see it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import NamedTuple

from pipeline.kernel.records import OWNER, EntityKind, Filter
from pipeline.kernel.store import meta
from pipeline.kernel.store.rows import Table, find_row, list_rows
from pipeline.kernel.store.visibility import condition

# The number of the visible drawing, and its time.
SHOWN = "map_shown"
SHOWN_AT = "map_shown_at"
# The community of entities without a community.
NO_COMMUNITY = -1


class MapPosition(NamedTuple):
    """An entity's position and size in pixels of the map at zoom 1.

    `centrality` is the entity's importance in its community.
    """

    entity_seq: int
    x: float
    y: float
    radius: float
    community: int
    centrality: float
    mentions: int


class MapTie(NamedTuple):
    """Two entities in row order, and the number of memories that mention both; the strongest tie has rank 0."""

    rank: int
    low: int
    high: int
    memories: int


@dataclass(frozen=True, slots=True)
class MapDrawing:
    """A drawing: its number, 0 if there is none, and its time."""

    number: int
    at: str | None


@dataclass(frozen=True, slots=True)
class MapEntity:
    """An entity as the map shows it."""

    seq: int
    id: str
    kind: EntityKind
    name: str
    x: float
    y: float
    radius: float
    community: int
    centrality: float
    mentions: int


@dataclass(frozen=True, slots=True)
class MentionedEntity:
    """An entity as a viewer sees it: `mentions` counts the visible memories that mention it.

    In a list of related entities and of neighbors on the map, `mentions` counts the memories that mention both.
    """

    seq: int
    id: str
    kind: EntityKind
    name: str
    mentions: int


@dataclass(frozen=True, slots=True)
class Community:
    """A community of entities, its size, and its most central members first."""

    number: int
    size: int
    members: tuple[MentionedEntity, ...]


def mentions(
    db: Connection, at: str, without: Sequence[EntityKind], after: tuple[int, int], limit: int
) -> list[tuple[int, int]]:
    """List (memory, entity) row numbers above a row, of current memories at a time, without some kinds."""
    return db.execute(
        "SELECT m.memory_seq, m.entity_seq FROM mention m JOIN memory ON memory.seq = m.memory_seq "
        "JOIN entity e ON e.seq = m.entity_seq WHERE (m.memory_seq, m.entity_seq) > (?, ?) "
        "AND archived_at IS NULL AND candidate = 0 AND (valid_from IS NULL OR valid_from <= ?) "
        "AND (valid_to IS NULL OR valid_to > ?) AND e.kind NOT IN (SELECT value FROM json_each(?)) "
        "ORDER BY m.memory_seq, m.entity_seq LIMIT ?",
        (*after, at, at, json.dumps(list(without)), limit),
    ).fetchall()


def ids(db: Connection, seqs: Sequence[int]) -> dict[int, str]:
    """Return the ids of entities by row number."""
    return dict(
        db.execute(
            "SELECT seq, id FROM entity WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
            (json.dumps(list(seqs)),),
        ).fetchall()
    )


def get_shown_drawing(db: Connection) -> MapDrawing:
    """Return the visible drawing."""
    return MapDrawing(meta.get_int(db, SHOWN), meta.get(db, SHOWN_AT))


def show(db: Connection, drawing: int, at: str) -> None:
    """Make a drawing visible and drop the former one."""
    meta.put(db, SHOWN, str(drawing))
    meta.put(db, SHOWN_AT, at)


def has_leftovers(db: Connection) -> bool:
    """Return whether there are rows of other drawings."""
    number = meta.get_int(db, SHOWN)
    return any(
        db.execute(f"SELECT 1 FROM {table} WHERE drawing <> ? LIMIT 1", (number,)).fetchone()  # noqa: S608 - constant
        for table in ("entity_place", "map_tie")
    )


def discard(db: Connection, limit: int) -> int:
    """Delete some rows of other drawings; return their number."""
    number = meta.get_int(db, SHOWN)
    chosen = "WHERE drawing <> ? LIMIT ?"
    deleted = db.execute(
        "DELETE FROM entity_place WHERE (entity_seq, drawing) IN "  # noqa: S608 - constant text
        f"(SELECT entity_seq, drawing FROM entity_place {chosen})",
        (number, limit),
    ).rowcount
    ties = db.execute(
        f"DELETE FROM map_tie WHERE (drawing, rank) IN (SELECT drawing, rank FROM map_tie {chosen})",  # noqa: S608
        (number, limit - deleted),
    ).rowcount
    return deleted + ties


def add_positions(db: Connection, drawing: int, positions: Sequence[tuple[str, MapPosition]]) -> None:
    """Add (entity id, position) rows to a drawing; skip entities that are gone by now.

    Entities are identified by id because row numbers are reused.
    """
    db.executemany(
        "INSERT INTO entity_place SELECT seq, ?, ?, ?, ?, ?, ?, ? FROM entity WHERE seq = ? AND id = ? "  # noqa: S608
        "ON CONFLICT (entity_seq, drawing) DO UPDATE SET "
        + _replacing("x", "y", "radius", "community", "centrality", "mentions"),
        [
            (drawing, p.x, p.y, p.radius, p.community, p.centrality, p.mentions, p.entity_seq, entity)
            for entity, p in positions
        ],
    )


def add_ties(db: Connection, drawing: int, ties: Sequence[MapTie]) -> None:
    """Add ties to a drawing, between entities with a position in it."""
    db.executemany(
        "INSERT INTO map_tie SELECT ?1, ?2, ?3, ?4, ?5 WHERE "  # noqa: S608 - constant text
        "(SELECT count(*) FROM entity_place WHERE entity_seq IN (?3, ?4) AND drawing = ?1) = 2 "
        f"ON CONFLICT (drawing, rank) DO UPDATE SET {_replacing('low', 'high', 'memories')}",
        [(drawing, *tie) for tie in ties],
    )


def forget(db: Connection, entity_seqs: Sequence[int]) -> None:
    """Remove entities from every drawing."""
    for seq in entity_seqs:
        db.execute("DELETE FROM entity_place WHERE entity_seq = ?", (seq,))
        db.execute("DELETE FROM map_tie WHERE low = ?", (seq,))
        db.execute("DELETE FROM map_tie WHERE high = ?", (seq,))


def list_positions(db: Connection) -> list[MapPosition]:
    """List the positions of the visible drawing, in row order."""
    return list_rows(
        db,
        MapPosition,
        "SELECT entity_seq, x, y, radius, community, centrality, mentions FROM entity_place WHERE drawing = ? "
        "ORDER BY entity_seq",
        (meta.get_int(db, SHOWN),),
    )


def list_ties(db: Connection) -> list[tuple[int, int]]:
    """List the ties of the visible drawing, the strongest first."""
    number = meta.get_int(db, SHOWN)
    return db.execute("SELECT low, high FROM map_tie WHERE drawing = ? ORDER BY rank", (number,)).fetchall()


def join_ties(db: Connection) -> str:
    """Return the ties as one text of comma-separated numbers, which is several times as fast."""
    ordered = "SELECT low, high FROM map_tie WHERE drawing = ? ORDER BY rank"
    joined = f"SELECT group_concat(low || ',' || high) FROM ({ordered}) ordered"  # noqa: S608 - constant text
    return find_row(db, str, joined, (meta.get_int(db, SHOWN),)) or ""


def list_spots(db: Connection) -> list[MapEntity]:
    """List the mapped entities that a visible memory mentions, in row order."""
    mentioned, values = _require_mention()
    return list_rows(
        db,
        MapEntity,
        "SELECT e.seq, e.id, e.kind, e.name, p.x, p.y, p.radius, p.community, p.centrality, p.mentions "  # noqa: S608 - constant text
        f"FROM entity_place p JOIN entity e ON e.seq = p.entity_seq WHERE p.drawing = ? AND {mentioned} ORDER BY e.seq",
        (meta.get_int(db, SHOWN), *values),
    )


def list_communities(db: Connection, members: int) -> list[Community]:
    """List the communities, the largest first and entities without community last, with their most central members."""
    mentioned, values = _require_mention()
    rows = db.execute(
        "WITH ranked AS (SELECT p.entity_seq, p.community, p.mentions, count(*) OVER (PARTITION BY community) AS size, "  # noqa: S608
        "row_number() OVER (PARTITION BY community ORDER BY centrality DESC, entity_seq) AS place "
        f"FROM entity_place p WHERE p.drawing = ? AND {mentioned}) "
        "SELECT r.community, r.size, e.seq, e.id, e.kind, e.name, r.mentions FROM ranked r JOIN entity e "
        "ON e.seq = r.entity_seq WHERE r.place <= ? ORDER BY r.community = ?, r.size DESC, r.community, r.place",
        (meta.get_int(db, SHOWN), *values, members, NO_COMMUNITY),
    )
    communities: dict[int, tuple[int, list[MentionedEntity]]] = {}
    for number, size, seq, entity_id, kind, name, count in rows:
        member = MentionedEntity(seq, entity_id, EntityKind(kind), name, count)
        communities.setdefault(number, (size, []))[1].append(member)
    return [Community(number, size, tuple(listed)) for number, (size, listed) in communities.items()]


def members(db: Connection, community: int, limit: int, offset: int) -> list[MentionedEntity]:
    """List the members of a community, the most central first, from an offset."""
    mentioned, values = _require_mention()
    return list_rows(
        db,
        MentionedEntity,
        "SELECT e.seq, e.id, e.kind, e.name, p.mentions FROM entity_place p JOIN entity e ON e.seq = p.entity_seq "  # noqa: S608
        f"WHERE p.drawing = ? AND p.community = ? AND {mentioned} "
        "ORDER BY p.centrality DESC, p.entity_seq LIMIT ? OFFSET ?",
        (meta.get_int(db, SHOWN), community, *values, limit, offset),
    )


def community_of(db: Connection, entity_seq: int) -> int | None:
    """Return the community of an entity, None if it is not on the map."""
    return find_row(
        db,
        int,
        "SELECT community FROM entity_place WHERE entity_seq = ? AND drawing = ?",
        (entity_seq, meta.get_int(db, SHOWN)),
    )


def list_neighbours(db: Connection, entity_seq: int, limit: int) -> list[MentionedEntity]:
    """List an entity's ties on the map, the strongest first."""
    mentioned, values = _require_mention()
    number = meta.get_int(db, SHOWN)
    return list_rows(
        db,
        MentionedEntity,
        "WITH tied (other, rank, memories) AS (SELECT high, rank, memories FROM map_tie "  # noqa: S608
        "WHERE low = ? AND drawing = ? UNION ALL "
        "SELECT low, rank, memories FROM map_tie WHERE high = ? AND drawing = ?) "
        "SELECT e.seq, e.id, e.kind, e.name, t.memories FROM tied t JOIN entity e ON e.seq = t.other "
        f"JOIN entity_place p ON p.entity_seq = e.seq AND p.drawing = ? WHERE {mentioned} "
        "ORDER BY t.rank LIMIT ?",
        (entity_seq, number, entity_seq, number, number, *values, limit),
    )


def _require_mention() -> tuple[str, list[str]]:
    """Return the condition that a visible memory mentions the entity of a position `p`, and its values."""
    clause, values = condition(Filter(viewer=OWNER))
    exists = (
        "EXISTS (SELECT 1 FROM mention m JOIN memory ON memory.seq = m.memory_seq "  # noqa: S608 - constant text
        f"WHERE m.entity_seq = p.entity_seq AND {clause})"
    )
    return exists, values


def _replacing(*columns: str) -> str:
    return ", ".join(f"{column} = excluded.{column}" for column in columns)


TABLES = (
    Table(
        "entity_place",
        ("entity_seq", "drawing"),
        orphans="places",
        orphaned="NOT EXISTS (SELECT 1 FROM entity WHERE entity.seq = entity_place.entity_seq)",
    ),
    Table(
        "map_tie",
        ("drawing", "rank"),
        orphans="map_ties",
        orphaned="NOT EXISTS (SELECT 1 FROM entity WHERE entity.seq = map_tie.low) "
        "OR NOT EXISTS (SELECT 1 FROM entity WHERE entity.seq = map_tie.high)",
    ),
)
