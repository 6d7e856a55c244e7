"""Entities, who mentions them, and which stand together: one canonical row per kind and name."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from sqlite3 import Connection

from ulid import ULID

from pipeline.records import EntityKind, EntityMention

# Pairs grow with the square of the mentions: a long list of names says little about any two of them.
MAX_PAIRED = 24


@dataclass(frozen=True, slots=True)
class LinkedEntity:
    """An entity as a memory mentions it."""

    id: str
    kind: EntityKind
    name: str
    surface: str


def link(db: Connection, memory_seq: int, mentions: Sequence[EntityMention]) -> None:
    """Replace what a memory mentions, and the co-mention edges that follow from it."""
    unlink(db, memory_seq)
    seqs: list[int] = []
    for mention in mentions:
        seq = _canonical(db, mention)
        inserted = db.execute(
            "INSERT OR IGNORE INTO mention (memory_seq, entity_seq, surface) VALUES (?, ?, ?)",
            (memory_seq, seq, mention.surface),
        ).rowcount
        if inserted:
            seqs.append(seq)
    db.executemany(
        "INSERT INTO co_mention VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET memories = memories + 1",
        _pairs(seqs),
    )


def unlink(db: Connection, memory_seq: int) -> None:
    """Remove a memory's mentions, their edges, and entities that nothing mentions any more."""
    seqs = [
        row[0] for row in db.execute("SELECT entity_seq FROM mention WHERE memory_seq = ?", (memory_seq,)).fetchall()
    ]
    if not seqs:
        return
    db.execute("DELETE FROM mention WHERE memory_seq = ?", (memory_seq,))
    pairs = _pairs(seqs)
    db.executemany("UPDATE co_mention SET memories = memories - 1 WHERE low = ? AND high = ?", pairs)
    db.executemany("DELETE FROM co_mention WHERE low = ? AND high = ? AND memories <= 0", pairs)
    db.executemany(
        "DELETE FROM entity WHERE seq = ? AND NOT EXISTS (SELECT 1 FROM mention WHERE entity_seq = entity.seq)",
        [(seq,) for seq in seqs],
    )


def of(db: Connection, memory_seq: int) -> list[LinkedEntity]:
    """List the entities that a memory mentions."""
    rows = db.execute(
        "SELECT e.id, e.kind, e.name, m.surface FROM mention m JOIN entity e ON e.seq = m.entity_seq "
        "WHERE m.memory_seq = ? ORDER BY e.kind, e.name",
        (memory_seq,),
    )
    return [LinkedEntity(entity_id, EntityKind(kind), name, surface) for entity_id, kind, name, surface in rows]


def counts(db: Connection) -> dict[str, int]:
    """Count entities, mentions and co-mention edges."""
    names = {"entities": "entity", "mentions": "mention", "co_mentions": "co_mention"}
    return {key: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for key, table in names.items()}  # noqa: S608 - constant names


def _canonical(db: Connection, mention: EntityMention) -> int:
    key = (mention.kind, mention.name)
    row = db.execute("SELECT seq FROM entity WHERE kind = ? AND name = ?", key).fetchone()
    if row is None:
        cursor = db.execute("INSERT INTO entity (id, kind, name) VALUES (?, ?, ?)", (str(ULID()), *key))
        return int(cursor.lastrowid or 0)
    return int(row[0])


def _pairs(seqs: Sequence[int]) -> list[tuple[int, int]]:
    # By number, so that a memory's pairs are the same when they are taken back as when they were counted.
    return list(combinations(sorted(seqs)[:MAX_PAIRED], 2))
